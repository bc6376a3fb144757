"""Whatever is done in whatever order, a collection answers like a plain dictionary of documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from snuh.collection import Collection
from snuh.corpus import Document
from snuh.errors import InputError
from snuh.filters import parse
from snuh.model import Model
from snuh.search import UnknownWordsError
from tests.collection.worlds import UNKNOWN, WORDS, Mirror, code_of, tiny_thresholds, toy_model

MODELS = [toy_model(0), toy_model(1), toy_model(2, bits=24)]
IDS = [f"d{number}" for number in range(9)]
FILTERS = ["year >= 2001", 'lang = "de"', "year is null or lang is null", 'not (labels contains "x")']
FILTERS += ['split = "test" and year < 2002', 'id in ("d1", "d3", "d8")', "`a.b` = 1"]

texts = st.lists(st.sampled_from([*WORDS, UNKNOWN]), max_size=3).map(" ".join)
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
filters = st.none() | st.sampled_from(FILTERS)
ks = st.integers(1, 12)
radii = st.none() | st.integers(0, 16)


class CollectionLikeDictionary(RuleBasedStateMachine):
    def fresh(self) -> Path | str:
        """Return an address at which nothing is."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.address = self.fresh()
        self.thresholds = tiny_thresholds(changes=3, batch=4)
        self.thresholds.__enter__()
        self.mirror = Mirror(MODELS[0])
        self.fields = {"id", "split", "labels"}

    @initialize()
    def make(self) -> None:
        self.one = Collection.create(self.address, MODELS[0])
        self.other = Collection(self.address)

    def teardown(self) -> None:
        self.one.close()
        self.other.close()
        self.thresholds.__exit__(None, None, None)

    @rule(new=st.lists(documents, max_size=7))
    def add(self, new: list[Document]) -> None:
        before = set(self.mirror.documents)
        added = self.one.add(new)
        self.mirror.add(new)
        self.fields |= {name for one in new for name in one.metadata}
        assert added.inserted == len(set(self.mirror.documents) - before)
        # A repeated id counts once in each batch that is written.
        batches = [{one.id for one in new[start : start + 4]} for start in range(0, len(new), 4)]
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
            if code_of(self.mirror.model, text) is None:
                with pytest.raises(UnknownWordsError):
                    collection.search(text, k=k, radius=radius)
            elif not self.knows(where):
                with pytest.raises(InputError, match="no document has a field"):
                    collection.search(text, k=k, where=where, radius=radius)
            else:
                expected = self.mirror.search(text, k=k, where=where, radius=radius)
                assert collection.search(text, k=k, where=where, radius=radius) == expected

    @rule(doc_id=st.sampled_from(IDS), k=ks, where=filters, radius=radii)
    def similar(self, doc_id: str, k: int, where: str | None, radius: int | None) -> None:
        if doc_id not in self.mirror.documents or not self.knows(where):
            return
        text = self.mirror.documents[doc_id].text
        if code_of(self.mirror.model, text) is None:
            with pytest.raises(UnknownWordsError):
                self.other.similar(doc_id, k=k, where=where, radius=radius)
        else:
            expected = self.mirror.search(text, k=k, where=where, radius=radius, but=doc_id)
            assert self.other.similar(doc_id, k=k, where=where, radius=radius) == expected

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
        assert self.one.search(WORDS[0], k=20) == self.mirror.search(WORDS[0], k=20)
        assert self.one.info().documents == len(self.mirror.documents)
        assert self.one.info().bits == self.mirror.model.bits

    def knows(self, where: str | None) -> bool:
        if where is None:
            return True
        return {field.keys[0] for field in parse(where).walk()} <= self.fields
