from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from snuh.corpus import Document, TextSource, open_source
from snuh.errors import InputError


def read(path: Path, **options: str) -> list[Document]:
    source = open_source(path, **options)
    assert isinstance(source, TextSource)
    return list(source)


def error_message(path: Path, content: str) -> str:
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_columns_are_taken_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('labels,id,text,stars,split\nx;y|z,a,"two\nlines, ""quoted""",4,dev\n,b,,5,\n')
    assert read(path) == [
        Document("a", 'two\nlines, "quoted"', ("x", "y", "z"), "val", {"stars": "4"}),
        Document("b", "", metadata={"stars": "5"}),
    ]


def test_a_single_label_is_not_split(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\nt,one;still one\n")
    assert read(path)[0].labels == ("one;still one",)


def test_a_row_without_id_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,id\n"two\nlines",\n\nsecond,\nthird,c\n')
    assert [document.id for document in read(path)] == ["1", "2", "c"]


def test_an_unnamed_index_column_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",text\n0,zero\n1,one\n")
    assert read(path)[1] == Document("2", "one")


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_tab_separated_values_are_read(tmp_path: Path, name: str) -> None:
    content = '\ufeffid\ttext\na\thello, world\nb\t"tab\there"\n'.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert read(path) == [Document("a", "hello, world"), Document("b", "tab\there")]


def test_huge_fields_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["text"], ["word " * 200_000]])
    assert len(read(path)[0].text) == 1_000_000


def test_a_row_of_the_wrong_width_is_refused(tmp_path: Path) -> None:
    message = error_message(tmp_path / "a.csv", 'id,text\na,"x\ny"\nb,too,many\n')
    assert message == "a.csv line 4: expected 2 fields as in the header, got 3"


def test_a_missing_text_column_is_refused(tmp_path: Path) -> None:
    assert error_message(tmp_path / "a.csv", "id,body\na,hello\n") == (
        'a.csv line 2: there is no field "text"; fields here: "id", "body"; '
        "name the one that holds the text with --text-field; "
        "the first line of the file must hold the column names"
    )


def test_a_message_stays_short_where_the_header_is_missing(tmp_path: Path) -> None:
    message = error_message(tmp_path / "a.csv", '1,"' + "long\ntext " * 1000 + '"\n2,more\n')
    assert "the first line of the file must hold the column names" in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("id,text,id\na,b,c\n", 'line 1: the column "id" appears twice'),
        ("\nid,text\n", "line 1: expected the column names, got a blank line"),
        ('text\nfine\n"never closed\nmore\n', "line 3: not a valid row"),
        ('text\n"closed" too early\n', "line 2: not a valid row"),
        ("text\n", "a.csv: there are no documents in it"),
        ("", "a.csv: there are no documents in it"),
        ("id,text\na,x\nb,y\na,z\n", 'line 4: the id "a" is already used on line 2'),
    ],
)
def test_a_broken_table_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    assert reason in error_message(tmp_path / "a.csv", content)


def test_invalid_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'text\n"two\nlines \xff"\n')
    with pytest.raises(InputError, match=r"a\.csv line 3: byte 7 \(0xff\) is not valid UTF-8"):
        read(path)


@pytest.mark.parametrize(
    "content",
    [
        'id;text;stars\na;"two; three, four";5\n',
        "id\ttext\tstars\na\ttwo; three, four\t5\n",
        "id|text|stars\na|two; three, four|5\n",
        "'id','text','stars'\n'a','two; three, four','5'\n",
        'id,text,stars\na,"two; three, four",5\n',
    ],
)
def test_the_header_tells_the_delimiter_and_the_quotes(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert read(path) == [Document("a", "two; three, four", metadata={"stars": "5"})]


def test_labels_of_another_column_are_split_as_well(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,topics,part\nt,x;y,test\n")
    assert read(path, labels_field="topics", split_field="part") == [Document("1", "t", ("x", "y"), "test")]
    with pytest.raises(InputError, match=r'no field "topic".*--labels-field'):
        read(path, labels_field="topic")
