"""Searches by words, and by words and codes, of a collection in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import snuh
from snuh.collection.copy import copy_collection
from snuh.collection.local.word_table import WORDS_FILE, WordTable
from snuh.errors import InputError
from snuh.features.analyzer import Analyzer
from snuh.search import Hit, QueryText, parse_query
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


def test_a_note_tells_which_words_no_document_has(collection: snuh.Collection) -> None:
    nothing = collection.search("nowhere")
    assert nothing == [] and nothing.note == 'no document contains "nowhere"'
    some = collection.search("zeppelin Nowhere")
    assert some and some.note == 'no document contains "Nowhere"'
    by_meaning = collection.search("sail rope")
    assert by_meaning and by_meaning.note is not None
    assert by_meaning.note.endswith('"sail" or "rope": the hits are the nearest by meaning')
    assert collection.search("harbour").note is None
    assert (
        collection.search("harbour", where='id = "e"', mode="words").note == "no document matches the query"
    )
    assert (
        collection.search("?!").note == collection.search("-ship").note == "the query has no word to look for"
    )


def test_similar_documents_at_the_same_distance_are_ordered_by_words(tmp_path: Path) -> None:
    collection = snuh.Collection.create(tmp_path / "c", toy_model())
    texts = ["ship", "ship fog", "ship apple", "ship pear", "ship apple pear", "ship apple pear fig", "coin"]
    collection.add({"id": text, "text": text} for text in texts)
    collection.add([{"id": "query", "text": "ship apple pear"}])
    exact = [hit for hit in collection.search("ship", k=9, mode="codes") if hit.distance == 0]
    assert len(exact) == 6  # the model knows "ship" only, so these are all the same to it
    expected = ["ship apple pear", "ship apple pear fig", "ship pear", "ship apple", "ship"]
    for k in (1, 2, 5):
        found = ids(collection.similar("query", k=k))
        assert found[:2] == expected[: min(k, 2)] and set(found) <= set(expected)
    assert ids(collection.similar("query", k=1, where='id = "ship"')) == ["ship"]


def test_a_search_by_codes_orders_the_same_distance_by_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = snuh.Collection.create(tmp_path / "c", toy_model())
    texts = ["ship", "ship fig", "ship pear", "ship fig pear", "coin"]  # the model knows "ship" and "coin"
    collection.add({"id": text, "text": text} for text in texts)
    for ahead in (0, 50):  # with none, the search is repeated at the distance of the last hit
        monkeypatch.setattr("snuh.collection.query.TIES_AHEAD", ahead)
        for options in (
            {"mode": "codes"},
            {"rerank": "asymmetric"},
            {"rerank": "asymmetric", "shortlist": 1},
        ):
            for k in (1, 2, 4):
                found = ids(collection.search("ship fig pear", k=k, **options))  # type: ignore[arg-type]
                assert found[0] == "ship fig pear" and len(found) == k
        assert ids(collection.search("ship pear", k=2, mode="codes")) == ["ship pear", "ship fig pear"]
        assert ids(collection.search("ship", k=4, mode="codes")) == ["ship", *texts[1:4]]


def test_without_an_index_of_words_the_nearest_codes_are_reordered(tmp_path: Path) -> None:
    collection = snuh.Collection.create(tmp_path / "c", toy_model(), words=False)
    collection.add({"id": doc_id, "text": text} for doc_id, text in TEXTS.items())
    hits = collection.search("ship dawn", k=3)
    assert hits[0].document.id == "a" and hits[0].matched == ("ship", "dawn")
    assert "without an index of words" in str(hits.note)
    assert ids(collection.search('harbour -"over the harbour"')) == ["a", "c"]  # c has a similar code
    assert not collection.info().has_words and not (tmp_path / "c" / WORDS_FILE).exists()
    nothing = collection.search("nowhere")
    assert nothing == [] and "knows no word" in str(nothing.note)
    with pytest.raises(InputError, match="this collection has no index of words"):
        collection.search("ship", mode="words")
    copy_collection(tmp_path / "c", tmp_path / "copy")
    assert not snuh.Collection(tmp_path / "copy").info().has_words


def test_a_document_with_all_words_comes_first(collection: snuh.Collection) -> None:
    hits = collection.search("ship dawn", mode="hybrid", k=5)
    assert hits[0].document.id == "a" and hits[0].matched == ("ship", "dawn")
    assert hits[0].code_score is not None
    assert [hit.score for hit in hits] == sorted((hit.score or 0.0 for hit in hits), reverse=True)


def test_stop_words_alone_are_words() -> None:
    analyzer = Analyzer(languages=["en"], stop_words=["the", "and"])
    phrase = parse_query('"and the"')
    assert phrase.accepts("the ship and the crew", analyzer.without_stop_words())
    assert not phrase.accepts("the ship and a crew", analyzer.without_stop_words())


def test_a_long_query_is_plain_text() -> None:
    pasted = 'He said "good morning" to the -crew of the old ship that had left the harbour at dawn'
    assert parse_query(pasted) == QueryText(pasted)


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


def test_a_filter_follows_documents_without_a_code(collection: snuh.Collection) -> None:
    collection.add([{"id": "y", "text": "ship", "year": 2020}])
    assert collection.search("blimp", where="year = 2020", mode="words") == []  # the filter is remembered
    collection.add([{"id": "z", "text": "blimp", "year": 2020}])
    collection.build_index()  # writes the codes, which become the base
    for _ in range(2):
        assert ids(collection.search("blimp", where="year = 2020", mode="words")) == ["z"]
    collection.add([{"id": "z", "text": "blimp", "year": 1990}])
    assert collection.search("blimp", where="year = 2020", mode="words") == []


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
        exact = {hit.document.id: hit.distance for hit in collection.search("ship dawn", k=20, mode="codes")}
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


def test_a_check_compares_the_words_with_the_documents(
    collection: snuh.Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.delete(["a"])
    collection.add([{"id": "b", "text": "no ships"}])
    assert collection.check() == []
    monkeypatch.setattr(WordTable, "_drop", lambda table, seqs: None)  # deleted documents stay in the index
    collection.delete(["b"])
    (problem,) = collection.check()
    assert "the index of words disagrees with the documents: delete words.bin" in problem


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
    with pytest.raises(InputError, match="mode must be one of hybrid, words, codes"):
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
