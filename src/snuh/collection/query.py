"""Queries on a collection: their options, matching by code, reranking, and hits as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.collection.backend import Backend, Match, WordQuery
from snuh.collection.query_text import has_phrase, parse_query
from snuh.corpus import Document
from snuh.corpus.document import excerpt
from snuh.encoder import Encoder
from snuh.errors import CollectionError, InputError, check_arguments, suggest
from snuh.features import TfidfFeatures
from snuh.filters import Filter, parse
from snuh.filters.tree import ID, LABELS, SPLIT
from snuh.model import Model
from snuh.search import Hit

Rerank = Literal["asymmetric", "cosine"]
Mode = Literal["codes", "words", "hybrid"]
MODES: tuple[Mode, ...] = ("codes", "words", "hybrid")
FeatureRows: TypeAlias = Any  # a CSR matrix; scipy has no type stubs

DEFAULT_SHORTLISTS: dict[Rerank, int] = {"asymmetric": 1_000, "cosine": 200}
SPECIAL_FIELDS = (ID, LABELS, SPLIT)
MAX_COMPARED_FIELDS, MAX_LISTED_FIELDS = 1_000, 20  # in the message about an unknown field
PHRASE_CANDIDATES = 4  # documents whose texts are read for each hit of a query with phrases
MAX_PHRASE_CANDIDATES = 20_000  # documents with all words of a phrase that are read at most, the best first
READ_AT_ONCE = 8  # documents, to compare their texts with a query
SINGLE_THREAD_CHARACTERS = 100_000  # tokenizing less takes no longer than starting threads


class SearchOptions(TypedDict, total=False):
    """The options of `search`, `search_many` and `similar`.

    k: maximum number of hits, 10 by default.
    where: a filter on metadata, such as `year >= 2020 and lang = "en"`.
    radius: maximum distance of a hit, in bits.
    rerank: how to reorder the nearest documents: "asymmetric" weights each bit by the query's margin,
        "cosine" compares TF-IDF vectors.
    shortlist: number of nearest documents to rerank; 1,000 for "asymmetric" and 200 for "cosine" by default.
    approximate: use the index built by `Collection.build_index` instead of scanning all codes.
    characters: maximum number of characters of each hit's text; all by default.
    mode: how texts are searched: by their "codes" (the default), by their "words" (BM25), or "hybrid", by the
        sum of both, standardized. Only collections in a folder have an index of words.
    """

    k: int
    where: str | Filter | None
    radius: int | None
    rerank: Rerank | None
    shortlist: int | None
    approximate: bool
    characters: int | None
    mode: Mode


@dataclass(frozen=True, slots=True)
class ResolvedOptions:
    """Validated search options with their defaults filled in."""

    k: int
    where: Filter | None
    radius: int | None
    rerank: Rerank | None
    limit: int  # matches to find, of which the best k become hits
    approximate: bool
    characters: int | None
    mode: Mode


def resolve_options(options: SearchOptions) -> ResolvedOptions:
    """Validate options and fill in defaults; InputError for invalid ones."""
    # Inspecting a signature is slow, so it happens only to report an unknown option.
    if not options.keys() <= SearchOptions.__annotations__.keys():
        check_arguments(_resolve, options, what="a search")
    return _resolve(**options)


def _resolve(
    k: int = 10,
    where: str | Filter | None = None,
    radius: int | None = None,
    rerank: Rerank | None = None,
    shortlist: int | None = None,
    approximate: bool = False,
    characters: int | None = None,
    mode: Mode = "codes",
) -> ResolvedOptions:
    if not _is_integer(k) or k < 1:
        raise InputError(f"k must be an integer of at least 1, got {k}")
    if radius is not None and (not _is_integer(radius) or radius < 0):
        raise InputError(f"radius must be an integer of at least 0, got {radius}")
    if rerank is not None and rerank not in DEFAULT_SHORTLISTS:
        choices = ", ".join(DEFAULT_SHORTLISTS)
        suggestion = suggest(str(rerank), DEFAULT_SHORTLISTS)
        raise InputError(f'rerank must be one of {choices}, got "{rerank}"{suggestion}')
    if shortlist is not None and (rerank is None or not _is_integer(shortlist) or shortlist < 1):
        raise InputError(f"shortlist must be an integer of at least 1, and needs rerank; got {shortlist}")
    if characters is not None and (not _is_integer(characters) or characters < 0):
        raise InputError(f"characters must be an integer of at least 0, got {characters}")
    if mode not in MODES:
        raise InputError(f'mode must be one of {", ".join(MODES)}, got "{mode}"{suggest(str(mode), MODES)}')
    if mode != "codes":
        for name, value in (("radius", radius), ("rerank", rerank), ("approximate", approximate or None)):
            if value is not None:
                raise InputError(f'{name} is for searches by codes: omit it, or use mode="codes"')
    condition = None if where is None else parse_filter(where)
    limit = k if rerank is None else max(k, shortlist or DEFAULT_SHORTLISTS[rerank])
    return ResolvedOptions(k, condition, radius, rerank, limit, approximate, characters, mode)


def check_by_codes(options: ResolvedOptions) -> None:
    """Raise InputError if options ask for words where only codes are compared."""
    if options.mode != "codes":
        raise InputError(f'mode="{options.mode}" needs the text of a query: omit it, or use search')


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def parse_filter(where: str | Filter) -> Filter:
    """Return a filter that may be given as a text."""
    if isinstance(where, str):
        return parse(where)
    if not hasattr(where, "walk"):
        raise InputError(f"where must be a filter such as 'year >= 2020', got {type(where).__name__}")
    return where


def check_filter(where: str | Filter, backend: Backend) -> Filter:
    """Parse a filter; InputError if it uses a field that no document has had."""
    condition = parse_filter(where)
    for name in dict.fromkeys(field.keys[0] for field in condition.walk()):
        if name not in SPECIAL_FIELDS and not backend.has_field(name):
            known = [*SPECIAL_FIELDS, *backend.fields(limit=MAX_COMPARED_FIELDS)]
            listed = ", ".join(known[:MAX_LISTED_FIELDS]) + (
                ", ..." if len(known) > MAX_LISTED_FIELDS else ""
            )
            raise InputError(
                f'no document has a field "{name}"{suggest(name, known)}: expected one of {listed}'
            )
    return condition


def check_texts(texts: Iterable[str]) -> list[str]:
    """Return queries as a list; InputError unless all are texts."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(f"expected several texts, such as a list, got {type(texts).__name__}")
    listed = list(texts)
    for text in listed:
        if not isinstance(text, str):
            raise InputError(f"a query must be a text, got {type(text).__name__}")
    return listed


