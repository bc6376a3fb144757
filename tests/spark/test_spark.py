"""Spark with two executors that are processes of their own: the same as on one machine, whatever dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import snuh
from snuh.errors import InputError, SnuhError
from snuh.features import TfidfFeatures
from snuh.graph import nearest_neighbors
from snuh.progress import OnProgress, Progress
from snuh.spark import (
    add_to_collection,
    encode,
    fit,
    open_session,
    read_documents,
    training,
    write_codes,
    writing,
)
from snuh.spark.documents import named_columns
from snuh.spark.failures import SparkError
from snuh.spark.listening import Listener
from snuh.spark.neighbors import Similarity, group_neighbors
from snuh.spark.rows import gather_rows
from snuh.spark.vocabulary import fit_features
from snuh.training.spectral import fit_lsa
from tests.cli.running import environment, run
from tests.collection.milvus_server import MilvusServer
from tests.collection.postgres_server import PostgresServer
from tests.spark.java import need_java
from tests.worlds import planted_topics, write_jsonl

pytestmark = pytest.mark.slow

MASTER = "local-cluster[2,1,1024]"
PATIENCE = 600.0  # seconds: machines that run tests are busy
RECORDS = planted_topics(1200)
PARTS = 40  # small ones, so that the job is in the middle for a while
# Short jobs: compiling Java to the last is not worth the time.
SETTINGS = {
    **{f"spark.{who}.extraJavaOptions": "-XX:TieredStopAtLevel=1" for who in ("driver", "executor")},
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    need_java()
    with open_session(MASTER, settings=SETTINGS) as session:
        yield session
        application = session.sparkContext.applicationId
    home = Path(sys.modules["pyspark"].__path__[0])
    shutil.rmtree(home / "work" / application, ignore_errors=True)  # logs of the executors


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_jsonl(tmp_path_factory.mktemp("source") / "toy.jsonl", RECORDS)


@pytest.fixture(scope="module")
def frame(spark: Any, source: Path) -> Any:
    return read_documents(spark, str(source))


@pytest.fixture(scope="module")
def model() -> snuh.Model:
    hasher = snuh.TextHasher("itq", 32).fit([record["text"] for record in RECORDS])
    assert hasher.model_ is not None
    return hasher.model_


@pytest.fixture(scope="module")
def expected(model: snuh.Model) -> dict[str, bytes]:
    codes = model.encode([record["text"] for record in RECORDS])
    return {record["id"]: code.tobytes() for record, code in zip(RECORDS, codes, strict=True)}


def test_vocabulary_and_rows_are_those_of_one_machine(spark: Any) -> None:
    odd = ["Straße STRASSE ΣΊΣΥΦΟΣ σίσυφος", "common0 İstanbul x y_z 42", "", "Common0 COMMON0 t0word1"]
    texts = [record["text"] for record in RECORDS[:200]] + odd * 2
    ids = [f"{number:04d}" for number in range(len(texts))]
    splits = ["test" if number % 7 == 0 else "train" for number in range(len(texts))]
    table = pa.table({"id": ids, "text": texts, "split": splits})
    frame = named_columns(spark.createDataFrame(table).repartition(5))
    settings: dict[str, Any] = {"max_terms": 60, "max_df": 0.9}
    kept = [text for text, split in zip(texts, splits, strict=True) if split == "train"]
    local, ours = TfidfFeatures(**settings).fit(kept), TfidfFeatures(**settings)
    fit_features(frame, ours)
    assert ours.to_json() == local.to_json()  # terms, their order, and every bit of the idf
    rows, wanted = gather_rows(frame, ours).X, local.transform(kept)
    assert (rows.indptr == wanted.indptr).all() and (rows.indices == wanted.indices).all()
    assert rows.data.tobytes() == wanted.data.tobytes()


def test_groups_find_the_neighbours(spark: Any) -> None:
    texts = [record["text"] for record in RECORDS]
    X = TfidfFeatures().fit(texts).transform([*texts, texts[0], ""])  # a copy, and an empty document
    lsa = fit_lsa(X, dims=16, seed=0)
    similarity = Similarity(lsa.directions, 0.5)
    found = group_neighbors(spark, X, similarity, k=10, seed=0, group_size=600)
    exact = nearest_neighbors(X, k=10, dense_parts=similarity.beside(X), search="exact")
    pairs = [set(zip(*np.nonzero(part.adjacency()), strict=True)) for part in (found, exact)]
    assert len(pairs[0] & pairs[1]) >= 0.95 * len(pairs[1])
    assert (np.diff(found.similarity, axis=1) <= 0).all()
    assert list(found.rows[1200]) == list(exact.rows[1200]) == [0] + [-1] * 9
    assert (found.rows[1201] == -1).all()


def test_codes_have_the_same_bits_and_are_written_once(
    frame: Any, model: snuh.Model, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "codes.parquet"
    assert not write_codes(frame, model, out, parts=3).was_there
    assert read_codes(out) == expected
    assert codes_of(encode(frame, model).toArrow()) == expected
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    assert write_codes(frame, model, out).was_there
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before
    with pytest.raises(InputError, match="holds codes of other documents: choose another place"):
        write_codes(frame.limit(10), model, out)
    other = snuh.TextHasher("lsh", 32).fit([record["text"] for record in RECORDS]).model_
    with pytest.raises(InputError, match="holds codes of another model: choose another place"):
        write_codes(frame, other, out)
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before
    assert os.listdir(tmp_path) == ["codes.parquet"]


@pytest.mark.parametrize("when", ["_open_job", "_write_parts", "_close_job"])
def test_of_the_same_job_started_twice_the_slower_finds_what_the_faster_wrote(
    frame: Any, model: snuh.Model, tmp_path: Path, when: str
) -> None:
    few, out = frame.limit(20).cache(), tmp_path / "codes.parquet"
    step, faster = getattr(writing, when), []

    def overtaken(*given: Any) -> Any:
        if not faster:
            faster.append(None)
            faster[0] = write_codes(few, model, out, parts=3)
        return step(*given)

    with patch.object(writing, when, overtaken):
        slower = write_codes(few, model, out, parts=2)
    assert not faster[0].was_there and slower.was_there and slower.documents == 20
    assert slower.parts == faster[0].parts == (3 if when == "_open_job" else 2)
    assert len(read_codes(out)) == 20
    assert os.listdir(tmp_path) == ["codes.parquet"]


def running_tasks(spark: Any) -> int:
    found = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    return sum(executor.numRunningTasks() for executor in found)


def test_a_killed_executor_and_a_stopped_job_leave_each_code_once(
    spark: Any, frame: Any, model: snuh.Model, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "codes.parquet"
    victim = executors()[0]
    job = Background(lambda: write_codes(frame, model, out, parts=PARTS))
    wait_for(lambda: parts_in(tmp_path))
    victim.send_signal(signal.SIGKILL)
    assert not job.is_over
    wait_for(lambda: job.is_over)
    assert job.error is None
    assert read_codes(out) == expected

    other = tmp_path / "stopped.parquet"
    job = Background(lambda: write_codes(frame, model, other, parts=PARTS))
    wait_for(lambda: len(parts_in(tmp_path)) >= 2)
    spark.sparkContext.cancelAllJobs()
    wait_for(lambda: job.is_over)
    assert isinstance(job.error, SnuhError) and "cancelled" in str(job.error)
    assert not other.exists()
    wait_for(lambda: not running_tasks(spark))  # a task that is cancelled may still finish its part
    kept = {path.name: path.stat().st_mtime_ns for path in parts_in(tmp_path)}
    written = write_codes(frame, model, other)
    assert (written.parts, written.parts_kept) == (PARTS, len(kept))
    assert {name: (other / name).stat().st_mtime_ns for name in kept} == kept
    assert read_codes(other) == expected


def sender_that_waits(sender: Any, obstacle: str) -> Any:
    """Let the first worker wait after every epoch while there is a file; sent by value, as all in here is."""

    class Waiting:
        @contextmanager
        def connected(self, *, is_sending: bool) -> Iterator[OnProgress | None]:
            with sender.connected(is_sending=is_sending) as send:

                def send_and_wait(progress: Progress) -> None:
                    send(progress)
                    end = time.monotonic() + 60.0
                    while progress.epoch is not None and os.path.exists(obstacle) and time.monotonic() < end:
                        time.sleep(0.01)

                yield send_and_wait if send is not None else None

    return Waiting()


def test_two_workers_learn_what_one_learns_even_if_one_is_killed(frame: Any, tmp_path: Path) -> None:
    epochs: list[int] = []
    victim, obstacle = executors()[0], tmp_path / "obstacle"
    obstacle.touch()

    @contextmanager
    def listening(*given: Any) -> Iterator[Any]:
        with Listener(*given) as listener:
            yield SimpleNamespace(sender=sender_that_waits(listener.sender, str(obstacle)))

    def see(progress: Progress) -> None:
        if progress.epoch is None:
            return
        epochs.append(progress.epoch.epoch)
        if len(epochs) == 1:
            victim.send_signal(signal.SIGKILL)
            victim.wait(PATIENCE)
            obstacle.unlink()

    settings: dict[str, Any] = {"epochs": 6, "batch_size": 128}
    with patch.object(training, "Listener", listening):
        trained = fit(frame, bits=16, workers=2, parameters=settings, on_progress=see)
    assert trained.training["workers"] == 2
    assert len(epochs) > 6 and epochs[-6:] == [1, 2, 3, 4, 5, 6]  # it started again
    assert trained.parameters["batch_size"] == 128
    learning = [record["text"] for record in RECORDS if record["split"] == "train"]
    alone = snuh.TextHasher(bits=16, parameters=settings).fit(learning).model_
    assert alone is not None
    assert precision(trained) >= precision(alone) - 0.03 >= 0.9


def test_what_fails_in_a_worker_is_said_at_once(frame: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        @contextmanager
        def connected(self, *, is_sending: bool) -> Iterator[None]:
            if not is_sending:  # and so in the second worker, while the first one waits for it
                raise MemoryError("no room")
            yield None

    # The listener gives the sender to the workers.
    with (
        patch.object(training, "Listener", lambda *_: nullcontext(SimpleNamespace(sender=Broken()))),
        pytest.raises(SparkError, match=r"^training failed in worker 2: MemoryError: no room$"),
    ):
        fit(frame, method="vdsh", bits=16, workers=2, parameters={"epochs": 2})
    assert "starts again" not in caplog.text


@contextmanager
def _folder(place: Path) -> Iterator[str]:
    yield str(place / "toy")


@contextmanager
def _postgres(_: Path) -> Iterator[str]:
    server = PostgresServer()
    try:
        yield server.address("toy", database=server.new_database())
    finally:
        server.stop()


@contextmanager
def _milvus(_: Path) -> Iterator[str]:
    server = MilvusServer()
    try:
        yield server.address("toy")
    finally:
        server.stop()


@pytest.mark.parametrize("engine", [_folder, _postgres, _milvus])
def test_documents_go_into_a_collection(
    frame: Any, model: snuh.Model, tmp_path: Path, engine: Callable[[Path], AbstractContextManager[str]]
) -> None:
    with engine(tmp_path) as address:
        snuh.Collection.create(address, model).close()
        for again in (False, True):
            added = add_to_collection(frame, address)
            assert (added.inserted, added.replaced) == ((0, 1200) if again else (1200, 0))
        with snuh.Collection(address) as collection:
            assert len(collection) == 1200
            document = collection.get("doc-5")
            assert (document.text, document.labels) == (RECORDS[5]["text"], ("topic1",))


def test_columns_become_the_same_in_a_folder_and_in_an_engine(
    spark: Any, model: snuh.Model, tmp_path: Path
) -> None:
    hour = datetime(2020, 1, 1, 12, tzinfo=UTC)
    table = pa.table(
        {
            "id": ["a", "b"],
            "text": ["x", "y"],
            "hour": pa.array([hour, None], pa.timestamp("us", tz="UTC")),
            "map": pa.array([[("k", 1.5)], [("l", None)]], pa.map_(pa.string(), pa.float64())),
            "bytes": [b"1", b"2"],
            "list": [[1, 2], []],
        }
    )
    frame = spark.createDataFrame(table)
    kept = []
    with _postgres(tmp_path) as engine:
        for address in (str(tmp_path / "toy"), engine):
            snuh.Collection.create(address, model).close()
            add_to_collection(frame, address)
            with snuh.Collection(address) as collection:
                kept.append([one.metadata for one in collection.documents()])
    assert sorted(kept[0], key=str) == sorted(kept[1], key=str)
    first = next(one for one in kept[0] if one["map"] == {"k": 1.5})
    assert first.keys() == {"hour", "map", "list"} and datetime.fromisoformat(first["hour"]) == hour


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"id": ["a", "b", "a"], "text": ["x", "y", "z"]}, 'the id "a" is there 2 times: ids must be unique'),
        ({"id": ["a", "b"], "text": ["x", None]}, 'the document "b" has no text (null)'),
        ({"id": ["a", ""], "text": ["x", "y"]}, "1 documents have no id"),
        ({"id": ["a"], "body": ["x"]}, 'the source has no column "text"'),
        ({"id": ["a"], "text": [1]}, 'the column "text" must hold strings, got bigint'),
        (
            {"id": pa.array([], pa.string()), "text": pa.array([], pa.string())},
            "the source holds no documents",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(
    spark: Any, model: snuh.Model, tmp_path: Path, columns: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError) as caught:
        write_codes(spark.createDataFrame(pa.table(columns)), model, tmp_path / "codes")
    assert told in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_the_commands_run(spark: Any, source: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    ran = run("spark", "fit", source, "--out", tmp_path / "model", "--method", "itq", "--bits", "32")
    assert ran.code == 0 and "itq, 32 bits" in ran.stdout
    ran = run("spark", "encode", source, "--model", tmp_path / "model", "--out", tmp_path / "codes")
    assert ran.code == 0 and "1,200" in ran.stdout
    assert read_codes(tmp_path / "codes").keys() == expected.keys()
    ran = run("spark", "encode", source, "--model", tmp_path / "model", "--out", tmp_path / "codes")
    assert ran.code == 0 and "there already" in ran.stdout


def test_spark_submit_runs_the_command(
    source: Path, model: snuh.Model, expected: dict[str, bytes], tmp_path: Path
) -> None:
    need_java()
    model.save(tmp_path / "model")
    script = Path(snuh.__file__).parent / "cli" / "submit.py"
    confs = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]
    command = [Path(sys.executable).parent / "spark-submit", "--master", "local[1]", *confs, script]
    done = subprocess.run(
        [*map(str, command), "encode", str(source), "--model", "model", "--out", "codes", "--json"],
        cwd=tmp_path,
        env=environment() | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert '"documents": 1200' in done.stdout
    assert read_codes(tmp_path / "codes") == expected


class Background:
    """Runs something in a thread and keeps what it raised."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def parts_in(folder: Path) -> list[Path]:
    """Return the parts of jobs that are not done."""
    return list(folder.glob(".*/part-*.parquet"))


def executors() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it may end while we look
            if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                found.append(process)
    return found


def read_codes(folder: Path) -> dict[str, bytes]:
    return codes_of(pq.read_table(folder))


def codes_of(table: pa.Table) -> dict[str, bytes]:
    ids, codes = table["id"].to_pylist(), table["code"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, codes, strict=True))


def precision(model: snuh.Model) -> float:
    """The share of the same topic among the 50 nearest training documents of those held out."""
    splits = {split: [r for r in RECORDS if r["split"] == split] for split in ("train", "test")}
    codes = {split: model.encode([r["text"] for r in records]) for split, records in splits.items()}
    topics = {split: np.array([r["labels"][0] for r in records]) for split, records in splits.items()}
    distances = np.bitwise_count(codes["test"][:, None] ^ codes["train"][None]).sum(axis=2)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :50]
    return float((topics["train"][nearest] == topics["test"][:, None]).mean())
