"""Servers that are stopped or killed, or lose a worker."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import httpx
import psutil
import pytest

from snuh import Client
from snuh.collection import Collection
from snuh.errors import SnuhError
from tests.collection.worlds import assert_answers_like, stored, toy_model
from tests.server.serving import NDJSON, TIMEOUT, Server, read_response, serving

PATH = "/v1/collections/c"


def line(name: str) -> bytes:
    return json.dumps({"id": name, "text": "ship fog"}).encode() + b"\n"


def test_sigterm_lets_running_requests_finish(folder: Path) -> None:
    with serving(folder) as server, server.connection() as connection:
        body = line("before") + line("after")
        kind = NDJSON["Content-Type"]
        head = f"POST {PATH}/documents/lines HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + line("before"))
        server.get("/health")  # the upload is being read by now
        server.process.send_signal(signal.SIGTERM)
        _wait_until_refused(server)  # new connections are not accepted
        connection.sendall(line("after"))
        status, content = read_response(connection)
        assert status == 200 and json.loads(content)["inserted"] == 2
        assert server.process.wait(timeout=TIMEOUT) == 0
    with Collection(folder) as collection:
        assert "before" in collection and "after" in collection


def _wait_until_refused(server: Server) -> None:
    for _ in range(300):
        try:
            httpx.get(server.url + "/health", timeout=TIMEOUT)
        except httpx.TransportError:
            return
        time.sleep(0.05)
    raise AssertionError("the server still accepts requests")


def test_ctrl_c_stops_it_without_a_traceback_or_temporary_files(folder: Path, root: Path) -> None:
    scratch = root / "scratch"
    scratch.mkdir()
    with serving(folder, TMPDIR=str(scratch)) as server:
        assert list(scratch.glob("snuh-serve-*"))
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(timeout=TIMEOUT) == 0
        assert server.process.stderr is not None
        assert "Traceback" not in server.process.stderr.read()
    assert not list(scratch.glob("snuh-serve-*"))


@pytest.mark.slow
def test_acknowledged_writes_survive_a_kill(folder: Path) -> None:
    acknowledged: list[str] = []
    tried = 0
    for turn in range(3):
        with serving(folder) as server:

            def write(server: Server = server, turn: int = turn) -> None:
                nonlocal tried
                with Client("c", server=server.url) as client:
                    for number in range(10_000):
                        name = f"kill-{turn}-{number}"
                        tried += 1
                        try:
                            client.add([{"id": name, "text": "ship fog"}])
                        except SnuhError:
                            return
                        acknowledged.append(name)

            writers = [threading.Thread(target=write)]
            for writer in writers:
                writer.start()
            while len(acknowledged) < 15 * (turn + 1) and writers[0].is_alive():
                time.sleep(0.01)
            server.process.kill()
            for writer in writers:
                writer.join()
    mirror = stored(folder)  # checks that the store is consistent
    assert len(acknowledged) >= 15 * 3 and set(acknowledged) <= set(mirror.documents)
    assert tried - len(acknowledged) <= 3  # one in progress at each kill, which may be stored or not
    with Collection(folder) as collection:
        assert_answers_like(collection, mirror)


def test_a_killed_worker_is_replaced(folder: Path) -> None:
    with serving(folder, options=("--workers", 2)) as server:
        _wait_for_workers(server, 2)
        with server.client() as client:
            expected = client.search("ship fog")
        victim = _workers(server)[0]
        os.kill(victim, signal.SIGKILL)
        succeeded = 0
        for _ in range(40):
            try:
                with server.client() as client:
                    assert client.search("ship fog") == expected
                succeeded += 1
            except SnuhError:  # a connection that the killed worker had accepted
                pass
        assert succeeded >= 35
        _wait_for_workers(server, 2)
        assert victim not in _workers(server)
        with server.client() as client:
            client.add([{"id": "new", "text": "ship"}])
        for _ in range(10):  # both workers see it
            with server.client() as client:
                assert "new" in {hit.document.id for hit in client.search("ship", k=50)}
        assert "snuh_requests_total" in server.get("/metrics").text
        workers = _workers(server)
        assert server.stop() == 0
    assert not any(_is_worker(psutil.Process(worker)) for worker in workers if psutil.pid_exists(worker))


def test_workers_exit_when_the_server_is_killed(folder: Path) -> None:
    with serving(folder, options=("--workers", 2)) as server:
        _wait_for_workers(server, 2)
        workers = [psutil.Process(pid) for pid in _workers(server)]
        server.process.kill()
        _, alive = psutil.wait_procs(workers, timeout=TIMEOUT)
        assert not alive
        with pytest.raises(httpx.TransportError):  # no process is listening
            server.get("/health")


def _workers(server: Server) -> list[int]:
    return [child.pid for child in psutil.Process(server.process.pid).children() if _is_worker(child)]


def _is_worker(process: psutil.Process) -> bool:
    try:
        return any("spawn_main" in part for part in process.cmdline())
    except psutil.Error:  # it has exited, or is a zombie
        return False


def _has_opened(worker: psutil.Process) -> bool:
    try:
        # One for each collection of a worker thread, and another for each thread that has used it.
        return sum(file.path.endswith("store.sqlite") for file in worker.open_files()) >= 4
    except psutil.Error:  # it has just exited
        return False


def _wait_for_workers(server: Server, count: int) -> None:
    """Wait until this many workers have opened the collection."""
    for _ in range(3_000):
        alive = [psutil.Process(pid) for pid in _workers(server)]
        if len(alive) == count and all(map(_has_opened, alive)):
            return
        time.sleep(0.1)
    raise AssertionError("the workers did not start")


def test_a_replaced_collection_is_served_and_written_to(folder: Path) -> None:
    with serving(folder) as server:
        assert server.get("/v1/collections/c").json()["documents"] == 41
        shutil.rmtree(folder)
        with Collection.create(folder, toy_model(1)) as other:
            other.add([{"id": "restored", "text": "ship"}])
        assert server.get("/v1/collections/c").json()["documents"] == 1
        body = {"documents": [{"id": "new", "text": "ship fog"}]}
        assert server.post("/v1/collections/c/documents", body).json()["documents"] == 2
        hits = server.post("/v1/collections/c/search", {"text": "ship"}).json()["hits"]
        assert {hit["id"] for hit in hits} == {"restored", "new"}
        shutil.rmtree(folder)
        gone = server.get("/ready")
        assert gone.status_code == 503 and gone.json()["error"] == "c was removed while it was open"
    assert not folder.exists()
