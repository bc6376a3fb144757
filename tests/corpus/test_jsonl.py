from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from pathlib import Path

import pytest

from snuh.corpus import Document, TextSource, open_source
from snuh.errors import InputError


def read(path: Path, **options: str) -> list[Document]:
    source = open_source(path, **options)
    assert isinstance(source, TextSource)
    return list(source)


def error_message(path: Path, **options: str) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write(tmp_path: Path, *lines: str, name: str = "tickets.jsonl") -> Path:
    path = tmp_path / name
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_known_fields_are_taken_and_the_rest_is_metadata(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '{"id": "a", "text": "héllo", "labels": ["x", "y"], "split": "train", "stars": 4, "tags": {"k": 1}}',
    )
    assert read(path) == [Document("a", "héllo", ("x", "y"), "train", {"stars": 4, "tags": {"k": 1}})]


def test_a_missing_id_becomes_the_line_number(tmp_path: Path) -> None:
    path = write(tmp_path, '{"text": "one"}', "", "   ", '{"text": "four"}', '{"id": 7.0, "text": "five"}')
    assert [document.id for document in read(path)] == ["1", "4", "7"]


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ({"labels": "one; not two"}, ("one; not two",)),
        ({"labels": 3}, ("3",)),
        ({"labels": [1, 2.0, "b", "b", "", None]}, ("1", "2", "b")),
        ({"label": "single"}, ("single",)),
        ({"label": False}, ("false",)),
        ({"labels": None}, ()),
        ({}, ()),
    ],
)
def test_labels_come_in_several_shapes(
    tmp_path: Path, fields: dict[str, object], labels: tuple[str, ...]
) -> None:
    (document,) = read(write(tmp_path, json.dumps({"text": "t", **fields})))
    assert document.labels == labels
    assert document.metadata == {}


@pytest.mark.parametrize(
    ("written", "split"),
    [
        ("train", "train"),
        ("valid", "val"),
        ("validation", "val"),
        ("dev", "val"),
        ("cv", "val"),
        ("Test", "test"),
    ],
)
def test_split_names_of_other_tools_are_understood(tmp_path: Path, written: str, split: str) -> None:
    (document,) = read(write(tmp_path, json.dumps({"text": "t", "split": written})))
    assert document.split == split


def test_an_empty_text_is_passed_on(tmp_path: Path) -> None:
    assert read(write(tmp_path, '{"text": ""}'))[0].text == ""


def test_a_source_can_be_read_twice(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, '{"text": "one"}', '{"text": "two"}'))
    assert isinstance(source, TextSource)
    assert list(source) == list(source) != []
    assert source.name == "tickets.jsonl"


@pytest.mark.parametrize("name", ["tickets.jsonl.gz", "tickets.jsonl"])
def test_gzip_is_detected_by_its_content(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b'{"text": "one"}\n') + gzip.compress(b'{"text": "two"}'))
    assert [document.text for document in read(path)] == ["one", "two"]


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "tickets.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "one"}\r\n{"text": "two"}\r\n')
    assert [document.text for document in read(path)] == ["one", "two"]


def test_not_a_number_becomes_null(tmp_path: Path) -> None:
    assert read(write(tmp_path, '{"text": "t", "score": NaN}'))[0].metadata == {"score": None}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "t", "score": 1e999}', 'line 1: the field "score" has a number that is too large'),
        ('{"text": "t", "score": -Infinity}', 'line 1: the field "score" has a number that is too large'),
        ('{"text": "t", "score": [{"a": 1e999}]}', 'line 1: the field "score" has a number'),
        ('{"text": "t", "id": NaN}', 'line 1: "id" must be a string or a number, got nan'),
        ('{"text": "t", "id": 1e999}', 'line 1: "id" must be a string or a number, got inf'),
        ('{"text": "t", "labels": [NaN]}', "line 1: labels must be strings or numbers"),
        ('{"text": "t", "a": ' + "[" * 40 + "]" * 40 + "}", 'line 1: the field "a" is nested more than 32'),
        ('{"text": "t", "a": ' + '{"b":' * 500 + "1" + "}" * 501, "nested more than 32 levels deep"),
        ('{"text": "t", "year": 1, "metadata": {"year": 2}}', 'line 1: the field "year" is given twice'),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(write(tmp_path, line))


