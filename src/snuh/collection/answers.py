"""From codes to hits: what a search does with a model and the backend that holds its codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import Backend, Place
from snuh.collection.rerank import asymmetric_scores, cosine_scores
from snuh.collection.searching import Search, check_fields
from snuh.errors import CollectionError
from snuh.features import TfidfFeatures
from snuh.model import Model
from snuh.search import Hit

CHARACTERS_OF_A_THREAD = 100_000


@dataclass(frozen=True, slots=True)
class Opened:
    """A model and the codes that it made."""

    model: Model
    fingerprint: str
    backend: Backend

    @property
    def features(self) -> TfidfFeatures:
        """The features of the model, which is one of texts."""
        if self.model.features is None:
            raise CollectionError(f"{self.backend.name} has a model without words: restore it from a copy")
        return self.model.features

    def query_rows(self, texts: Sequence[str]) -> Any:  # a CSR matrix; scipy has no type stubs
        """Return the feature rows of queries; few are read sooner than threads are started."""
        is_little = sum(map(len, texts)) < CHARACTERS_OF_A_THREAD
        return self.features.transform(texts, threads=1 if is_little else None)

    def find(self, codes: NDArray[np.uint8], how: Search, *, most: int) -> list[list[Place]]:
        """Return the places of the `most` nearest documents of each code."""
        if how.where is not None:
            check_fields(how.where, self.backend)
        return self.backend.find(codes, k=most, radius=how.radius, where=how.where, fast=how.fast)

    def plain_hits(self, found: Sequence[Sequence[Place]], *, k: int) -> list[list[Hit]]:
        """Turn the places of many queries into hits, and read their documents all at once."""
        documents = self.backend.documents_of({place.seq for places in found for place in places[:k]})
        return [[Hit(place.distance, documents[place.seq]) for place in places[:k]] for places in found]

    def hits(self, places: Sequence[Place], query: Any, how: Search) -> list[Hit]:
        """Turn places into hits; with a reranking in the order of their scores for the query's row."""
        if how.rerank is None:
            return self.plain_hits([places], k=how.k)[0]
        if not places:
            return []
        seqs = np.array([place.seq for place in places])
        if how.rerank == "asymmetric":
            rows = self.backend.codes_of(seqs.tolist())
            codes = rows.codes[np.searchsorted(rows.seqs, seqs)]
            scores = asymmetric_scores(self.model.encoder, query, codes)
            order = _best_first(scores)[: how.k]
            documents = self.backend.documents_of(seqs[order])
        else:
            documents = self.backend.documents_of(seqs)
            scores = cosine_scores(self.features, query, [documents[seq].text for seq in seqs.tolist()])
            order = _best_first(scores)[: how.k]
        return [
            Hit(places[number].distance, documents[places[number].seq], float(scores[number]))
            for number in order.tolist()
        ]


def _best_first(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.argsort(-scores, kind="stable")  # stable: equal scores stay in the order of distance
