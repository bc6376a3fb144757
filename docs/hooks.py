"""Hooks of MkDocs: the pages that are generated, and the links that leave the folder docs."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

import typer.main
from mkdocs.structure.files import File, Files

from snuh.cli.app import app

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(\[[^\]]*\]\()(?!\w+:|#)([^)#\s]+)")

# Pages of the root folder that the site has as well.
ROOT_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}

# The public API, by the module that defines it.
API = {
    "Train and encode": (
        "snuh.hasher.TextHasher",
        "snuh.model.Model",
        "snuh.model.load",
        "snuh.hub.push",
        "snuh.hub.pull",
    ),
    "Search": (
        "snuh.collection.Collection",
        "snuh.collection.query.SearchOptions",
        "snuh.search.Hits",
        "snuh.search.Hit",
        "snuh.collection.results.Added",
        "snuh.collection.results.Info",
        "snuh.index.nearest",
    ),
    "Documents": ("snuh.corpus.open_source", "snuh.corpus.Document", "snuh.corpus.TextSource"),
    "Duplicates": ("snuh.dedup.deduplicate", "snuh.dedup.find_duplicates", "snuh.dedup.default_radius"),
    "Explanations": ("snuh.explain.explain", "snuh.explain.bit_meanings", "snuh.explain.Explanation"),
    "Server": ("snuh.client.Client", "snuh.client.AsyncClient"),
    "Methods": ("snuh.methods.snuh.SNUH", "snuh.methods.snuh_plus.SNUHPlus", "snuh.methods.make"),
    "Features, codes and metrics": (
        "snuh.features.TfidfFeatures",
        "snuh.codes",
        "snuh.metrics.evaluate_codes",
        "snuh.metrics.precision_at_k",
        "snuh.metrics.code_health",
        "snuh.filters.parse",
        "snuh.filters.matches",
    ),
    "Errors": ("snuh.errors",),
}


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    pages = {"reference/commands.md": commands_page(), "reference/api.md": api_page()}
    for name, page in ROOT_PAGES.items():
        pages[page] = (ROOT / name).read_text(encoding="utf-8")
    for page, content in pages.items():
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links to files outside docs to their page, or to the repository."""
    originals = {page: name for name, page in ROOT_PAGES.items()}
    here = PurePosixPath(originals.get(page.file.src_uri, f"docs/{page.file.src_uri}"))

    def replace(match: re.Match[str]) -> str:
        target = os.path.normpath(here.parent / match[2])
        if not (ROOT / target).exists():  # a generated page
            return match[0]
        return match[1] + site_link(target, page.file.src_uri, config["repo_url"])

    return LINK.sub(replace, markdown)


def site_link(target: str, page: str, repository: str) -> str:
    """Return the link from a page of the site to a file of the repository."""
    inside = ROOT_PAGES.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
    if inside is None:
        return f"{repository}/blob/main/{target}"
    return os.path.relpath(inside, PurePosixPath(page).parent)


def api_page() -> str:
    """Return the reference of the public API, whose text mkdocstrings takes from the docstrings."""
    sections = [
        f"## {title}\n\n" + "\n\n".join(f"::: {name}" for name in names) for title, names in API.items()
    ]
    intro = "Generated from the docstrings; the page on [Python](../python.md) is an introduction."
    return "\n\n".join(["# Python API", intro, *sections]) + "\n"


def commands_page() -> str:
    """Return the reference of all commands, from their definitions."""
    group: Any = typer.main.get_command(app)
    intro = (
        "Generated from the commands; the page on the [command line](../cli.md) has examples and exit codes."
    )
    return "\n\n".join(["# Commands and options", intro, *command_sections(group, "snuh")]) + "\n"


def command_sections(group: Any, path: str) -> list[str]:
    """Return a section for each command of a group."""
    sections = []
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            sections += command_sections(command, f"{path} {name}")
        else:
            sections.append(command_section(command, f"{path} {name}"))
    return sections


def command_section(command: Any, name: str) -> str:
    """Return what a command does, its usage, arguments, options and examples."""
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option"]
    usage = " ".join([name, *(p.metavar if p.required else f"[{p.metavar}]" for p in arguments), "[OPTIONS]"])
    rows = [f"| `{p.metavar}` | {plain(p.help)} |" for p in arguments]
    rows += [
        f"| `{', '.join(p.opts)}{f' {p.metavar}' if p.metavar else ''}` | {described(p)} |" for p in options
    ]
    examples = [plain(line).strip() for line in (command.epilog or "").splitlines()[1:]]
    return "\n\n".join(
        [
            f"## {name}",
            plain(command.help),
            f"```text\n{usage}\n```",
            "\n".join(["| argument or option | |", "|---|---|", *rows]),
            "Examples:",
            "```console\n" + "\n".join(examples) + "\n```",
        ]
    )


def described(option: Any) -> str:
    """Return the help of an option with its default, if it is worth showing."""
    default = option.default
    is_shown = (
        default is not None and not isinstance(default, bool) and default != () and not callable(default)
    )
    return plain(option.help) + (f" Default: `{default}`." if is_shown else "")


def plain(text: str | None) -> str:
    """Remove the markup of the terminal."""
    text = re.sub(r"(?<!\\)\[/?[a-z ]+\]", "", text or "")
    return text.replace(r"\[", "[").replace("<", "&lt;").replace("|", r"\|")
