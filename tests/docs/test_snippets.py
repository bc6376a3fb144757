"""The documentation holds: snippets run, links lead somewhere, nothing that exists is left out."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

import snuh
from snuh.cli.app import app
from snuh.corpus.document import SPLIT_NAMES
from snuh.corpus.source import COMPRESSIONS, MATRIX_SUFFIX, TEXT_FORMATS
from snuh.features import TfidfFeatures
from snuh.methods import METHODS
from tests.cli.running import environment, run

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README, CLI, QUICKSTART = (ROOT / name for name in ("README.md", "docs/cli.md", "docs/quickstart.md"))

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[[^\]]+\]\(([^)\s]+)\)")
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
REPOSITORY_FILES = f"{REPOSITORY}/blob/main/"
REPOSITORY_IMAGES = f"{REPOSITORY.replace('github.com', 'raw.githubusercontent.com')}/main/"


@dataclass(frozen=True)
class Snippet:
    """A fenced block: its language, its content, and where it is."""

    language: str
    code: str
    location: str


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(block[1], block[2], f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, block.start()) + 1}")
        for block in FENCE.finditer(text)
    ]


def run_snippets(page: Path, **given: Any) -> dict[str, Any]:
    """Run the Python and shell snippets of a page, in order, here and in one namespace."""
    namespace: dict[str, Any] = {"__name__": "__main__", **given}
    for snippet in snippets(page):
        if snippet.language == "python":
            # Blank lines before it: a traceback then shows the line of the page.
            blank = "\n" * int(snippet.location.rpartition(":")[2])
            exec(compile(blank + snippet.code, str(page), "exec"), namespace)
        elif snippet.language == "sh":
            run_shell(snippet)
    return namespace


def run_shell(snippet: Snippet) -> None:
    """Run the lines of a snippet: commands of ours in this process, which is faster, others by a shell."""
    for line in snippet.code.replace("\\\n", " ").splitlines():
        arguments = command_arguments(line)
        if arguments is None:
            run_line(line, snippet.location)
        elif arguments:
            ran = run(*arguments)
            assert ran.code == 0, f"{snippet.location}: {line}\n{ran.stderr}"


def command_arguments(line: str) -> list[str] | None:
    """Return the arguments of a line that is only a command of ours; None if it takes a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    if not words:
        return []
    needs_shell = set(line) & set("$`*~") or any(set(word) <= set("|&;<>()") for word in words)
    return None if needs_shell or words[0] != "snuh" else words[1:]


def run_line(line: str, location: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-e", "-c", line],
        capture_output=True,
        text=True,
        env=environment() | {"PATH": path},
        timeout=300,
    )
    assert done.returncode == 0, f"{location}: {line}\n{done.stderr}"
    assert "Traceback" not in done.stderr


@pytest.fixture
def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own folder to run in, with the corpus that the quickstart's first snippet makes."""
    monkeypatch.chdir(tmp_path)
    first = next(snippet for snippet in snippets(QUICKSTART) if snippet.language == "python")
    exec(compile(first.code, first.location, "exec"), {})
    return tmp_path / "tickets.jsonl"


