"""A process killed at any moment loses nothing that it acknowledged, and leaves nothing half done."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from snuh.collection import Collection
from snuh.corpus import Document
from tests.collection.worlds import (
    Mirror,
    assert_answers_like,
    document,
    stored,
    temporary_folder,
    tiny_thresholds,
    toy_model,
)

KILLS = 60
EVERY_KIND = {"add", "delete", "rehash", "create"}
BATCH = 4
MODELS = [toy_model(0), toy_model(1), toy_model(2, bits=24)]


def documents_of(operation: dict[str, Any]) -> list[Document]:
    """Return the documents that an operation adds; a replaced one differs in text and metadata."""
    numbers, turn = operation["numbers"], operation["turn"]
    texts = [document(number + 1000 * turn).text for number in numbers]
    pairs = zip(numbers, texts, strict=True)
    return [document(number, text, turn=turn, again={"turn": [turn]}) for number, text in pairs]


def choose(rng: random.Random, mirror: Mirror, turn: int) -> dict[str, Any]:
    """Describe something to do next."""
    kind = rng.choices(["add", "delete", "rehash", "create", "reopen"], [8, 3, 3, 1, 1])[0]
    operation: dict[str, Any] = {"kind": kind, "turn": turn}
    if kind == "add":
        operation["numbers"] = [rng.randrange(60) for _ in range(rng.randint(1, 12))]
    elif kind == "delete":
        operation["ids"] = rng.sample(sorted(mirror.documents), min(len(mirror.documents), rng.randint(0, 4)))
    elif kind == "rehash":
        operation["model"] = rng.randrange(len(MODELS))
    return operation


def outcomes(operation: dict[str, Any], before: Mirror) -> list[Mirror]:
    """Return every state in which the operation may leave the collection; the last is that of its end."""
    states = [before]
    if operation["kind"] == "add":
        new = documents_of(operation)
        for start in range(0, len(new), BATCH):
            states.append(states[-1].copy())
            states[-1].add(new[start : start + BATCH])
    elif operation["kind"] == "delete":
        states.append(before.copy())
        states[-1].delete(operation["ids"])
    elif operation["kind"] == "rehash":
        states.append(Mirror(MODELS[operation["model"]], before.documents))
    return states


def work(folder: Path, mirror: Mirror, *, turn: int, seed: int, out: int) -> None:
    """Do one thing after the other, for ever; say what before each, and that it is done after each."""
    rng = random.Random(seed)
    collection = Collection(folder)
    while True:
        turn += 1
        operation = choose(rng, mirror, turn)
        os.write(out, (json.dumps(operation) + "\n").encode())
        match operation["kind"]:
            case "add":
                collection.add(documents_of(operation))
            case "delete":
                collection.delete(operation["ids"])
            case "rehash":
                collection.rehash(MODELS[operation["model"]])
            case "create":
                Collection.create(folder.with_name(f"side{turn}"), MODELS[0]).close()
            case "reopen":
                collection.close()
                collection = Collection(folder)
        os.write(out, b"done\n")
        mirror = outcomes(operation, mirror)[-1]


def run_and_kill(folder: Path, mirror: Mirror, *, turn: int, rng: random.Random) -> list[str]:
    """Start the work in a process of its own, kill it at a random moment, and return the lines it wrote."""
    out_of, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out_of)
            work(folder, mirror, turn=turn, seed=rng.randrange(1 << 30), out=into)
        except BaseException as error:
            os.write(into, f"failed {error!r}\n".encode())
        finally:
            os._exit(1)
    os.close(into)
    with open(out_of, "rb") as lines:
        read = [lines.readline() for _ in range(rng.randint(1, 8))]
        # Operations take from one to some tens of milliseconds; most kills fall into their first half.
        time.sleep(rng.choice([0.0, 0.001, 0.003, 0.01, 0.03]) * rng.random())
        os.kill(child, signal.SIGKILL)
        read += lines.readlines()
    os.waitpid(child, 0)
    return [line.decode().rstrip("\n") for line in read if line.endswith(b"\n")]


@pytest.mark.slow
@pytest.mark.parametrize("kills", [KILLS, pytest.param(1_000, marks=pytest.mark.long)])
def test_whatever_was_acknowledged_survives_a_kill_and_nothing_is_half_there(kills: int) -> None:
    rng = random.Random(kills)
    workspace = temporary_folder()
    folder = workspace / "c"
    turn, killed_in = 0, Counter[str]()
    with tiny_thresholds(changes=5, batch=BATCH):
        Collection.create(folder, MODELS[0]).close()
        mirror = Mirror(MODELS[0])
        for number in count():
            # On a busy machine, a short operation may end before it is killed: some more kills.
            if number >= kills and (set(killed_in) >= EVERY_KIND or number >= 5 * kills):
                break
            lines = run_and_kill(folder, mirror, turn=turn, rng=rng)
            assert not [line for line in lines if line.startswith("failed")]
            possible = [mirror]
            for line in lines:
                if line == "done":
                    possible = possible[-1:]
                else:
                    operation = json.loads(line)
                    turn = operation["turn"]
                    possible = outcomes(operation, possible[-1])
            if lines and lines[-1] != "done":
                killed_in[operation["kind"]] += 1
            mirror = the_one_of(possible, stored(folder))
            with Collection(folder) as collection:
                assert_answers_like(collection, mirror)
            for side in workspace.glob("side*"):
                with Collection(side) as collection:
                    assert len(collection) == 0
                    collection.add([document(1)])
                shutil.rmtree(side)
    assert killed_in.total() > kills / 2
    assert set(killed_in) >= EVERY_KIND
    with Collection(folder) as collection:
        collection.rehash(MODELS[0])
        assert len([entry for entry in (folder / "models").iterdir() if entry.name[0] != "."]) <= 2
    shutil.rmtree(workspace)


def the_one_of(possible: list[Mirror], found: Mirror) -> Mirror:
    """Return the state that the store is in; order, documents and model must all agree."""
    for state in reversed(possible):
        is_same_model = state.model.method == found.model.method
        if is_same_model and list(state.documents.items()) == list(found.documents.items()):
            return state
    raise AssertionError(f"the store holds none of the {len(possible)} states that it may be in")
