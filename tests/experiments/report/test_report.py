"""The page: the figures of the tables, whole and harmless HTML, and only what a file holds."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from snuh.errors import InputError
from snuh.experiments.runner import TARGETS
from tests.experiments.report.worlds import (
    HOSTILE,
    Reader,
    compared,
    costed,
    everything,
    mapped,
    page_of,
    scored,
    studied,
    summary_of,
    swept,
)
from tests.experiments.worlds import finished, table_cells


def plain(cells: list[list[str]]) -> list[list[str]]:
    return [[cell.replace("**", "") for cell in line] for line in cells]


def test_table1_has_the_cells_that_reproduce_prints() -> None:
    default = TARGETS["table1"].default
    choice = replace(default, corpora=("ng20",), methods=("snuh-plus", "snuh", "itq"), bits=(16, 64))
    printed = table_cells(TARGETS["table1"].markdown(choice, compared()))
    table = Reader(page_of(compared())).tables["Table 1, ng20"]
    assert table == plain([line[1:] for line in printed])
    assert table[1][:2] == ["snuh-plus", ".546 ± .010 (3)"]
    assert "<strong>.546</strong> ± .010 (3)" in page_of(compared())


@pytest.mark.parametrize(
    ("target", "caption", "corpora"),
    [("trees", "trees of snuh", ("ng20",)), ("efficiency", "Seconds and memory of training", ("ng20",))],
)
def test_other_tables_have_the_cells_that_reproduce_prints(
    target: str, caption: str, corpora: tuple[str, ...]
) -> None:
    choice = replace(TARGETS[target].default, corpora=corpora)
    rows = swept() + costed()
    printed = table_cells(TARGETS[target].markdown(choice, rows))
    assert len(printed) > 3
    assert Reader(page_of(rows)).tables[caption] == plain(printed)


def test_seeds_count_once_by_corpus_and_a_corpus_once_over_all() -> None:
    gains = {("ng20", 16): (0.02, 0.04), ("ng20", 64): (0.05,), ("tmc", 16): (0.09,), ("tmc", 64): (0.11,)}
    rows = [finished(0.9, method="snuh-plus", seed=7)]  # nothing to pair it with
    for (corpus, bits), of_seeds in gains.items():
        for seed, gain in enumerate(of_seeds):
            key = {"corpus": corpus, "bits": bits, "seed": seed}
            rows += [finished(0.5, method="itq", **key), finished(0.5 + gain, method="snuh-plus", **key)]
    page = page_of(rows)
    titles, against = Reader(page).tables["snuh-plus against the others: difference of precision@100"]
    assert [title.strip("● ") for title in titles] == ["against", "overall", "", "ng20", "tmc"]
    # Two differences, .03 and .05, have the standard error .01; t(1) = 12.706.
    assert against[3] == "+.040(−.087 to +.167), 2"
    assert against[1] == "+.070(−.311 to +.451), 2"  # of .04 and .10
    assert "<strong>+" not in page


def test_a_difference_that_is_the_same_everywhere_is_bold_and_shown_once() -> None:
    rows = [row | {"corpus": corpus} for corpus in ("ng20", "reuters", "tmc") for row in compared()]
    page = page_of(rows)
    tables = Reader(page).tables
    assert tables["snuh-plus against the others: difference of precision@100"][1][:2] == [
        "snuh",
        "+.020(+.020 to +.020), 3",
    ]
    assert "<strong>+.020</strong>" in page
    assert [line[0] for line in tables["snuh against the others: difference of precision@100"]] == [
        "against",
        "itq",
    ]


def test_each_length_is_compared_over_the_seeds_that_both_have() -> None:
    text = summary_of(compared())
    section = text[text.index("snuh-plus against the others, over the seeds") :]
    lines = table_cells(section.split("\n\n")[1])
    assert lines[0] == ["against", "corpus", "16 bits", "64 bits"]
    of_itq = next(line for line in lines if line[:2] == ["itq", "ng20"])
    # .12, .14 and .16 on seeds 0, 1 and 2: a mean of .14 +- 4.303 * .02 / sqrt(3)
    assert of_itq[2] == of_itq[3] == "**+.140** (+.090 to +.190), 3"
    two_seeds = [row for row in compared() if row["seed"] < 2]
    assert "over the seeds\n" not in summary_of(two_seeds) and "over the seeds:" not in summary_of(two_seeds)


def test_corpora_of_the_same_documents_count_once_over_all() -> None:
    others = [row | {"corpus": "tmc500"} for row in compared() if row["corpus"] == "tmc"]
    for row in others:
        if row["method"] == "itq":
            row["precision"] = {"100": row["precision"]["100"] + 0.1}
    text = summary_of([*compared(), *others]).split("snuh-plus against:")[1].split("over the seeds:")[0]
    lines = {line[0]: line for line in table_cells(text)}
    # ng20 has .14; tmc has .14 and tmc500 .04, together .09
    assert lines["itq"][1].split()[0] == "+.115" and lines["itq"][1].endswith(", 2")


def test_snuh_is_compared_with_its_variants() -> None:
    rows = []
    for corpus in ("ng20", "tmc"):
        for bits in (16, 64):
            for correlation, precision in (("none", 0.5), (None, 0.55)):
                given = {} if correlation is None else {"correlation": correlation}
                rows.append(finished(precision, corpus=corpus, bits=bits, parameters=given))
    tables = Reader(page_of(rows)).tables
    assert tables["SNUH against the others: difference of precision@100"][1][:2] == [
        "SNUH_ind",
        "+.050(+.050 to +.050), 2",
    ]


def test_each_part_is_there_only_where_the_file_has_rows_of_it() -> None:
    parts = {
        "table1": compared(),
        "sweeps": swept(),
        "efficiency": costed(),
        "score": scored(),
        "map": mapped(),
        "case-study": studied(),
    }
    for name, rows in parts.items():
        found = {section["class"] for section in Reader(page_of(rows)).all("section") if "class" in section}
        also = {"sweeps": {"table1", "table2"}, "score": {"table1"}, "table1": {"pairs"}}.get(name, set())
        assert found == {name} | also, name


def test_protocols_have_sections_of_their_own() -> None:
    reader = Reader(page_of(everything()))
    ids = [attributes["id"] for attributes in reader.all("h2") + reader.all("h3")]
    assert ids[:2] == ["label-free", "labels"]
    assert {f"label-free-{name}" for name in ("table1", "table2", "appendix")} <= set(ids)
    assert {"labels-table1", "labels-pairs"} <= set(ids)
    linked = {link["href"] for link in reader.all("a")}
    assert linked == {f"#{name}" for name in ids}


def test_the_page_is_self_contained() -> None:
    text = page_of(everything())
    reader = Reader(text)
    kinds = {kind for kind, _ in reader.elements}
    assert not kinds & {"script", "link", "img", "iframe", "object", "image"}
    assert not any({"src", "onload", "onclick"} & set(attributes) for _, attributes in reader.elements)
    assert not re.search(r"url\(|@import|https?:", text)
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    references = {attributes["href"] for kind in ("a", "use") for attributes in reader.all(kind)}
    assert references and references <= {f"#{one}" for one in ids}


def test_headings_tables_and_drawings_can_be_read_aloud() -> None:
    reader = Reader(page_of(everything()))
    levels = [int(kind[1]) for kind, _ in reader.elements if re.fullmatch("h[1-6]", kind)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(cell.get("scope") in ("col", "row") for cell in reader.all("th"))
    drawings = [drawing for drawing in reader.all("svg") if "aria-hidden" not in drawing]
    assert drawings and all(drawing["role"] == "img" for drawing in drawings)
    assert page_of(everything()).count("</title><desc>") == len(drawings)


def test_hostile_titles_and_labels_are_shown_as_they_are() -> None:
    rows = studied(title=HOSTILE, label=HOSTILE) + mapped()
    rows[-1]["artifact_data"] = {"labels": [HOSTILE, "b", "c"], "points": rows[-1]["artifact_data"]["points"]}
    reader = Reader(page_of(rows))
    assert not {"script", "img"} & {kind for kind, _ in reader.elements}
    assert reader.tables["ng20, snuh, 128 bits, seed 0"][1][2] == HOSTILE.replace(
        "\x1b", "\N{REPLACEMENT CHARACTER}"
    )
    text = summary_of(rows)
    assert "<" not in text.replace("<br>", "") and "](http" not in text and "\x1b" not in text


def test_half_a_character_does_not_stop_the_page() -> None:
    assert "a�b" in page_of(studied(title="a\ud800b")).encode().decode()


def test_a_name_that_would_break_a_table_is_refused() -> None:
    with pytest.raises(InputError, match="not the name of a corpus"):
        page_of([finished(0.5, corpus="ng20 | x")])


def test_a_file_without_runs_is_refused() -> None:
    with pytest.raises(InputError, match="no runs to report: start with"):
        page_of([])
    with pytest.raises(InputError, match="no runs of a table or figure"):
        page_of([finished(0.5, parameters={"tau": 0.123})])


def test_what_is_bold_is_said_where_figures_are_bold() -> None:
    for name, rows in (("sweeps", swept()), ("score", scored())):
        page = page_of(rows)
        section = page[page.index(f'<section class="{name}">') :].partition("</section>")[0]
        assert "<strong>" in section and "Bold: " in section
        assert "Bold: " in summary_of(rows)


def test_failed_runs_are_told() -> None:
    text = page_of([finished(0.5), finished(None, seed=1)])
    assert "2, of which 1 failed" in text
    assert Reader(text).tables["Table 1, ng20"][1][1] == ".500 (1, 1 failed)"


def test_the_head_says_what_made_the_runs() -> None:
    machine = {"cpu": "Some CPU", "cores": 2, "load": 0.5, "system": "Linux"}
    made = {"commit": "a" * 40 + "-dirty", "snuh": "0.1.0", "versions": {"numpy": "2.0"}, "machine": machine}
    rows = [
        finished(0.5, date="2026-01-02T00:00:00+00:00", corpus_sha256="b" * 64, **made),
        finished(0.5, seed=1, date="2026-03-04T00:00:00+00:00", machine=machine | {"load": 1.5}),
    ]
    text = page_of(rows)
    for said in (
        "2026-01-02 to 2026-03-04",
        "aaaaaaaaaaaa-dirty (1); not recorded (1)",
        "snuh 0.1.0, numpy 2.0",
        "<dd>Some CPU, 2 cores, Linux</dd>",
        "ng20 sha256 bbbbbbbbbbbb",
        "seed 0 (1); seed 1 (1)",
    ):
        assert said in text


def test_a_day_is_named_once_and_seeds_of_as_many_runs_are_in_order() -> None:
    rows = [finished(0.5, seed=seed, date="2026-01-02T00:00:00+00:00") for seed in (2, 0, 1)]
    text = page_of(rows)
    assert "<dd>2026-01-02</dd>" in text
    assert "seed 0 (1); seed 1 (1); seed 2 (1)" in text


def test_the_same_rows_give_the_same_page() -> None:
    assert page_of(everything()) == page_of(everything())


def test_the_summary_has_the_same_tables() -> None:
    text = summary_of(everything())
    printed = TARGETS["efficiency"].markdown(
        replace(TARGETS["efficiency"].default, corpora=("ng20",)), costed()
    )
    assert printed in text
    assert text.index("## Without labels") < text.index("### Table 1") < text.index("## The paper's protocol")