@pytest.mark.slow
def test_the_tour_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace = run_snippets(README)
    assert namespace["codes"].shape == (407, 8)
    assert snuh.load("model").bits == 64
    with snuh.Collection("docs") as docs:
        best = docs.search("power failure in the middle of a commit", k=5)
        assert all(hit.document.labels == ("storage",) for hit in best[:3])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["quickstart", "cli", "collections", "cookbook", "own-system", "python", "vectors"]
)
def test_the_snippets_of_a_page_run(name: str, tickets: Path) -> None:
    page = ROOT / "docs" / f"{name}.md"
    assert {snippet.language for snippet in snippets(page)} & {"python", "sh"}
    run_snippets(page)
    assert (tickets.parent / "model" / "model.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_the_snippet_of_a_method_runs(name: str, tickets: Path) -> None:
    texts = [document.text for document in snuh.open_source(tickets)]
    X = TfidfFeatures().fit(texts).transform(texts)
    namespace = run_snippets(ROOT / "docs" / "methods" / f"{name}.md", X=X)
    assert namespace["codes"].shape == (300, 8)


@pytest.mark.slow
@pytest.mark.parametrize(("package", "result"), [("langchain_core", "found"), ("llama_index.core", "nodes")])
def test_a_retriever_runs_where_its_framework_is_installed(package: str, result: str, tickets: Path) -> None:
    pytest.importorskip(package, reason=f"{package} is too heavy for the test environment")
    assert run("create", "tickets", "--from", tickets, "--method", "itq").code == 0
    code = next(s.code for s in snippets(ROOT / "docs" / "retrievers.md") if f"from {package}" in s.code)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(code, namespace)
    assert len(namespace[result]) == 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text) + IMAGE.findall(text):
        # The README is shown on PyPI as well: its links are absolute, and lead to files of the repository.
        is_ours = target.startswith((REPOSITORY_FILES, REPOSITORY_IMAGES))
        if "://" in target and not is_ours:
            continue
        assert is_ours or page != README, f"{target}: relative"
        path, _, anchor = target.removeprefix(REPOSITORY_FILES).removeprefix(REPOSITORY_IMAGES).partition("#")
        linked = ((ROOT if is_ours else page.parent) / path).resolve() if path else page
        assert linked.exists(), f"{target}: no such file"
        assert not anchor or anchor in anchors(linked), f"{target}: no such heading"


def anchors(page: Path) -> set[str]:
    """Return the names that GitHub gives to the headings of a page."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_the_page_on_the_command_line_has_every_command_and_option() -> None:
    text = CLI.read_text(encoding="utf-8")
    sections = {title: body for title, body in re.findall(r"^## (.+)\n((?:(?!^## )[^\n]*\n)*)", text, re.M)}
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(sections) == {f"snuh {name}" for name in commands}
    for name, command in commands.items():
        body = sections[f"snuh {name}"]
        assert f"snuh {name}" in body and "Exit code" in body
        for parameter in command.params:
            option = parameter.opts[0]
            if option.startswith("-") and option != "--help":
                assert f"`{option}" in body, f"snuh {name} has the option {option}"


def test_every_method_is_linked_in_the_table_of_contents() -> None:
    linked = LINK.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    assert {f"methods/{name}.md" for name in METHODS} <= set(linked)


def test_every_page_is_linked_in_the_table_of_contents() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text(encoding="utf-8"))}
    assert {page for page in ROOT.glob("docs/**/*.md") if page != index} <= linked


def test_the_page_on_formats_names_every_ending_and_split() -> None:
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    for name in (*TEXT_FORMATS, *COMPRESSIONS, ".parquet", MATRIX_SUFFIX, *SPLIT_NAMES):
        assert f"`{name}`" in text


def test_the_page_on_python_names_every_public_name() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert all(f"snuh.{name}" in text for name in snuh.__all__ if name != "__version__")


def test_the_api_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "hooks.py").read_text(encoding="utf-8")
    assert all(f'.{name}"' in text for name in snuh.__all__ if name != "__version__")


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 150


def test_every_address_of_the_project_is_that_of_its_metadata() -> None:
    address = re.compile(r"https://github\.com/snuhash/[\w.-]+")
    files = [ROOT / "mkdocs.yml", *ROOT.glob(".github/**/*.*"), *PAGES]
    for file in files:
        assert set(address.findall(file.read_text(encoding="utf-8"))) <= {REPOSITORY}, file


def test_every_make_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = re.compile(r"(?:`|run: )make ((?:[a-z]+ ?)+)(?=[`\n]|[A-Z]+=)")
    for file in [*PAGES, *ROOT.glob(".github/workflows/*.yml")]:
        for line in named.findall(file.read_text(encoding="utf-8")):
            assert set(line.split()) <= targets, f"{file.name}: make {line}"


def test_pre_commit_runs_the_tools_of_make_check() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^check:.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    tools = re.findall(r"\$\(BIN\)/([\w-]+(?: check| format)?)", recipe[1])
    hooks = re.findall(
        r"entry: \.venv/bin/([\w-]+(?: check| format)?)", (ROOT / ".pre-commit-config.yaml").read_text()
    )
    assert tools == hooks
