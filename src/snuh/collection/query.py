"""From codes to hits: what a search does with a model and the backend that holds its codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.collection.backend import Backend, Match
from snuh.encoder import Encoder
from snuh.errors import CollectionError, InputError, check_arguments, suggest
from snuh.features import TfidfFeatures
from snuh.filters import Filter, parse
from snuh.model import Model
from snuh.search import Hit

# Ordering a shortlist better than Hamming distance alone can.

Rerank = Literal["asymmetric", "cosine"]
SHORTLISTS: dict[Rerank, int] = {"asymmetric": 1_000, "cosine": 200}  # documents looked at, unless told
Row: TypeAlias = Any  # a CSR matrix of one row; scipy has no type stubs


def asymmetric_scores(encoder: Encoder, query: Row, codes: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Score codes by the query's real values: a bit that the query is unsure of counts little.

    Each differing bit costs the query's margin to its threshold, so 0 is best.
    """
    margins = encoder.margins(query)[0]
    differs = unpack(codes) != (margins > 0)
    # A bit that no text can change has an infinite margin, and never differs.
    weights = np.where(np.isfinite(margins), np.abs(margins), 0.0)
    scores: NDArray[np.float64] = -(differs @ weights)
    return scores


def cosine_scores(features: TfidfFeatures, query: Row, texts: Sequence[str]) -> NDArray[np.float64]:
    """Score texts by the cosine of their TF-IDF rows with the query's."""
    scores: NDArray[np.float64] = (features.transform(texts) @ query.T).toarray()[:, 0].astype(np.float64)
    return scores


# How to search a collection: the options that a caller may give, checked.

SPECIAL_FIELDS = ("id", "labels", "split")
MAX_SUGGESTED, MAX_LISTED = 1_000, 20


class SearchOptions(TypedDict, total=False):
    """What `search`, `search_many` and `similar` take beside the query.

    k: most documents to return, 10 by default.
    where: a filter on metadata, such as `year >= 2020 and lang = "en"`.
    radius: the most bits in which a hit may differ.
    rerank: order the nearest by more than their distance: "asymmetric" weighs each bit by how sure the query
        is of it, "cosine" compares the words themselves.
    shortlist: how many of the nearest to reorder; 1,000 and 200 by default.
    approximate: use the index built by `Collection.build_index` instead of scanning all codes.
    """

    k: int
    where: str | Filter | None
    radius: int | None
    rerank: Rerank | None
    shortlist: int | None
    approximate: bool


@dataclass(frozen=True, slots=True)
class Search:
    """Checked options."""

    k: int
    where: Filter | None
    radius: int | None
    rerank: Rerank | None
    limit: int  # documents to find, of which k are returned
    approximate: bool


def checked(options: SearchOptions) -> Search:
    """Fill in what is not given; InputError for what cannot be."""
    if not options.keys() <= SearchOptions.__annotations__.keys():  # to look at a signature takes its time
        check_arguments(_defaults, options, what="a search")
    return _defaults(**options)


def _defaults(
    k: int = 10,
    where: str | Filter | None = None,
    radius: int | None = None,
    rerank: Rerank | None = None,
    shortlist: int | None = None,
    approximate: bool = False,
) -> Search:
    if not _is_whole(k) or k < 1:
        raise InputError(f"k must be a whole number of at least 1, got {k}")
    if radius is not None and (not _is_whole(radius) or radius < 0):
        raise InputError(f"radius must be a whole number of at least 0, got {radius}")
    if rerank is not None and rerank not in SHORTLISTS:
        known = ", ".join(SHORTLISTS)
        raise InputError(f'rerank must be one of {known}, got "{rerank}"{suggest(str(rerank), SHORTLISTS)}')
    if shortlist is not None and (rerank is None or not _is_whole(shortlist) or shortlist < 1):
        raise InputError(f"shortlist must be a whole number of at least 1, and needs rerank; got {shortlist}")
    limit = k if rerank is None else max(k, shortlist or SHORTLISTS[rerank])
    return Search(k, parse(where) if isinstance(where, str) else where, radius, rerank, limit, approximate)


def check_fields(where: str | Filter, backend: Backend) -> Filter:
    """Return the filter; InputError where no document has had one of its fields."""
    condition = parse(where) if isinstance(where, str) else where
    for name in dict.fromkeys(field.keys[0] for field in condition.walk()):
        if name not in SPECIAL_FIELDS and not backend.has_field(name):
            known = [*SPECIAL_FIELDS, *backend.fields(limit=MAX_SUGGESTED)]
            listed = ", ".join(known[:MAX_LISTED]) + (", ..." if len(known) > MAX_LISTED else "")
            raise InputError(
                f'no document has a field "{name}"{suggest(name, known)}: expected one of {listed}'
            )
    return condition


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


CHARACTERS_OF_A_THREAD = 100_000


@dataclass(frozen=True, slots=True)
class QueryEngine:
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

    def find(self, codes: NDArray[np.uint8], how: Search, *, limit: int) -> list[list[Match]]:
        """Return the places of the `most` nearest documents of each code."""
        if how.where is not None:
            check_fields(how.where, self.backend)
        return self.backend.find(
            codes, k=limit, radius=how.radius, where=how.where, approximate=how.approximate
        )

    def plain_hits(self, found: Sequence[Sequence[Match]], *, k: int) -> list[list[Hit]]:
        """Turn the places of many queries into hits, and read their documents all at once."""
        documents = self.backend.documents_of({place.seq for places in found for place in places[:k]})
        return [[Hit(place.distance, documents[place.seq]) for place in places[:k]] for places in found]

    def hits(self, places: Sequence[Match], query: Any, how: Search) -> list[Hit]:
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