def test_integers_of_any_size_are_names(tmp_path: Path) -> None:
    number = "9" * 400
    (document,) = read(write(tmp_path, f'{{"text": "t", "id": {number}, "labels": [{number}]}}'))
    assert (document.id, document.labels) == (number, (number,))


def test_an_object_of_metadata_is_the_metadata(tmp_path: Path) -> None:
    line = '{"text": "t", "metadata": {"year": 2024, "id": 7}, "lang": "en"}'
    assert read(write(tmp_path, line))[0].metadata == {"year": 2024, "id": 7, "lang": "en"}
    assert read(write(tmp_path, '{"text": "t", "metadata": "plain"}'))[0].metadata == {"metadata": "plain"}


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snuh.corpus.reader.MAX_RECORD_BYTES", 1 << 20)
    path = write(tmp_path, '{"text": "one"}\n{"text": "' + "x" * (8 << 20) + '"}')
    tracemalloc.start()
    with pytest.raises(InputError, match=r"line 2: has more than 1 MiB: split it"):
        read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


def test_a_link_to_an_endless_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"zero.jsonl is not a regular file"):
        read(tmp_path / "zero.jsonl")


def test_a_name_that_is_not_utf8_is_shown_with_replacements(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/t\xff.jsonl"))
    path.write_text('{"text": "t"}')
    source = open_source(path)
    assert source.name == "t\N{REPLACEMENT CHARACTER}.jsonl"
    assert [document.text for document in read(path)] == ["t"]


@pytest.mark.parametrize("name", ["long.jsonl", "long.jsonl.gz"])
def test_progress_is_the_fraction_of_bytes_read(tmp_path: Path, name: str) -> None:
    lines = "".join(json.dumps({"text": f"{number * 7919 % 10007:x} " * 40}) + "\n" for number in range(5000))
    path = tmp_path / name
    path.write_bytes(gzip.compress(lines.encode()) if name.endswith("gz") else lines.encode())
    source = open_source(path)
    assert isinstance(source, TextSource)
    reports: list[float] = []
    assert sum(1 for _ in source.documents(reports.append)) == 5000
    assert 5 <= len(reports) <= 100
    assert reports == sorted(reports)
    assert reports[-1] == 1.0
    assert any(0.3 < report < 0.7 for report in reports)


def test_text_and_id_may_be_under_other_names(tmp_path: Path) -> None:
    path = write(tmp_path, '{"key": 9, "body": "b", "text": "a title"}')
    assert read(path, text_field="body", id_field="key") == [Document("9", "b", metadata={"text": "a title"})]


def test_a_missing_text_field_lists_the_present_ones(tmp_path: Path) -> None:
    path = write(tmp_path, '{"text": "fine"}', '{"id": "b", "texts": "x"}')
    assert error_message(path) == (
        'tickets.jsonl line 2: there is no field "text" (did you mean "texts"?); fields here: "id", "texts"; '
        "name the one that holds the text with --text-field"
    )


def test_a_missing_id_field_is_refused_if_it_was_named(tmp_path: Path) -> None:
    message = error_message(write(tmp_path, '{"text": "x", "id": "b"}'), id_field="key")
    assert message.startswith('tickets.jsonl line 1: there is no field "key"; fields here: "text", "id";')
    assert message.endswith("--id-field")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{broken", "not valid JSON (Expecting property name enclosed in double quotes at character 2)"),
        ('{"text": "cut', "not valid JSON (Invalid control character at character 14)"),
        ('{"text": "a\x01b"}', "not valid JSON (Invalid control character at character 12)"),
        ('{"text": "t", "n": ' + "7" * 6000 + "}", "holds a number of more than 4,300 digits: shorten it"),
        ("[1]", "expected a JSON object, got a list"),
        ('"words"', "expected a JSON object, got a string"),
        ("null", "expected a JSON object, got null"),
        ('{"text": 5}', '"text" must be a string, got a number'),
        ('{"text": null}', '"text" must be a string, got null'),
        ('{"text": "t", "id": [1]}', '"id" must be a string or a number, got a list'),
        ('{"text": "t", "id": true}', '"id" must be a string or a number, got true or false'),
        ('{"text": "t", "split": "holdout"}', 'split must be train, val or test, got "holdout"'),
        ('{"text": "t", "split": 1}', "split must be train, val or test, got a number"),
        (
            '{"text": "t", "labels": {"a": 1}}',
            "labels must be strings or numbers, or a list of them, got an object",
        ),
        ('{"text": "half \\ud83d"}', "holds half a character (\\ud83d)"),
        ('{"text": "t", "id": "half \\uD83D"}', "holds half a character (\\ud83d)"),
        ("[" * 100_000, "not valid JSON (nested too deeply)"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, line: str, reason: str) -> None:
    message = error_message(write(tmp_path, '{"text": "fine"}', "", line))
    assert message.startswith("tickets.jsonl line 3: " + reason)


def test_a_file_that_ends_in_a_text_is_refused_with_the_start_of_it(tmp_path: Path) -> None:
    path = tmp_path / "tickets.jsonl"
    path.write_text('{"text": "fine"}\n{"text": "cut')
    reason = "not valid JSON (Unterminated string starting at character 10)"
    assert error_message(path) == f"tickets.jsonl line 2: {reason}"


def test_a_character_in_two_escapes_is_accepted(tmp_path: Path) -> None:
    assert read(write(tmp_path, '{"text": "\\ud83d\\ude00"}'))[0].text == "\N{GRINNING FACE}"


def test_duplicate_ids_are_refused_with_both_lines(tmp_path: Path) -> None:
    path = write(
        tmp_path, '{"id": "a", "text": ""}', '{"id": "b", "text": ""}', "", '{"id": "a", "text": "x"}'
    )
    assert (
        error_message(path)
        == 'tickets.jsonl line 4: the id "a" is already used on line 1: ids must be unique'
    )


def test_a_given_id_may_not_repeat_a_line_number(tmp_path: Path) -> None:
    path = write(tmp_path, '{"text": ""}', '{"id": 1, "text": ""}')
    assert 'line 2: the id "1" is already used on line 1' in error_message(path)


def test_duplicate_ids_far_apart_are_found(tmp_path: Path) -> None:
    lines = [f'{{"id": "n{number}", "text": ""}}' for number in range(70_000)]
    path = write(tmp_path, *lines, '{"id": "n5", "text": ""}')
    assert 'line 70001: the id "n5" is already used on line 6' in error_message(path)


def test_invalid_utf8_is_refused_with_line_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes(b'{"text": "fine"}\n{"text": "caf\xe9"}\n')
    assert (
        error_message(path)
        == "old.jsonl line 2: byte 14 (0xe9) is not valid UTF-8: convert the file to UTF-8"
    )


def test_a_truncated_gzip_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f'{{"text": "{n * n}"}}\n' for n in range(5000)).encode())
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    assert "the compressed file is truncated or damaged" in error_message(path)
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    path.write_bytes(damaged)
    assert error_message(path).startswith("cut.jsonl.gz line ")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_a_file_without_documents_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    assert error_message(path) == "empty.jsonl: there are no documents in it"


def test_a_file_that_vanished_is_refused(tmp_path: Path) -> None:
    source = open_source(path := write(tmp_path, '{"text": "t"}'))
    path.unlink()
    assert isinstance(source, TextSource)
    with pytest.raises(InputError, match=r"cannot read .*tickets.jsonl: No such file"):
        list(source)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that opens and cannot be read")
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to("/proc/self/mem")
    source = open_source(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match=r"cannot read .*a\.jsonl: Input/output error"):
        list(source)
