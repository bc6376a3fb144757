"""Queries on a collection: their options, ranking by words and codes, and hits as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.collection.backend import Backend, Match, NewDocument, Ranking, WordQuery
from snuh.corpus import Document
from snuh.encoder import Encoder
from snuh.encoding import encode_documents
from snuh.errors import CollectionError, InputError, check_arguments, suggest
from snuh.features import TfidfFeatures
from snuh.features.analyzer import Analyzer
from snuh.filters import Filter, parse
from snuh.filters.tree import ID, LABELS, SPLIT
from snuh.model import Model
from snuh.search import Hit, Hits, QueryText, check_query, excerpt, no_known_words, parse_query

Rerank = Literal["asymmetric", "cosine"]
Mode = Literal["codes", "words", "hybrid"]
MODES: tuple[Mode, ...] = ("hybrid", "words", "codes")
FeatureRows: TypeAlias = Any  # SparseRows or a CSR matrix; scipy has no type stubs

DEFAULT_SHORTLISTS: dict[Rerank, int] = {"asymmetric": 1_000, "cosine": 200}
SPECIAL_FIELDS = (ID, LABELS, SPLIT)
MAX_COMPARED_FIELDS, MAX_LISTED_FIELDS = 1_000, 20  # in the message about an unknown field
PHRASE_CANDIDATES = 4  # documents whose texts are read for each hit of a query with phrases
MAX_PHRASE_CANDIDATES = 20_000  # documents with all words of a phrase that are read at most, the best first
FEEDBACK_DOCUMENTS, FEEDBACK_CHARACTERS = 10, 2_000  # that are added to a query, and of each text
FEEDBACK_CODE_WEIGHT = 0.7  # when they are looked for: a wrong one costs more than a missed one
MAX_TIES = 10_000  # documents at the same distance that words put in order
TIES_AHEAD = 50  # documents that are found beyond the last hit, which often complete its distance
VECTOR_SAMPLE = 200  # documents whose words are encoded, to tell which codes were made with a vector
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
    mode: how texts are searched: by their words and codes ("hybrid", the default), by their "words" (BM25),
        or by their "codes", the default with `radius`, `rerank` or `approximate`, which are about codes.
    """

    k: int
    where: str | Filter | None
    radius: int | None
    rerank: Rerank | None
    shortlist: int | None
    approximate: bool
    characters: int | None
    mode: Mode | None


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


