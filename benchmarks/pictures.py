"""The pictures of the README: python -m benchmarks.pictures [quality] [vectors] [terminal]

quality: docs/quality.svg, precision@100 by bytes per document, from results/runs.jsonl.
vectors: docs/vectors.svg, the same for words, vectors and both, from results/vectors.json.
terminal: docs/terminal.svg, commands and their output on the toy corpus of the README.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parents[1]
DOCS, README, RUNS = ROOT / "docs", ROOT / "README.md", ROOT / "results" / "runs.jsonl"
METHODS = {"snuh-plus": 6, "snuh": -6, "nash": 4, "vdsh": -2, "itq": -4, "lsh": 0}  # shifts of their names
CORPUS = "ng20"
# Codes, and the vector as floats; with the shift of the name.
CODES = {
    "words and vectors": ("snuh-plus joined", 8),
    "vectors": ("itq vectors", -9),
    "words": ("snuh-plus words", -9),
}
VECTOR_BYTES = 4 * 384  # of MiniLM
TITLES = {"stackoverflow": "Stack Overflow titles", "banking_en": "questions to a bank"}

COLUMNS = 100
SILENT = "snuh create tickets --from tickets.jsonl --method itq"
COMMANDS = (
    'snuh search tickets "the printer eats my paper" -k 3',
    "snuh search tickets 'slow connection -vpn' --where 'labels contains \"network\"' -k 3 --explain",
    "snuh similar tickets ticket-7 -k 2",
)


def precision_by_bytes() -> dict[str, dict[int, float]]:
    """Return the mean precision@100 over seeds of each method, by bytes, of runs with default settings."""
    found: dict[str, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in RUNS.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        is_default = not run["parameters"] and not run["features"] and run["select"] != "labels"
        if run["corpus"] == CORPUS and is_default and not run["error"]:
            found[run["method"]][run["bits"] // 8][run["seed"]] = run["precision"]["100"]
    return {
        method: {size: mean(found[method][size].values()) for size in sorted(found[method])}
        for method in METHODS
    }


def draw_quality() -> None:
    """Write the chart of precision by bytes."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "snuh"  # the same file from the same figures
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    for method, points in precision_by_bytes().items():
        is_ours = method.startswith("snuh")
        (line,) = axes.plot(
            list(points), list(points.values()), marker="o", linewidth=2.4 if is_ours else 1.2, markersize=4
        )
        size, precision = list(points.items())[-1]
        axes.annotate(
            method,
            (size, precision),
            (6, METHODS[method]),
            textcoords="offset points",
            va="center",
            color=line.get_color(),
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks([2, 4, 8, 16], ["2", "4", "8", "16"])
    axes.set_xlim(1.8, 26)
    axes.set_ylim(0, 0.75)
    axes.set_xlabel("bytes per document")
    axes.set_ylabel("precision@100, 20 Newsgroups")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(DOCS / "quality.svg", metadata={"Date": None})


def draw_vectors() -> None:
    """Write the chart of bits against floats."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "snuh"
    import matplotlib.pyplot as plt

    means = json.loads((ROOT / "results" / "vectors.json").read_text(encoding="utf-8"))["means"]
    figure, panels = plt.subplots(1, 2, figsize=(8.6, 3.4))
    for axes, (corpus, title) in zip(panels, TITLES.items(), strict=True):
        found = {(row["kind"], row["bits"]): row["precision"] for row in means if row["corpus"] == corpus}
        for name, (kind, shift) in CODES.items():
            points = {bits // 8: found[kind, bits] for bits in (16, 64) if (kind, bits) in found}
            if name == "vectors":
                points[VECTOR_BYTES] = found["floats vectors", None]
            if not points:
                continue  # not measured
            (line,) = axes.plot(list(points), list(points.values()), marker="o", markersize=4)
            axes.annotate(
                name,
                list(points.items())[-1],
                (0 if name != "vectors" else -14, shift),
                textcoords="offset points",
                va="center",
                color=line.get_color(),
            )
        axes.set_xscale("log", base=2)
        axes.set_xticks([2, 8, 64, VECTOR_BYTES], ["2", "8", "64", "1,536"])
        axes.set_xlim(1.5, 3000)
        axes.set_ylim(0, 0.9)
        axes.set_title(title)
        axes.set_xlabel("bytes per document")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("precision@100")
    figure.tight_layout()
    figure.savefig(DOCS / "vectors.svg", metadata={"Date": None})


def record_terminal() -> None:
    """Run the commands as in a terminal, and write what it shows."""
    from rich.console import Console
    from rich.text import Text

    first_snippet = re.search(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    if first_snippet is None:
        raise SystemExit("the README has no Python")
    binaries = str(Path(sys.executable).parent)
    variables = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    variables["PATH"] = os.pathsep.join([binaries, os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nowhere:

        def run(command: str) -> str:
            done = subprocess.run(
                command, shell=True, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True, check=True
            )
            return done.stdout

        subprocess.run([sys.executable, "-c", first_snippet[1]], cwd=folder, check=True)
        run(SILENT)
        console = Console(record=True, width=COLUMNS, file=nowhere)
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
            console.print(Text.from_ansi(run(command).strip()))
            console.print()
        picture = console.export_svg(title="snuh")
    # The fonts of the system: nothing is loaded from elsewhere.
    (DOCS / "terminal.svg").write_text(
        re.sub(r"@font-face \{.*?\}\n", "", picture, flags=re.S), encoding="utf-8"
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or ["quality", "vectors", "terminal"]:
        {"quality": draw_quality, "vectors": draw_vectors, "terminal": record_terminal}[name]()
