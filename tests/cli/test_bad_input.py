"""Whatever is wrong: one clear line, exit code 2, and the files that were there are as they were."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from snuh.cli.output import check_writable
from tests.cli.running import Ran, contents, run, run_process, start
from tests.worlds import files_limited_to, planted_topics, write_jsonl

QUICK = ("--set", "epochs=2")


def assert_refused(ran: Ran, expected: str) -> None:
    assert ran.code == 2, ran
    assert ran.stdout == ""
    assert len(ran.complaints) == 1, ran.stderr
    assert ran.stderr.splitlines()[-1] == ran.complaints[0]
    assert re.search(expected, ran.complaints[0]), ran.complaints[0]


def texts(*values: str) -> Callable[[Path], Path]:
    return lambda folder: write_jsonl(folder / "docs.jsonl", ({"text": text} for text in values))


def raw(name: str, content: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def few_documents(folder: Path) -> Path:
    return write_jsonl(folder / "few.jsonl", planted_topics(docs=8))


def repeated_id(folder: Path) -> Path:
    records = planted_topics(docs=30)
    records[20]["id"] = records[3]["id"]
    return write_jsonl(folder / "docs.jsonl", records)


def matrix_with_nan(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    arrays: dict[str, object] = {}
    for key in ("train", "cv", "test"):
        X = rng.random((30, 20)) * (rng.random((30, 20)) < 0.3)
        if key == "train":
            X[4, 2] = np.nan
        arrays |= {key: sparse.csr_matrix(X), f"gnd_{key}": np.eye(3)[np.arange(30) % 3]}
    savemat(folder / "bad.mat", arrays)
    return folder / "bad.mat"


SOURCES = {
    "empty corpus": (raw("docs.jsonl", b""), (), r"docs\.jsonl: there are no documents in it"),
    "empty folder": (lambda folder: folder / "none", (), r"no text files in this folder"),
    "all documents empty": (texts(*[""] * 8), (), r"no term is left: 8 documents held 0 distinct words"),
    "one document": (
        texts("a single lonely document"),
        (),
        r"there is only 1 document to learn a vocabulary from.*: give more documents$",
    ),
    "three documents": (
        texts("alpha beta", "beta gamma", "gamma alpha"),
        (),
        r"of 3 documents: give more documents, or raise max_df$",
    ),
    "one document, lenient": (
        texts("a single lonely document"),
        ("--set", "features.min_df=1", "--set", "features.max_df=1.0"),
        r"more documents than neighbors \(8\), got n_samples = 1",
    ),
    "all documents equal": (
        texts(*["the same words again"] * 40),
        (),
        r"no term is left.*max_df=0\.5 removed 4: every document has the same words, give documents",
    ),
    "all documents equal, lenient": (
        texts(*["the same words again"] * 40),
        ("--set", "features.max_df=1.0"),
        r"all 40 documents are equal",
    ),
    "fewer documents than neighbors": (few_documents, (), r"more documents than neighbors \(8\)"),
    "vocabulary empty after filtering": (
        texts("alpha beta", "gamma delta", "epsilon zeta", "the of and"),
        (),
        r"no term is left: .*; min_df=2 removed 9",
    ),
    "wrong encoding": (
        raw("docs.jsonl", '{"text": "fine"}\n{"text": "caf\xe9"}\n'.encode("latin-1")),
        (),
        r"docs\.jsonl line 2: byte 14 \(0xe9\) is not valid UTF-8",
    ),
    "control character": (
        raw("docs.jsonl", b'{"text": "a\tb"}\n'),
        (),
        r"docs\.jsonl line 1: not valid JSON \(Invalid control character at character 12\)$",
    ),
    "number without end": (
        raw("docs.jsonl", b'{"text": "a", "n": ' + b"7" * 6000 + b"}\n"),
        (),
        r"docs\.jsonl line 1: holds a number of more than 4,300 digits: .*write it as a string$",
    ),
    "no object": (
        raw("docs.jsonl", b'{"text": "fine"}\n{"text": "fine"}\n[1, 2]\n'),
        (),
        r"docs\.jsonl line 3: expected a JSON object, got a list",
    ),
    "missing text": (
        raw("docs.jsonl", b'{"text": "fine"}\n{"body": "here"}\n'),
        (),
        r'docs\.jsonl line 2: .*"text"',
    ),
    "missing text column": (raw("docs.csv", b"id,body\n1,hello\n"), (), r'docs\.csv line 2: .*"text"'),
    "duplicate ids": (repeated_id, (), r'docs\.jsonl line 21: the id "doc-3" is already used on line 4'),
    "NaN features": (matrix_with_nan, (), r"bad\.mat: train row 5 holds NaN"),
    "no such file": (lambda folder: folder / "absent.jsonl", (), r"absent\.jsonl: no such file"),
    "field of plain text": (
        raw("docs.txt", b"hello\n"),
        ("--text-field", "body"),
        r'docs\.txt has no fields, so none is called "body": leave --text-field out',
    ),
    "unknown kind of file": (raw("docs.jsnl", b"{}"), (), r"unknown kind of file"),
}


@pytest.mark.parametrize("case", SOURCES)
def test_fit_refuses_a_bad_source_and_keeps_the_old_model(case: str, model: Path, tmp_path: Path) -> None:
    make, options, expected = SOURCES[case]
    (tmp_path / "none").mkdir()
    source = make(tmp_path)
    before = contents(tmp_path)
    assert_refused(run("fit", source, "--out", model, *QUICK, *options), expected)
    assert contents(tmp_path) == before


OPTIONS = {
    "bits not a multiple of 8": (("--bits", 20), r"bits must be a multiple of 8 from 8 to 512, got 20"),
    "unknown method": (("--method", "snuh-pls"), r'unknown method "snuh-pls" \(did you mean "snuh-plus"\?\)'),
    "unknown parameter": (
        ("--set", "neighbours=3"),
        r'no "neighbours" \(did you mean "neighbors"\?\)',
    ),
    "unknown feature setting": (
        ("--set", "features.max_term=9"),
        r'no "max_term" \(did you mean "max_terms"\?\)',
    ),
    "bad parameter": (("--set", "epochs=many"), r"epochs must be a number, got 'many'"),
    "bad feature setting": (("--set", "features.min_df=-1"), r"min_df must be"),
    "no assignment": (("--set", "epochs"), r'--set expects key=value, such as --set epochs=10, got "epochs"'),
    "set twice": (("--set", "tau=1", "--set", "tau=2"), r"--set tau is given twice"),
    "seed as a setting": (("--set", "seed=1"), r"use --seed 1"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_fit_refuses_a_bad_option(case: str, world: Path, model: Path, tmp_path: Path) -> None:
    options, expected = OPTIONS[case]
    before = contents(tmp_path)
    assert_refused(run("fit", world, "--out", model, *options), expected)
    assert contents(tmp_path) == before


def test_fit_refuses_to_replace_a_folder_that_is_not_a_model(world: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.txt").write_text("miau")
    before = contents(tmp_path)
    assert_refused(run("fit", world, "--out", tmp_path / "photos"), r"is not a snuh model")
    assert_refused(run("fit", world, "--out", tmp_path / "photos" / "cat.txt"), r"it is a file")
    assert_refused(run("fit", world, "--out", tmp_path / "photos" / "cat.txt" / "m"), r"is not a folder")
    assert contents(tmp_path) == before


UNWRITABLE_PATHS = {
    "a folder that cannot be written": (
        Path("/proc/snuh-model"),
        r"nothing can be created in the folder /proc",
    ),
    "a name that is too long": (Path("m" * 250), r"cannot write .*File name too long"),
}


@pytest.mark.parametrize("case", UNWRITABLE_PATHS)
def test_an_unwritable_path_is_reported_before_the_fit(case: str, world: Path, tmp_path: Path) -> None:
    path, expected = UNWRITABLE_PATHS[case]
    if path.is_absolute() and not path.parent.is_dir():
        pytest.skip(f"there is no {path.parent} here")
    ran = run("fit", world, "--out", tmp_path / path, *QUICK)
    assert_refused(ran, expected)
    assert len(ran.stderr.splitlines()) == 1, "it was trained first"
    assert list(tmp_path.iterdir()) == []


def test_checking_a_path_leaves_no_files_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "model")
    check_writable(tmp_path / "new" / "folder" / "codes.npy")
    assert list(tmp_path.iterdir()) == []


def truncated(model: Path) -> None:
    path = model / "encoder.safetensors"
    path.write_bytes(path.read_bytes()[:-10])


def flipped(model: Path) -> None:
    path = model / "encoder.safetensors"
    data = bytearray(path.read_bytes())
    data[-5] ^= 0xFF
    path.write_bytes(data)


def without_encoder(model: Path) -> None:
    (model / "encoder.safetensors").unlink()


def changed_vocabulary(model: Path) -> None:
    path = model / "vocabulary.json"
    path.write_text(path.read_text().replace("common1", "common!", 1))


def changed_manifest(model: Path) -> None:
    path = model / "model.json"
    path.write_text(path.read_text().replace('"bits": 32', '"bits": 64'))


def newer(model: Path) -> None:
    path = model / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": 3}))


def half_a_manifest(model: Path) -> None:
    path = model / "model.json"
    path.write_text(path.read_text()[:100])


def empty_folder(model: Path) -> None:
    shutil.rmtree(model)
    model.mkdir()


SPOILT = {
    truncated: r"should have \d+ bytes, but has \d+",
    flipped: r"encoder\.safetensors was changed after saving",
    without_encoder: r"encoder\.safetensors is missing",
    changed_vocabulary: r"vocabulary\.json was changed after saving",
    changed_manifest: r"model\.json was changed after saving",
    newer: r"format version 3, this snuh reads 1 to 2: upgrade snuh",
    half_a_manifest: r"model\.json is not valid JSON",
    empty_folder: r"is not a snuh model: it has no model\.json",
    shutil.rmtree: r"there is no model folder",
}


@pytest.mark.parametrize("command", ["encode", "evaluate", "search"])
@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_a_damaged_model_is_refused(
    command: str, spoil: Callable[[Path], None], world: Path, model: Path, tmp_path: Path
) -> None:
    spoil(model)
    out = tmp_path / "codes.jsonl"
    out.write_text("from before")
    before = contents(tmp_path)
    arguments: dict[str, tuple[object, ...]] = {
        "encode": (model, world, "--out", out),
        "evaluate": (model, world),
        "search": (world, "t1word1", "--model", model),
    }
    assert_refused(run(command, *arguments[command]), SPOILT[spoil])
    assert contents(tmp_path) == before


@pytest.mark.parametrize("case", ["wrong encoding", "no object", "missing text", "duplicate ids"])
def test_encode_refuses_a_bad_source_and_keeps_the_old_codes(case: str, fitted: Path, tmp_path: Path) -> None:
    make, _, expected = SOURCES[case]
    source = make(tmp_path)
    for name in ("codes.parquet", "codes.npy", "codes.jsonl"):
        (tmp_path / name).write_text("from before")
        before = contents(tmp_path)
        assert_refused(run("encode", fitted, source, "--out", tmp_path / name), expected)
        assert contents(tmp_path) == before


def test_encode_refuses_an_unknown_suffix(fitted: Path, world: Path, tmp_path: Path) -> None:
    ran = run("encode", fitted, world, "--out", tmp_path / "codes.parket")
    assert_refused(ran, r'\.parquet, \.npy, \.jsonl \(did you mean "\.parquet"\?\)')


@pytest.mark.parametrize("name", ["itself", "symlink", "ids of symlink"])
def test_encode_never_replaces_its_source(name: str, fitted: Path, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "docs.jsonl", planted_topics(docs=30))
    out = {
        "itself": tmp_path / "none" / ".." / "docs.jsonl",
        "symlink": tmp_path / "link.npy",
        "ids of symlink": tmp_path / "codes.npy",
    }[name]
    (tmp_path / "none").mkdir()
    (tmp_path / "link.npy").symlink_to(source)
    if name == "ids of symlink":  # a list of ids made by snuh, as far as one can see
        source.rename(tmp_path / "codes.ids.json")
        source.symlink_to(tmp_path / "codes.ids.json")
        (tmp_path / "codes.ids.json").write_text("[]\n")
    before = contents(tmp_path)
    ran = run("encode", fitted, source, "--out", out)
    assert_refused(ran, r"it is the source, which would be overwritten: choose another file")
    assert contents(tmp_path) == before


def test_encode_never_replaces_a_corpus_that_has_a_name(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_jsonl(tmp_path / "tickets.jsonl", planted_topics(docs=30))
    monkeypatch.setenv("SNUH_DATA", str(tmp_path))
    before = contents(tmp_path)
    assert_refused(run("encode", fitted, "tickets", "--out", source), r"it is the source")
    assert contents(tmp_path) == before


def test_encode_never_replaces_the_file_on_standard_input(fitted: Path, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "docs.jsonl", planted_topics(docs=30))
    before = contents(tmp_path)
    with source.open() as file:
        process = start("encode", fitted, "-", "--out", source, stdin=file.fileno())
        stdout, stderr = process.communicate(timeout=60)
    assert_refused(Ran(process.returncode, stdout, stderr), r"it is the source")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("ids", ['{"a": 1}\n', '["by", "hand"]', "[\n1,\n2\n]\n", ""])
def test_encode_never_replaces_a_file_that_is_not_a_list_of_ids(
    ids: str, fitted: Path, world: Path, tmp_path: Path
) -> None:
    (tmp_path / "codes.ids.json").write_text(ids)
    before = contents(tmp_path)
    ran = run("encode", fitted, world, "--out", tmp_path / "codes.npy")
    assert_refused(ran, r'codes\.ids\.json, which exists and was not made by "snuh encode"')
    assert contents(tmp_path) == before


def test_nothing_is_written_into_a_model_folder(model: Path, world: Path, tmp_path: Path) -> None:
    before = contents(tmp_path)
    for out in (model / "codes.npy", model / "new" / "codes.npy"):
        assert_refused(run("encode", model, world, "--out", out), r"is a model and .*choose another path")
    assert_refused(run("fit", world, "--out", model / "inner"), r"is a model and .*choose another path")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["codes.parquet", "codes.npy", "codes.jsonl"])
def test_a_full_disk_is_reported_in_one_line(name: str, fitted: Path, world: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_text("from before")
    before = contents(tmp_path)
    with files_limited_to(512):
        ran = run("encode", fitted, world, "--out", tmp_path / name)
    assert_refused(ran, r"cannot write .*codes\.\S+: .*File too large")
    assert contents(tmp_path) == before


def test_texts_and_matrices_are_not_mixed_up(fitted: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, object] = {}
    for key in ("train", "cv", "test"):
        arrays |= {key: sparse.csr_matrix(rng.random((5, 9))), f"gnd_{key}": np.eye(5)}
    savemat(tmp_path / "rows.mat", arrays)
    ran = run("evaluate", fitted, tmp_path / "rows.mat")
    assert_refused(ran, r"this model takes texts, rows\.mat contains feature rows")
    ran = run("fit", tmp_path / "rows.mat", "--out", tmp_path / "m", "--set", "features.max_terms=9")
    assert_refused(ran, r"features\.max_terms is for texts")


def without(field: str, folder: Path) -> Path:
    records = planted_topics(docs=60)
    for record in records:
        del record[field]
    return write_jsonl(folder / "docs.jsonl", records)


def test_evaluate_needs_labels(fitted: Path, tmp_path: Path) -> None:
    ran = run("evaluate", fitted, without("labels", tmp_path))
    assert_refused(ran, r"no test document of docs\.jsonl has labels")


def test_evaluate_needs_a_test_split(fitted: Path, tmp_path: Path) -> None:
    ran = run("evaluate", fitted, without("split", tmp_path))
    assert_refused(ran, r"docs\.jsonl has no documents with the split test")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--cutoffs", "10,x"), r'--cutoffs must be positive integers, such as 10,100, got "10,x"'),
        (("--cutoffs", "0"), r"--cutoffs must be positive integers"),
        (("--query-split", "tset"), r'got "tset" \(did you mean "test"\?\)'),
        (("--query-split", "train"), r"the queries and the database are both train"),
    ],
)
def test_evaluate_refuses_bad_options(
    options: tuple[str, ...], expected: str, fitted: Path, world: Path
) -> None:
    assert_refused(run("evaluate", fitted, world, *options), expected)


def test_a_query_without_a_known_word_gets_no_hits(fitted: Path, world: Path) -> None:
    ran = run("search", world, "unheard nonsense", "--model", fitted)
    assert (ran.code, ran.stdout) == (0, "") and "the model knows no word of 'unheard nonsense'" in ran.stderr
    ran = run("search", world, "", "--model", fitted)
    assert_refused(ran, r"the query is empty: expected at least one word")


def test_search_needs_a_positive_k(fitted: Path, world: Path) -> None:
    ran = run("search", world, "t1word1", "--model", fitted, "-k", 0)
    assert_refused(ran, r"-k must be at least 1, got 0")


def test_demo_refuses_a_folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert_refused(run("demo", "--out", tmp_path), r"contains 'thesis\.tex', which is not part of the demo")
    assert_refused(run("demo", "--out", tmp_path / "thesis.tex"), r"it is a file")
    assert_refused(run("demo", "--out", tmp_path / "new", "--bits", 12), r"bits must be a multiple of 8")
    assert contents(tmp_path) == {"thesis.tex": b"years of work"}


def test_a_real_process_reports_an_error_in_one_line(fitted: Path, tmp_path: Path) -> None:
    source = SOURCES["no object"][0](tmp_path)
    ran = run_process("encode", fitted, source, "--out", tmp_path / "codes.npy")
    assert ran.stderr == "snuh: docs.jsonl line 3: expected a JSON object, got a list\n"
    assert (ran.code, ran.stdout) == (2, "")
    ran = run_process("fit", "-", "--out", tmp_path / "m", stdin="")
    assert_refused(ran, r"standard input: there are no documents in it")
    ran = run("fit", source, "--out", tmp_path / "m", "--bits", 20)
    assert ran.stderr == "snuh: bits must be a multiple of 8 from 8 to 512, got 20\n"
    assert ran.code == 2


USAGE = {
    "no argument": (("fit",), r"missing argument 'SOURCE' .*fit --help"),
    "no option": (("fit", "x.jsonl"), r"missing option '--out' .*fit --help"),
    "unknown option": (
        ("fit", "x.jsonl", "--out", "m", "--bitz", 64),
        r"no such option: --bitz .*--bits.*fit --help",
    ),
    "unknown option before the command": (("--nope", "fit"), r"no such option: --nope .* --help"),
    "not an integer": (
        ("fit", "x.jsonl", "--out", "m", "--bits", "64.5"),
        r"invalid value for '--bits': .*64\.5.*fit --help",
    ),
    "option without a value": (("fit", "x.jsonl", "--out"), r"'--out' requires an argument .*fit --help"),
    "too many arguments": (("fit", "x.jsonl", "y", "--out", "m"), r"unexpected extra argument.*fit --help"),
    "unknown command": (("serch", "x"), r"no such command 'serch'.*'search'.* --help"),
    "unknown command of a group": (("spark", "fitt"), r"no such command 'fitt'.*spark --help"),
    "not UTF-8": (("search", "x", "\udcff"), r"expected UTF-8 text, got other bytes \(see"),
    "empty file": (("fit", "x.jsonl", "--out", ""), r'^snuh: --out is empty: expected .*, got ""$'),
    "empty file after =": (("tune", "x.jsonl", "--bits", 8, "--out="), r"--out is empty"),
    "empty argument": (("create", ""), r"COLLECTION is empty"),
    "one of several arguments empty": (("serve", "a", ""), r"COLLECTION is empty"),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_usage_error_is_reported_in_one_line(case: str) -> None:
    arguments, expected = USAGE[case]
    ran = run(*arguments)
    assert_refused(ran, expected)
    assert len(ran.stderr.splitlines()) == 1


def test_a_command_without_arguments_shows_its_help() -> None:
    for command in ((), ("spark",)):
        ran = run(*command)
        assert "Usage:" in ran.stdout + ran.stderr
        assert ran.complaints == []


def test_messages_contain_no_terminal_escapes(tmp_path: Path) -> None:
    ran = run_process("search", str(tmp_path / "no\x1b[31msuch"), "text")
    assert ran.code == 2
    assert "\x1b" not in ran.stderr
    assert "no" in ran.stderr and "[31msuch" in ran.stderr