def resolve_options(options: SearchOptions, *, has_text: bool = True) -> ResolvedOptions:
    """Validate options and fill in defaults; InputError for invalid ones.

    Without the text of a query, as for `similar`, only codes are compared.
    """
    if not has_text:
        if (mode := options.get("mode")) not in (None, "codes"):
            raise InputError(f'mode="{mode}" needs the text of a query: omit it, or use search')
        options = {**options, "mode": "codes"}
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
    mode: Mode | None = None,
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
    if mode is not None and mode not in MODES:
        raise InputError(f'mode must be one of {", ".join(MODES)}, got "{mode}"{suggest(str(mode), MODES)}')
    for name, value in (("radius", radius), ("rerank", rerank), ("approximate", approximate or None)):
        if value is not None:
            if mode not in (None, "codes"):
                raise InputError(f'{name} is for searches by codes: omit it, or use mode="codes"')
            mode = "codes"
    condition = None if where is None else parse_filter(where)
    limit = k if rerank is None else max(k, shortlist or DEFAULT_SHORTLISTS[rerank])
    return ResolvedOptions(k, condition, radius, rerank, limit, approximate, characters, mode or "hybrid")


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
    """Return queries as a list; InputError unless all are texts with something in them."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(f"expected several texts, such as a list, got {type(texts).__name__}")
    listed = list(texts)
    for text in listed:
        if not isinstance(text, str):
            raise InputError(f"a query must be a text, got {type(text).__name__}")
        check_query(text)
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

    def transform(self, texts: Sequence[str], *, vectors: Sequence[Any] | None = None) -> FeatureRows:
        """Return the feature rows of queries, joined with their vectors if there are any."""
        threads = 1 if sum(map(len, texts)) < SINGLE_THREAD_CHARACTERS else None
        if vectors is None and self.model.embed is None:
            return self.features.rows(texts, threads=threads)
        return query_rows(self.model, texts, vectors=vectors, threads=threads)

    def new_documents(self, documents: Sequence[Document]) -> list[NewDocument]:
        """Return documents with the codes that the model makes of them."""
        return [
            row
            for part in encode_documents(self.model, documents)
            for row in map(NewDocument, part.documents, part.packed())
        ]

    def codes_by_seq(self, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the stored codes of documents that have one."""
        rows = self.backend.codes_of(seqs)
        return dict(zip(rows.seqs.tolist(), map(bytes, rows.codes), strict=True))

    def vector_fraction(self) -> float | None:
        """Return the fraction of a sample of documents whose code is not that of their words alone.

        None if the model reads words alone, or there are no codes.
        """
        if self.model.vectors is None:
            return None
        sample = self.backend.sample_codes(VECTOR_SAMPLE)
        if not len(sample.codes):
            return None
        words = self.features.rows(self._texts(sample.seqs.tolist()))
        return float((self.model.encoder.encode(words) != sample.codes).any(axis=1).mean())

    def find(self, codes: NDArray[np.uint8], options: ResolvedOptions, *, limit: int) -> list[list[Match]]:
        """Return the `limit` nearest matches of each code."""
        if options.where is not None:
            check_filter(options.where, self.backend)
        return self.backend.find(
            codes, k=limit, radius=options.radius, where=options.where, approximate=options.approximate
        )

    def search_texts(
        self, texts: Sequence[str], options: ResolvedOptions, *, vectors: Sequence[Any] | None = None
    ) -> list[Hits]:
        """Search for texts, with their vectors if there are any, in the mode of the options."""
        if options.mode == "codes":
            return self._search_by_codes(texts, options, vectors)
        parsed = [parse_query(text) for text in texts]
        if options.where is not None:
            check_filter(options.where, self.backend)
        if options.mode == "words":
            return [self._search_by_words(query, None, options) for query in parsed]
        rows = self.transform([query.text for query in parsed], vectors=vectors)
        search = self._search_by_words if self.backend.has_words else self._search_shortlist
        return [search(query, rows[[index]], options) for index, query in enumerate(parsed)]

    def search_codes(self, codes: NDArray[np.uint8], options: ResolvedOptions) -> list[Hits]:
        """Return the nearest documents of each code."""
        return self._load_hits(self.find(codes, options, limit=options.limit), options)

    def similar(self, seq: int, options: ResolvedOptions) -> Hits:
        """Return the nearest documents of a stored one, without itself; ties are ordered by their words."""
        codes = self.backend.codes_of([seq]).codes
        text = self.backend.documents_of([seq])[seq].text
        if not len(codes):
            return Hits(note=no_known_words(text))
        (matches,) = self._nearest(codes, [text], options, limit=options.limit + 1)
        others = [match for match in matches if match.seq != seq][: options.limit]
        rows = None if options.rerank is None else self.features.transform([text])
        (hits,) = self._rank_hits([others], rows, options)
        return hits

    def _nearest(
        self, codes: NDArray[np.uint8], texts: Sequence[str], options: ResolvedOptions, *, limit: int
    ) -> list[list[Match]]:
        """Return the `limit` nearest matches of each code, those at the same distance ordered by words.

        Some more are found: if the last of them is as near as the last to return, all at that distance are.
        """
        if not self.backend.has_words:
            return self.find(codes, options, limit=limit)
        ahead = limit + TIES_AHEAD
        nearest = self.find(codes, options, limit=ahead)
        for index, (text, matches) in enumerate(zip(texts, nearest, strict=True)):
            found = matches
            is_cut = len(matches) == ahead and matches[-1].distance == matches[limit - 1].distance
            if is_cut and not (options.approximate and self.backend.index_info() is not None):
                around = replace(options, radius=matches[-1].distance, approximate=False)
                (found,) = self.find(codes[[index]], around, limit=limit + MAX_TIES)
            elif len(matches) > limit:
                last = matches[limit - 1].distance
                found = [match for match in matches if match.distance <= last]
            nearest[index] = self._order_ties(text, found)[:limit]
        return nearest

    def _order_ties(self, text: str, matches: list[Match]) -> list[Match]:
        """Order matches by distance, then by the words that they have in common with a text."""
        distances = [match.distance for match in matches]
        if len(set(distances)) == len(distances):
            return matches
        analyzer = self.features.analyzer
        scores = self.backend.word_scores(text, [match.seq for match in matches], analyzer=analyzer)
        order = np.lexsort(
            (-scores, np.array(distances))
        )  # stable: what words cannot tell stays in order of insertion
        return [matches[index] for index in order.tolist()]

    def _search_by_codes(
        self, texts: Sequence[str], options: ResolvedOptions, vectors: Sequence[Any] | None
    ) -> list[Hits]:
        rows = self.transform(texts, vectors=vectors)
        is_known = np.diff(rows.indptr) > 0
        known_rows = rows if is_known.all() else rows[np.flatnonzero(is_known)]
        known_texts = [text for text, has_code in zip(texts, is_known.tolist(), strict=True) if has_code]
        codes = self.model.encoder.encode(known_rows)
        matches = self._nearest(codes, known_texts, options, limit=options.limit)
        found = iter(self._rank_hits(matches, known_rows, options))
        return [
            next(found) if has_code else Hits(note=no_known_words(text))
            for text, has_code in zip(texts, is_known.tolist(), strict=True)
        ]

    def _rank_hits(
        self, matches: Sequence[Sequence[Match]], queries: FeatureRows, options: ResolvedOptions
    ) -> list[Hits]:
        """Turn the matches of queries (one row each) into hits, reranked if the options say so.

        Equal scores keep the order of the matches.
        """
        if options.rerank is None:
            return self._load_hits(matches, options)
        score_all = self._asymmetric_scores if options.rerank == "asymmetric" else self._cosine_scores
        ranked: list[list[tuple[Match, float | None]]] = []
        for query_matches, scores in zip(matches, score_all(matches, queries), strict=True):
            order = np.argsort(-scores, kind="stable")[: options.k]
            ranked.append([(query_matches[index], float(scores[index])) for index in order.tolist()])
        return self._read_hits(ranked, options)

    def _load_hits(self, matches: Sequence[Sequence[Match]], options: ResolvedOptions) -> list[Hits]:
        """Turn the first k matches of each query into hits."""
        return self._read_hits(
            [[(match, None) for match in query[: options.k]] for query in matches], options
        )

    def _read_hits(
        self, ranked: Sequence[Sequence[tuple[Match, float | None]]], options: ResolvedOptions
    ) -> list[Hits]:
        """Read the documents of matches with their scores, all at once."""
        documents = self.backend.documents_of(
            {match.seq for query in ranked for match, _ in query}, characters=options.characters
        )
        return [
            Hits(Hit(match.distance, documents[match.seq], score) for match, score in query)
            for query in ranked
        ]

    def _search_by_words(self, query: QueryText, row: FeatureRows | None, options: ResolvedOptions) -> Hits:
        """Search by words, and by the code of the query's feature row if there is one that is not empty."""
        analyzer = self.features.analyzer
        margins = self.model.encoder.margins(row)[0] if row is not None and row.nnz else None
        words = WordQuery(
            text=query.text,
            required=(*query.required, *query.phrases),
            excluded=query.excluded,
            code=None if margins is None else np.packbits(margins > 0),
            margins=margins,
        )
        if margins is not None:
            words = self._with_feedback(words, options)
        # Phrases are looked for in the texts of the best documents that have all their words.
        keeping = analyzer.without_stop_words()
        limit = PHRASE_CANDIDATES * options.k if query.has_phrases else options.k
        while True:
            ranking = self.backend.rank(words, analyzer=analyzer, k=limit, where=options.where)
            documents = self.backend.documents_of(
                [match.seq for match in ranking.matches],
                characters=None if query.has_phrases else options.characters,
            )
            kept = ranking.matches
            if query.has_phrases:
                kept = [match for match in kept if query.accepts(documents[match.seq].text, keeping)]
            is_complete = len(kept) >= options.k or len(ranking.matches) < limit
            if not query.has_phrases or is_complete or limit >= MAX_PHRASE_CANDIDATES:
                break
            limit = min(4 * limit, MAX_PHRASE_CANDIDATES)
        surfaces = query.surfaces(keeping)
        hits = [
            Hit(
                match.distance,
                excerpt(documents[match.seq], options.characters),
                match.score,
                tuple(dict.fromkeys(word for term, word in surfaces.items() if term in match.terms)),
                match.word_score,
                match.code_score,
            )
            for match in kept[: options.k]
        ]
        return Hits(hits, note=_note(query, ranking, surfaces, analyzer, has_hits=bool(hits)))

    def _with_feedback(self, query: WordQuery, options: ResolvedOptions) -> WordQuery:
        """Add the words and the codes of the best documents to a query (pseudo-relevance feedback, RM3).

        The best document counts most, the n-th 1/n as much.
        """
        analyzer = self.features.analyzer
        first = replace(query, code_weight=FEEDBACK_CODE_WEIGHT)
        best = self.backend.rank(first, analyzer=analyzer, k=FEEDBACK_DOCUMENTS, where=options.where).matches
        seqs = [match.seq for match in best]
        documents = self.backend.documents_of(seqs, characters=FEEDBACK_CHARACTERS)
        coded = self.backend.codes_of(seqs)
        codes = dict(zip(coded.seqs.tolist(), 2.0 * unpack(coded.codes) - 1.0, strict=True))
        related: Counter[str] = Counter()
        margins = _unit(query.margins)
        direction = np.zeros_like(margins)
        for rank, seq in enumerate(seqs, start=1):
            terms = analyzer.terms(documents[seq].text)
            for term in terms:
                related[term] += 1.0 / (rank * len(terms))  # type: ignore[assignment]
            direction += codes.get(seq, 0.0) / rank
        return replace(query, related=related, margins=margins + _unit(direction))

    def _search_shortlist(self, query: QueryText, row: FeatureRows, options: ResolvedOptions) -> Hits:
        """Search without an index of words: order the nearest documents by their words and codes."""
        if not row.nnz:
            return Hits(note=no_known_words(query.text))
        limit = max(options.k, DEFAULT_SHORTLISTS["cosine"])
        (matches,) = self.find(self.model.encoder.encode(row), options, limit=limit)
        (by_code,) = self._asymmetric_scores([matches], row)
        keeping, surfaces = (
            self.features.analyzer.without_stop_words(),
            query.surfaces(self.features.analyzer),
        )
        accepted: list[bool] = []
        matched: list[tuple[str, ...]] = []

        def inspected() -> Iterator[str]:
            for text in self._texts([match.seq for match in matches]):
                accepted.append(query.accepts(text, keeping))
                terms = set(keeping.terms(text))
                matched.append(tuple(dict.fromkeys(word for term, word in surfaces.items() if term in terms)))
                yield text

        by_words = (
            (self.features.transform(inspected()) @ self._words(row).T).toarray()[:, 0].astype(np.float64)
        )
        parts = [_standardized(by_words), _standardized(by_code)]
        scores = parts[0] + parts[1]
        order = [index for index in np.argsort(-scores, kind="stable").tolist() if accepted[index]]
        order = order[: options.k]
        documents = self.backend.documents_of(
            [matches[index].seq for index in order], characters=options.characters
        )
        return Hits(
            (
                Hit(
                    matches[index].distance,
                    documents[matches[index].seq],
                    float(scores[index]),
                    matched[index],
                    float(parts[0][index]),
                    float(parts[1][index]),
                )
                for index in order
            ),
            note=f"without an index of words: the {limit} nearest by codes, ordered by words and codes",
        )

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
        rows, queries = self.features.transform(self._texts(seqs)), self._words(queries)
        for index, query_matches in enumerate(matches):
            wanted = np.searchsorted(seqs, [match.seq for match in query_matches])
            yield (rows[wanted] @ queries[index].T).toarray()[:, 0].astype(np.float64)

    def _words(self, rows: FeatureRows) -> FeatureRows:
        """Return the columns of words of feature rows, as a CSR matrix."""
        return rows.tocsr()[:, : len(self.features.terms)]

    def _texts(self, seqs: Sequence[int]) -> Iterator[str]:
        """Yield the texts of documents, a few of which are in memory at a time."""
        for start in range(0, len(seqs), READ_AT_ONCE):
            part = seqs[start : start + READ_AT_ONCE]
            documents = self.backend.documents_of(part)
            yield from (documents[seq].text for seq in part)


