"""The saved form of TF-IDF features: what it must hold to be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.errors import ModelError

FORMAT = "snuh-tfidf"
FORMAT_VERSION = 1


class State(NamedTuple):
    """The checked parts of a saved vocabulary."""

    parameters: dict[str, Any]  # the constructor checks these
    terms: list[str]
    idf: NDArray[np.float64]
    documents: int


def check_state(state: Mapping[str, Any]) -> State:
    """Return the parts of what `TfidfFeatures.to_json` wrote; ModelError with the first thing wrong."""
    if not isinstance(state, Mapping):
        raise ModelError(f"the vocabulary must be a JSON object, got {type(state).__name__}")
    if state.get("format") != FORMAT:
        raise ModelError(f'the vocabulary must have the format "{FORMAT}", got {state.get("format")!r}')
    version = state.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelError(f"the vocabulary's format_version must be a whole number from 1, got {version!r}")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"the vocabulary has format version {version}, this snuh reads up to {FORMAT_VERSION}: update it"
        )
    parameters, documents = state.get("parameters"), state.get("documents")
    if not isinstance(parameters, dict) or not all(isinstance(name, str) for name in parameters):
        raise ModelError(f"the vocabulary's parameters must be an object, got {type(parameters).__name__}")
    if type(documents) is not int or documents < 0:
        raise ModelError(f"the vocabulary's documents must be a whole number from 0, got {documents!r}")
    terms = _check_terms(state.get("terms"))
    return State(parameters, terms, _check_idf(state.get("idf"), len(terms)), documents)


def _check_terms(terms: object) -> list[str]:
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms):
        raise ModelError("the vocabulary's terms must be a list of texts")
    if not terms:
        raise ModelError("the vocabulary has no terms: it was saved before fit(texts)")
    for before, after in pairwise(terms):
        if before >= after:
            raise ModelError(f"the vocabulary's terms must ascend, got {after!r} after {before!r}")
    return terms


def _check_idf(idf: object, expected: int) -> NDArray[np.float64]:
    if not isinstance(idf, list) or not all(type(value) in (int, float) for value in idf):
        raise ModelError("the vocabulary's idf must be a list of numbers")
    if len(idf) != expected:
        raise ModelError(f"the vocabulary has {expected} terms, but {len(idf)} idf values")
    try:
        values = np.array(idf, dtype=np.float64)
    except OverflowError as error:
        raise ModelError("the vocabulary's idf must be finite numbers above 0") from error
    if not (np.isfinite(values) & (values > 0)).all():
        raise ModelError("the vocabulary's idf must be finite numbers above 0")
    return values
