"""Methods with a neighbour graph: the search is a parameter, and its recall is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graph.test_approximate import topics

from snuh.cli.fit import describe_graph
from snuh.errors import InputError
from snuh.methods import make
from snuh.model import Model, load

QUICK = {"epochs": 1, "neighbors": 5}


@pytest.mark.parametrize("name", ["snuh", "snuh-plus", "nbrreg"])
def test_a_fit_reports_how_the_graph_was_searched(name: str) -> None:
    X, _ = topics(400)
    graphs = []
    for search in ("auto", "approximate"):
        fitted = make(name, bits=16, seed=0, parameters={**QUICK, "graph": search}).fit(X)
        graphs.append(fitted.training_["graph"])
    assert graphs[0] == {"search": "exact"}
    assert graphs[1]["search"] == "approximate"
    assert graphs[1]["recall"] > 0.95


def test_a_saved_model_stores_the_recall(tmp_path: Path) -> None:
    X, _ = topics(400)
    fitted = make("snuh", bits=16, seed=0, parameters={**QUICK, "graph": "approximate"}).fit(X)
    Model(fitted.encoder_, None, "snuh", fitted.get_params(), fitted.training_).save(tmp_path / "model")
    assert load(tmp_path / "model").training["graph"] == fitted.training_["graph"]


def test_an_unknown_search_is_refused_before_any_work() -> None:
    with pytest.raises(InputError, match='graph must be one of auto, exact, approximate, got "aproximate"'):
        make("snuh", bits=16, seed=0, parameters={"graph": "aproximate"}).check_parameters()


def test_the_graph_is_described_with_its_recall() -> None:
    assert describe_graph({"search": "exact"}) == "exact"
    description = describe_graph({"search": "approximate", "recall": 0.9712})
    assert description == "approximate, 97.1% of the exact neighbours (measured on a sample)"