@dataclass(frozen=True, slots=True)
class QueryEngine:
    """A model and the backend that holds its codes."""

    model: Model
    fingerprint: str
    backend: Backend

    @property
    def features(self) -> TfidfFeatures:
        """The features of the model."""
        if self.model.features is None:
            raise CollectionError(
                f"{self.backend.name} has a model without a vocabulary: restore it from a copy"
            )
        return self.model.features

    def transform(self, texts: Sequence[str]) -> FeatureRows:
        """Return the feature rows of queries."""
        is_small = sum(map(len, texts)) < SINGLE_THREAD_CHARACTERS
        return self.features.transform(texts, threads=1 if is_small else None)

    def find(self, codes: NDArray[np.uint8], options: ResolvedOptions, *, limit: int) -> list[list[Match]]:
        """Return the `limit` nearest matches of each code."""
        if options.where is not None:
            check_filter(options.where, self.backend)
        return self.backend.find(
            codes, k=limit, radius=options.radius, where=options.where, approximate=options.approximate
        )

    def load_hits(self, matches: Sequence[Sequence[Match]], options: ResolvedOptions) -> list[list[Hit]]:
        """Turn the first k matches of each query into hits."""
        unscored = [[(match, None) for match in query[: options.k]] for query in matches]
        return self._read_hits(unscored, options)

    def rank_hits(
        self, matches: Sequence[Sequence[Match]], queries: FeatureRows, options: ResolvedOptions
    ) -> list[list[Hit]]:
        """Turn the matches of queries (one row each) into hits, reranked if the options say so."""
        if options.rerank is None:
            return self.load_hits(matches, options)
        score_all = self._asymmetric_scores if options.rerank == "asymmetric" else self._cosine_scores
        ranked: list[list[tuple[Match, float | None]]] = []
        for query_matches, scores in zip(matches, score_all(matches, queries), strict=True):
            order = np.argsort(-scores, kind="stable")[: options.k]  # equal scores stay ordered by distance
            ranked.append([(query_matches[index], float(scores[index])) for index in order.tolist()])
        return self._read_hits(ranked, options)

    def _read_hits(
        self, ranked: Sequence[Sequence[tuple[Match, float | None]]], options: ResolvedOptions
    ) -> list[list[Hit]]:
        """Read the documents of matches with their scores, all at once."""
        documents = self.backend.documents_of(
            {match.seq for query in ranked for match, _ in query}, characters=options.characters
        )
        return [
            [Hit(match.distance, documents[match.seq], score) for match, score in query] for query in ranked
        ]

    def search_text(self, query: str, row: FeatureRows, options: ResolvedOptions) -> list[Hit]:
        """Search by words, or by words and codes.

        Args:
            query: in the language of `parse_query`.
            row: the feature row of its text, which is empty if the model knows no word of it.
            options: of the search.
        """
        if options.where is not None:
            check_filter(options.where, self.backend)
        parsed, analyzer = parse_query(query), self.features.analyzer
        margins = None
        if options.mode == "hybrid" and row.nnz:
            margins = self.model.encoder.margins(row)[0]
        words = WordQuery(
            text=parsed.text,
            required=(*parsed.required, *parsed.phrases),
            excluded=parsed.excluded,
            margins=margins,
        )
        checked = bool(parsed.phrases or parsed.excluded_phrases)
        keeping = analyzer.without_stop_words()
        limit = PHRASE_CANDIDATES * options.k if checked else options.k
        while True:
            ranked = self.backend.rank(words, analyzer=analyzer, k=limit, where=options.where)
            documents = self.backend.documents_of(
                [match.seq for match in ranked], characters=None if checked else options.characters
            )
            kept = [
                match
                for match in ranked
                if all(has_phrase(documents[match.seq].text, phrase, keeping) for phrase in parsed.phrases)
                and not any(
                    has_phrase(documents[match.seq].text, phrase, keeping)
                    for phrase in parsed.excluded_phrases
                )
            ]
            if not checked or len(kept) >= options.k or len(ranked) < limit or limit >= MAX_PHRASE_CANDIDATES:
                break
            limit = min(4 * limit, MAX_PHRASE_CANDIDATES)
        wanted = {term: word for word in parsed.text.split() for term in keeping.terms(word)}
        hits = []
        for match in kept[: options.k]:
            document = documents[match.seq]
            matched = tuple(dict.fromkeys(word for term, word in wanted.items() if term in match.terms))
            hits.append(
                Hit(
                    match.distance,
                    excerpt(document, options.characters) if checked else document,
                    match.score,
                    matched,
                    match.word_score,
                    match.code_score,
                )
            )
        return hits

    def _asymmetric_scores(
        self, matches: Sequence[Sequence[Match]], queries: FeatureRows
    ) -> Iterator[NDArray[np.float64]]:
        for index, query_matches in enumerate(matches):
            seqs = [match.seq for match in query_matches]
            rows = self.backend.codes_of(seqs)
            codes = rows.codes[np.searchsorted(rows.seqs, seqs)]
            yield asymmetric_scores(self.model.encoder, queries[[index]], codes)

    def _cosine_scores(
        self, matches: Sequence[Sequence[Match]], queries: FeatureRows
    ) -> Iterator[NDArray[np.float64]]:
        """Each document is read once, however many queries it matches."""
        seqs = sorted({match.seq for query in matches for match in query})
        if not seqs:
            yield from (np.zeros(0) for _ in matches)
            return
        rows = self.features.transform(self._texts(seqs))
        for index, query_matches in enumerate(matches):
            wanted = np.searchsorted(seqs, [match.seq for match in query_matches])
            yield (rows[wanted] @ queries[index].T).toarray()[:, 0].astype(np.float64)

    def _texts(self, seqs: Sequence[int]) -> Iterator[str]:
        """Yield the texts of documents, a few of which are in memory at a time."""
        for start in range(0, len(seqs), READ_AT_ONCE):
            part = seqs[start : start + READ_AT_ONCE]
            documents = self.backend.documents_of(part)
            yield from (documents[seq].text for seq in part)


def asymmetric_scores(encoder: Encoder, query: FeatureRows, codes: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Score codes against the query's real values: each differing bit costs the query's margin.

    The margin is the distance of the real value from the bit's threshold. Scores are at most 0.
    """
    margins = encoder.margins(query)[0]
    differs = unpack(codes) != (margins > 0)
    # A constant bit has an infinite margin, and never differs.
    weights = np.where(np.isfinite(margins), np.abs(margins), 0.0)
    scores: NDArray[np.float64] = -(differs @ weights)
    return scores


def document_to_json(document: Document) -> dict[str, Any]:
    """Convert to JSON values."""
    return {
        "id": document.id,
        "text": document.text,
        "labels": list(document.labels),
        "split": document.split,
        "metadata": document.metadata,
    }


def hit_to_json(hit: Hit) -> dict[str, Any]:
    """Convert to JSON values: those of the document, with the distance and the score."""
    values = {"distance": hit.distance, "score": hit.score, **document_to_json(hit.document)}
    if hit.matched is not None:
        values |= {
            "matched": list(hit.matched),
            "word_score": hit.word_score,
            "code_score": hit.code_score,
        }
    return values