def query_rows(
    model: Model, texts: Sequence[str], *, vectors: Sequence[Any] | None = None, threads: int | None = None
) -> FeatureRows:
    """Return the rows that a model encodes of texts, with the vectors of those that have one."""
    if vectors is not None and len(vectors) != len(texts):
        raise InputError(f"expected a vector, or null, for each of {len(texts)} texts, got {len(vectors)}")
    given = [None] * len(texts) if vectors is None else vectors  # which may be an array
    pairs = enumerate(zip(texts, given, strict=True), start=1)
    queries = [Document(f"query {number}", text, vector=vector) for number, (text, vector) in pairs]
    return model.document_rows(queries, threads=threads)


def _unit(vector: NDArray[np.floating] | None) -> NDArray[np.float64]:
    """Scale to length 1; infinite entries, of bits that never differ, become 0."""
    finite = np.where(np.isfinite(vector), vector, 0.0).astype(np.float64)  # type: ignore[arg-type]
    return finite / max(float(np.linalg.norm(finite)), 1e-12)


def _standardized(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = float(scores.std()) if len(scores) else 0.0
    standardized: NDArray[np.float64] = (scores - scores.mean()) / deviation if deviation else 0.0 * scores
    return standardized


def _note(
    query: QueryText, ranking: Ranking, surfaces: Mapping[str, str], analyzer: Analyzer, *, has_hits: bool
) -> str | None:
    """Return a sentence on words of a query that no document has; None if all is as expected."""
    wanted = [term for term in analyzer.terms(query.text) if term in surfaces] or list(surfaces)
    missing = dict.fromkeys(surfaces[term] for term in wanted if term not in ranking.found)
    # An identifier or a compound is there if one of its terms is.
    for term in wanted:
        if term in ranking.found:
            missing.pop(surfaces[term], None)
    if not wanted:
        return "the query has no word to look for"
    if not missing:
        return None if has_hits else "no document matches the query"
    note = "no document contains " + " or ".join(f'"{word}"' for word in missing)
    if has_hits and not any(term in ranking.found for term in wanted):
        note += ": the hits are the nearest by meaning"
    return note


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
