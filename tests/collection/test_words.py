"""Searches by words, and by words and codes, of a collection in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import snuh
from snuh.collection.local.word_table import WORDS_FILE
from snuh.collection.query_text import QueryText, has_phrase, parse_query
from snuh.errors import InputError
from snuh.features.analyzer import Analyzer
from snuh.search import Hit
from tests.collection.worlds import toy_model

TEXTS = {
    "a": "The ship left the harbour at dawn",
    "b": "Ships and harbours, harbours and ships",
    "c": "dawn over the market",
    "d": "An unheard-of zeppelin over the harbour",
    "e": "zeppelins",
}


@pytest.fixture
def collection(tmp_path: Path) -> snuh.Collection:
    made = snuh.Collection.create(tmp_path / "c", toy_model())
    made.add({"id": doc_id, "text": text} for doc_id, text in TEXTS.items())
    return made


def ids(hits: list[Hit]) -> list[str]:
    return [hit.document.id for hit in hits]


def test_words_outside_the_vocabulary_are_found(collection: snuh.Collection) -> None:
    for mode in ("words", "hybrid"):
        hits = collection.search("zeppelin", mode=mode)  # type: ignore[arg-type]
        assert hits[0].document.id == "d" and hits[0].matched == ("zeppelin",)
        assert hits[0].score is not None and hits[0].word_score is not None
    assert collection.search("nowhere", mode="words") == []
    assert collection.search("nowhere", mode="hybrid") == []
    assert collection.search("", mode="hybrid") == []


def test_a_document_with_all_words_comes_first(collection: snuh.Collection) -> None:
    hits = collection.search("ship dawn", mode="hybrid", k=5)
    assert hits[0].document.id == "a" and hits[0].matched == ("ship", "dawn")
    assert hits[0].code_score is not None
    assert [hit.score for hit in hits] == sorted((hit.score or 0.0 for hit in hits), reverse=True)


def test_stop_words_alone_are_words() -> None:
    analyzer = Analyzer(languages=["en"], stop_words=["the", "and"])
    assert has_phrase("the ship and the crew", "and the", analyzer.without_stop_words())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("harbour -ship", {"d"}),
        ("harbour -ships", {"a", "d"}),  # toy_model has no stemmer
        ('"over the harbour"', {"d"}),
        ('"harbour the over"', set()),
        ('harbour -"left the harbour"', {"d"}),
        ("+harbour dawn", {"a", "d"}),
        ("+zeppelin +harbour", {"d"}),
    ],
)
def test_signs_and_quotes_are_understood(collection: snuh.Collection, query: str, expected: set[str]) -> None:
    assert set(ids(collection.search(query, mode="words"))) == expected


def test_filters_are_honoured_inside_the_search(collection: snuh.Collection) -> None:
    collection.add([{"id": "f", "text": "harbour", "year": 2020}])
    for mode in ("words", "hybrid"):
        assert ids(collection.search("harbour", mode=mode, where="year = 2020", k=1)) == ["f"]  # type: ignore[arg-type]


def test_writes_are_seen_by_all_processes(collection: snuh.Collection) -> None:
    other = snuh.Collection(collection.location)
    assert ids(other.search("zeppelin", mode="words")) == ["d"]
    collection.add([{"id": "d", "text": "no longer"}, {"id": "z", "text": "zeppelin zeppelin"}])
    assert ids(other.search("zeppelin", mode="words")) == ["z"]
    collection.delete(["z"])
    assert other.search("zeppelin", mode="words") == []
    assert ids(snuh.Collection(collection.location).search("longer", mode="words")) == ["d"]


def test_distances_are_those_of_the_codes_after_additions_and_replacements(
    collection: snuh.Collection,
) -> None:
    collection.search("ship", mode="hybrid")  # writes the file, which becomes the base
    collection.add({"id": f"{doc_id}2", "text": text[::-1] + " ship dawn"} for doc_id, text in TEXTS.items())
    for _ in range(2):
        exact = {hit.document.id: hit.distance for hit in collection.search("ship dawn", k=20)}
        hits = collection.search("ship dawn", mode="hybrid", k=20)
        assert {hit.document.id: hit.distance for hit in hits if hit.document.id in exact} == exact
        collection.add([{"id": "a", "text": "market market"}])


def test_the_file_is_rebuilt_when_it_is_damaged_or_missing(collection: snuh.Collection) -> None:
    folder = Path(str(collection.location))
    expected = ids(collection.search("harbour dawn", mode="hybrid"))
    file = folder / WORDS_FILE
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    for damage in (bytes(content), content[:100], b"", None):
        if damage is None:
            file.unlink()
        else:
            file.write_bytes(damage)
        assert ids(snuh.Collection(folder).search("harbour dawn", mode="hybrid")) == expected


def test_another_model_brings_its_own_words(collection: snuh.Collection) -> None:
    texts = list(TEXTS.values())
    model = (
        snuh.TextHasher("itq", 8, features={"min_df": 1, "max_df": 1.0, "language": "en"})
        .fit(texts * 4)
        .model_
    )
    assert model is not None
    assert ids(collection.search("zeppelin", mode="words")) == ["d"]
    collection.rehash(model)
    assert set(ids(collection.search("zeppelin", mode="words"))) == {"d", "e"}  # stemmed


def test_documents_and_codes_are_compared_by_codes(collection: snuh.Collection) -> None:
    with pytest.raises(InputError, match="needs the text of a query"):
        collection.similar("a", mode="hybrid")
    with pytest.raises(InputError, match="needs the text of a query"):
        collection.search_codes(collection.model.encode(["ship"]), mode="words")


@pytest.mark.parametrize("options", [{"radius": 3}, {"rerank": "cosine"}, {"approximate": True}])
def test_options_of_codes_are_refused(collection: snuh.Collection, options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="is for searches by codes"):
        collection.search("ship", mode="hybrid", **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="mode must be one of codes, words, hybrid"):
        collection.search("ship", mode="hybird")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("plain words, e-mail - and 5 -- x", QueryText("plain words, e-mail - and 5 -- x")),
        ("a +b -c", QueryText("a b", required=("b",), excluded=("c",))),
        ('a "b c" d', QueryText("a b c d", phrases=("b c",))),
        ('-"b c" d', QueryText("d", excluded_phrases=("b c",))),
        ('an "open quote', QueryText('an "open quote')),
        ("", QueryText("")),
    ],
)
def test_parsing(query: str, expected: QueryText) -> None:
    assert parse_query(query) == expected
