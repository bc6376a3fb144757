from __future__ import annotations

from snuh.corpus import Document
from snuh.search import Hit, Hits
from snuh.text import html_table

HITS = Hits(
    [
        Hit(3, Document("a", "first\nline", ("x",), metadata={"year": 2020, "score": "A"}), score=0.5),
        Hit(4, Document("<b>", "second & last", split="test")),
    ]
)


def test_hits_become_a_data_frame() -> None:
    frame = HITS.to_pandas()
    expected = ["id", "distance", "score", "text", "labels", "split", "year", "metadata.score"]
    assert list(frame.columns) == expected
    assert frame["distance"].tolist() == [3, 4]
    assert frame["labels"].tolist() == [["x"], []]
    assert list(Hits().to_pandas().columns) == expected[:6]


def test_hits_are_shown_as_a_table() -> None:
    assert repr(HITS) == "2 hits: distance, id, text\n   3  a  first line\n   4  <b>  second & last"
    html = HITS._repr_html_()
    assert "<td>0.500</td><td>a</td><td>first line</td>" in html
    assert "<td>&lt;b&gt;</td><td>second &amp; last</td>" in html


def test_facts_have_their_names_in_the_first_column() -> None:
    assert html_table([("bits", 64)]) == "<table><tr><th>bits</th><td>64</td></tr></table>"
