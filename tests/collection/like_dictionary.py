"""Whatever is done in whatever order, a collection answers like a plain dictionary of documents."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from snuh.collection import Collection
from snuh.corpus import Document
from snuh.dedup import deduplicate
from snuh.errors import InputError
from snuh.filters import parse
from snuh.model import Model
from snuh.search import Hit
from snuh.server.job_runner import duplicates_with_titles, find_duplicates
from tests.collection.worlds import (
    UNKNOWN,
    WORDS,
    Mirror,
    assert_best,
    code_of,
    rerank_score,
    tiny_thresholds,
    toy_model,
)

MODELS = [toy_model(0), toy_model(1), toy_model(2, bits=24)]
IDS = [f"d{number}" for number in range(14)]
FILTERS = ["year >= 2001", 'lang = "de"', "year is null or lang is null", 'not (labels contains "x")']
FILTERS += ['split = "test" and year < 2002', 'id in ("d1", "d3", "d8")', "`a.b` = 1"]

texts = st.lists(st.sampled_from([*WORDS, UNKNOWN, ""]), min_size=1, max_size=3).map(" ".join)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "year": st.sampled_from([2000, 2001, 2002.0, None, "2001"]),
        "lang": st.sampled_from(["de", "fr"]),
        "a.b": st.integers(0, 1),
    },
)
documents = st.builds(
    Document,
    id=st.sampled_from(IDS),
    text=texts,
    labels=st.lists(st.sampled_from(["x", "y"]), max_size=2).map(tuple),
    split=st.sampled_from([None, "train", "test"]),
    metadata=metadata,
)
many_documents = st.lists(documents, min_size=5, max_size=14)
filters = st.none() | st.sampled_from(FILTERS)
ks = st.integers(1, 12)
radii = st.none() | st.integers(0, 16)
reranks = st.sampled_from(["asymmetric", "cosine"])
duplicate_options = st.fixed_dictionaries(
    {
        "threshold": st.sampled_from([0.5, 0.9]),
        "measure": st.sampled_from(["cosine", "overlap"]),
        "radius": st.sampled_from([None, 0, 12]),
        "keep": st.sampled_from(["first", "last", "longest"]),
        "group_by": st.sampled_from([None, "labels"]),
    }
)


class CollectionLikeDictionary(RuleBasedStateMachine):
    def fresh(self) -> Path | str:
        """Return an address at which nothing is."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.address = self.fresh()
        self.thresholds = tiny_thresholds(changes=3, batch=4)
        self.thresholds.__enter__()
        self.only_lists = patch("snuh.index.ivf.MAX_SCANNED_FRACTION", 2.0)  # few codes would all be scanned
        self.only_lists.start()
        self.one: Any = None
        self.other: Any = None
        self.mirror = Mirror(MODELS[0])
        self.fields = {"id", "split", "labels"}
        self.found: dict[str, Any] = {"largest": []}  # duplicates, at some earlier time

    @initialize(before=many_documents | st.just([]), has_index=st.booleans(), after=many_documents)
    def make(self, before: list[Document], has_index: bool, after: list[Document]) -> None:
        self.one = Collection.create(self.address, MODELS[0])
        self.other = Collection(self.address)
        self.mirror.has_words = self.one.info().has_words
        self.add(before)
        if has_index:
            self.build_index(k=1, recall=0.1)
        self.add(after)

    def teardown(self) -> None:
        # First, and even if `make` was never called: a patch left behind ends in the middle of another test.
        self.only_lists.stop()
        self.thresholds.__exit__(None, None, None)
        for collection in (self.one, self.other):
            if collection is not None:
                collection.close()

    @rule(new=many_documents)
    def add_many(self, new: list[Document]) -> None:
        self.add(new)

    @rule(new=st.lists(documents, max_size=7))
    def add(self, new: list[Document]) -> None:
        before = set(self.mirror.documents)
        added = self.one.add(new)
        self.mirror.add(new)
        assert added.inserted == len(set(self.mirror.documents) - before)
        # The last document of an id counts in each batch that is written.
        batches = [{one.id: one for one in new[start : start + 4]} for start in range(0, len(new), 4)]
        self.fields |= {name for batch in batches for one in batch.values() for name in one.metadata}
        assert added.inserted + added.replaced == sum(map(len, batches))

    @rule(ids=st.lists(st.sampled_from(IDS), max_size=4))
    def delete(self, ids: list[str]) -> None:
        if set(ids) <= set(self.mirror.documents):
            assert self.one.delete(ids) == len(set(ids))
            self.mirror.delete(ids)
        else:
            with pytest.raises(InputError, match="has no document"):
                self.one.delete(ids)

    @rule(where=st.sampled_from(FILTERS))
    def delete_where(self, where: str) -> None:
        if not self.knows(where):
            return
        gone = [one.id for one in self.mirror.chosen(where)]
        assert self.one.delete_where(where) == len(gone)
        self.mirror.delete(gone)

    @rule(text=texts, k=ks, where=filters, radius=radii)
    def search(self, text: str, k: int, where: str | None, radius: int | None) -> None:
        for collection in (self.one, self.other):
            if not text.strip():
                with pytest.raises(InputError, match="the query is empty"):
                    collection.search(text, k=k, radius=radius, mode="codes")
            elif not self.knows(where):
                with pytest.raises(InputError, match="no document has a field"):
                    collection.search(text, k=k, where=where, radius=radius, mode="codes")
            else:
                is_known = code_of(self.mirror.model, text) is not None
                expected = self.mirror.search(text, k=k, where=where, radius=radius) if is_known else []
                assert collection.search(text, k=k, where=where, radius=radius, mode="codes") == expected

    @rule(text=texts, k=ks, where=filters)
    def search_by_words_and_codes(self, text: str, k: int, where: str | None) -> None:
        if code_of(self.mirror.model, text) is None or not self.knows(where):
            return
        for collection in (self.one, self.other):
            if collection.info().has_words:
                scores = self.mirror.hybrid_scores(text, where=where)
                assert_best(collection.search(text, k=k, where=where), scores, k=k)

    @rule(doc_id=st.sampled_from(IDS), k=ks, where=filters, radius=radii)
    def similar(self, doc_id: str, k: int, where: str | None, radius: int | None) -> None:
        if doc_id not in self.mirror.documents or not self.knows(where):
            return
        text = self.mirror.documents[doc_id].text
        hits = self.other.similar(doc_id, k=k, where=where, radius=radius)
        if code_of(self.mirror.model, text) is None:
            assert not hits and hits.note is not None
            return
        every = self.mirror.search(text, k=len(IDS), where=where, radius=radius, but=doc_id)
        assert [hit.distance for hit in hits] == [hit.distance for hit in every[:k]]
        assert all(hit in every for hit in hits)  # their order is tested with words
        assert len({hit.document.id for hit in hits}) == len(hits)

    @rule(text=texts, k=ks, where=filters, rerank=reranks, shortlist=st.none() | st.integers(1, 9))
    def search_with_reranking(
        self, text: str, k: int, where: str | None, rerank: str, shortlist: int | None
    ) -> None:
        model = self.mirror.model
        if code_of(model, text) is None or not self.knows(where):
            return
        nearest = self.mirror.search(text, k=max(k, shortlist or 200), where=where)
        scores = [rerank_score(model, text, hit.document.text, rerank) for hit in nearest]
        for collection in (self.one, self.other):
            hits = collection.search(text, k=k, where=where, rerank=rerank, shortlist=shortlist)
            assert len(hits) == min(k, len(nearest))
            assert_reranked(hits, nearest, scores)

    @rule(k=ks, recall=st.sampled_from([0.1, 1.0]))
    def build_index(self, k: int, recall: float) -> None:
        codes = [code_of(self.mirror.model, one.text) for one in self.mirror.documents.values()]
        built = self.one.build_index(k=k, recall=recall)
        assert built.documents == len(codes) - codes.count(None)
        assert built.recall >= recall
        assert self.one.info().index == self.other.info().index == built

    @rule(text=texts, k=ks, where=filters, radius=radii)
    def search_approximately(self, text: str, k: int, where: str | None, radius: int | None) -> None:
        if code_of(self.mirror.model, text) is None or not self.knows(where):
            return
        exact = self.mirror.search(text, k=len(IDS), where=where, radius=radius)
        for collection in (self.one, self.other):
            hits = collection.search(text, k=k, where=where, radius=radius, approximate=True)
            assert hits == [hit for hit in exact if hit in hits]
            if collection.info().index is None:
                assert hits == exact[:k]
            elif radius is None:
                assert len(hits) == min(k, len(exact))

    @rule(options=duplicate_options, drop=st.booleans())
    def duplicates(self, options: dict[str, Any], drop: bool) -> None:
        report = deduplicate(self.other.model, self.other.documents(), **options)
        assert report == deduplicate(self.mirror.model, self.mirror.documents.values(), **options)
        self.found = find_duplicates(self.other, lambda _: None, **options)
        assert self.found["duplicates"] == report.dropped
        if drop:
            dropped = [one.id for one in report.duplicates if not one.keep]
            assert self.one.delete(dropped) == report.dropped
            self.mirror.delete(dropped)

    @rule()
    def show_duplicates_that_were_found_earlier(self) -> None:
        for cluster in duplicates_with_titles(self.one, self.found)["largest"]:
            assert len(cluster) > 1
            shown = {one[name] for one in cluster for name in ("id", "representative")}
            assert shown <= set(self.mirror.documents)

    @rule(model=st.sampled_from(MODELS), by_other=st.booleans())
    def rehash(self, model: Model, by_other: bool) -> None:
        (self.other if by_other else self.one).rehash(model)
        self.mirror.model = model

    @rule()
    def swap_roles(self) -> None:
        self.one, self.other = self.other, self.one

    @rule()
    def reopen(self) -> None:
        self.one.close()
        self.one = Collection(self.address)

    @rule()
    def close_all_and_reopen(self) -> None:
        self.one.close()
        self.other.close()
        self.one, self.other = Collection(self.address), Collection(self.address)

    @precondition(lambda self: self.mirror.documents)
    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        doc_id = data.draw(st.sampled_from(sorted(self.mirror.documents)))
        assert self.other.get(doc_id) == self.mirror.documents[doc_id]

    @invariant()
    def holds_the_same(self) -> None:
        for collection in (self.one, self.other):
            assert list(collection.documents()) == list(self.mirror.documents.values())
            assert len(collection) == len(self.mirror.documents)
            assert [name for name in IDS if name in collection] == [
                n for n in IDS if n in self.mirror.documents
            ]

    @invariant()
    def finds_the_same(self) -> None:
        assert self.one.search(WORDS[0], mode="codes", k=20) == self.mirror.search(WORDS[0], k=20)
        assert self.one.info().documents == len(self.mirror.documents)
        assert self.one.info().bits == self.mirror.model.bits

    def knows(self, where: str | None) -> bool:
        if where is None:
            return True
        return {field.keys[0] for field in parse(where).walk()} <= self.fields


def assert_reranked(hits: list[Hit], nearest: list[Hit], scores: list[float]) -> None:
    """Check that hits are the best of the nearest documents, whose plainly computed scores are given."""
    rows = [nearest.index(replace(hit, score=None)) for hit in hits]
    assert [hit.score for hit in hits] == pytest.approx([scores[row] for row in rows], abs=1e-5)
    assert [hit.score for hit in hits] == pytest.approx(sorted(scores, reverse=True)[: len(hits)], abs=1e-5)
    ranks = [(-hit.score, row) for hit, row in zip(hits, rows, strict=True)]
    assert ranks == sorted(ranks)
    # Equal texts have equal scores, so they stay in their order.
    left_out = sorted(set(range(len(nearest))) - set(rows))
    for first, second in combinations([*rows, *left_out], 2):
        assert first < second or nearest[first].document.text != nearest[second].document.text
