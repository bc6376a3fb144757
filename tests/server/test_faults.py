"""What happens when a server is told to end, is killed, or loses a worker."""

from __future__ import annotations

import json
import os
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
from tests.collection.worlds import assert_answers_like, stored
from tests.server.serving import LINES, PATIENCE, Server, answer_of, serving

PATH = "/v1/collections/c"


def line(name: str) -> bytes:
    return json.dumps({"id": name, "text": "ship fog"}).encode() + b"\n"


def test_a_server_told_to_end_finishes_what_is_under_way(folder: Path) -> None:
    with serving(folder) as server, server.connection() as connection:
        body = line("before") + line("after")
        kind = LINES["Content-Type"]
        head = f"POST {PATH}/documents/lines HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + line("before"))
        server.get("/health")  # what came before it is being read by now
        server.process.send_signal(signal.SIGTERM)
        _wait_until_refused(server)  # new ones are not taken any more
        connection.sendall(line("after"))
        status, answer = answer_of(connection)
        assert status == 200 and json.loads(answer)["inserted"] == 2
        assert server.process.wait(timeout=PATIENCE) == 0
    with Collection(folder) as collection:
        assert "before" in collection and "after" in collection


def _wait_until_refused(server: Server) -> None:
    for _ in range(300):
        try:
            httpx.get(server.url + "/health", timeout=PATIENCE)
        except httpx.TransportError:
            return
        time.sleep(0.05)
    raise AssertionError("the server still takes requests")


def test_ctrl_c_ends_it_quietly_and_leaves_nothing_behind(folder: Path, place: Path) -> None:
    scratch = place / "scratch"
    scratch.mkdir()
    with serving(folder, TMPDIR=str(scratch)) as server:
        assert list(scratch.glob("snuh-serve-*"))
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(timeout=PATIENCE) == 0
        assert server.process.stderr is not None
        assert "Traceback" not in server.process.stderr.read()
    assert not list(scratch.glob("snuh-serve-*"))


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill(folder: Path) -> None:
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
    found = stored(folder)  # checks that the store agrees with itself
    assert len(acknowledged) >= 15 * 3 and set(acknowledged) <= set(found.documents)
    assert tried - len(acknowledged) <= 3  # one under way at each kill, which may be there or not
    with Collection(folder) as collection:
        assert_answers_like(collection, found)


def test_a_worker_that_dies_does_not_take_the_server_with_it(folder: Path) -> None:
    with serving(folder, options=("--workers", 2)) as server:
        _wait_for_workers(server, 2)
        with server.client() as client:
            expected = client.search("ship fog")
        victim = _workers(server)[0]
        os.kill(victim, signal.SIGKILL)
        answered = 0
        for _ in range(40):
            try:
                with server.client() as client:
                    assert client.search("ship fog") == expected
                answered += 1
            except SnuhError:  # a connection that the dead worker had taken
                pass
        assert answered >= 35
        _wait_for_workers(server, 2)
        assert victim not in _workers(server)
        with server.client() as client:
            client.add([{"id": "new", "text": "ship"}])
        for _ in range(10):  # whichever worker answers sees it
            with server.client() as client:
                assert "new" in {hit.document.id for hit in client.search("ship", k=50)}
        assert "snuh_requests_total" in server.get("/metrics").text
        workers = _workers(server)
        assert server.end() == 0
    assert not any(_is_worker(psutil.Process(worker)) for worker in workers if psutil.pid_exists(worker))


def test_workers_do_not_outlive_a_server_that_was_killed(folder: Path) -> None:
    with serving(folder, options=("--workers", 2)) as server:
        _wait_for_workers(server, 2)
        workers = [psutil.Process(pid) for pid in _workers(server)]
        server.process.kill()
        _, left = psutil.wait_procs(workers, timeout=PATIENCE)
        assert not left
        with pytest.raises(httpx.TransportError):  # nobody listens any more
            server.get("/health")


def _workers(server: Server) -> list[int]:
    return [child.pid for child in psutil.Process(server.process.pid).children() if _is_worker(child)]


def _is_worker(process: psutil.Process) -> bool:
    try:
        return any("spawn_main" in part for part in process.cmdline())
    except psutil.Error:  # it has gone, or is dead and not yet buried
        return False


def _has_opened(worker: psutil.Process) -> bool:
    try:
        return sum(file.path.endswith("store.sqlite") for file in worker.open_files()) == 3  # one a lane
    except psutil.Error:  # it has just gone
        return False


def _wait_for_workers(server: Server, count: int) -> None:
    """Wait until as many workers listen as there should be."""
    for _ in range(3_000):
        alive = [psutil.Process(pid) for pid in _workers(server)]
        if len(alive) == count and all(map(_has_opened, alive)):
            return
        time.sleep(0.1)
    raise AssertionError("the workers did not come up")
