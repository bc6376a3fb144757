"""The case study: documents at increasing distance from the query, and their titles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from snuh.errors import InputError
from snuh.experiments.case_study import read_titles, title
from snuh.experiments.corpora import Corpus, read_corpus
from snuh.experiments.runner import execute_run
from snuh.methods import make
from tests.experiments.worlds import tiny_run


def test_examples_are_documents_ever_further_from_the_query(toy: Corpus) -> None:
    row = execute_run(tiny_run(method="itq", parameters={}, seed=2, artifact="examples"), toy, commit=None)
    encoder = make("itq", bits=16, seed=2, parameters={}).fit(toy.splits["train"].X).encoder_
    train, test = toy.splits["train"], toy.splits["test"]
    query = np.unpackbits(encoder.encode(test.X[[2]]))
    distances = (np.unpackbits(encoder.encode(train.X), axis=1) != query).sum(1)
    found = row["artifact_data"]["documents"]
    assert row["artifact_data"]["query"]["labels"] == list(test.labels[2])
    assert [doc["distance"] for doc in found] == sorted(doc["distance"] for doc in found)
    assert {doc["distance"] for doc in found} <= set(distances.tolist())
    assert found[0]["distance"] == distances[np.argmin(abs(distances - 0))]
    assert all(doc["title"] for doc in found)
    assert json.loads(json.dumps(row)) == row  # can be kept as a line


def test_titles_are_subjects_or_first_lines(data: Path) -> None:
    assert title("From: a@b.c\nSubject: Re: a question\n\nthe text") == "Re: a question"
    assert title("\n  Profits rise\nmore") == "Profits rise"
    assert len(title("word " * 100)) <= 90
    assert title("") == ""
    known = read_corpus("toy", {}).splits["test"].ids[0]
    assert list(read_titles("toy", {known})) == [known]
    with pytest.raises(InputError, match="nothing"):
        read_titles("nothing", {known})
