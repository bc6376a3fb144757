"""Arguments and options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snuh.methods import DEFAULT, METHODS

MAX_CHARACTERS = 10_000_000  # same as the library's limit; importing that would make --help slow

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="Documents: a file, folder, collection, corpus name, or - for stdin."
    ),
]
ModelOrCollection = Annotated[
    str, typer.Argument(metavar="MODEL", help="Model folder, or a collection to use its model.")
]
ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL", help='Model folder made by "snuh fit".')]
CollectionAddress = Annotated[
    str,
    typer.Argument(metavar="COLLECTION", help='Collection made by "snuh create".'),
]
Bits = Annotated[int, typer.Option(metavar="N", help="Code length in bits, a multiple of 8.")]
Json = Annotated[bool, typer.Option("--json", help="Output JSON.")]
TextField = Annotated[str, typer.Option(metavar="NAME", help="Field that contains the text.")]
IdField = Annotated[str, typer.Option(metavar="NAME", help="Field that contains the id.")]
LabelsField = Annotated[str, typer.Option(metavar="NAME", help="Field that contains the labels.")]
SplitField = Annotated[
    str, typer.Option(metavar="NAME", help="Field that contains the split: train, val or test.")
]
MaxCharacters = Annotated[
    int, typer.Option(metavar="N", help="Maximum length of a text; longer ones are an error.")
]

# Training options: None means the value of --config, or the default
Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f'Training method, see "snuh methods" (default: {DEFAULT}).',
        autocompletion=lambda: list(METHODS),
    ),
]
Length = Annotated[
    int | None,
    typer.Option("--bits", metavar="N", help="Code length in bits, a multiple of 8 (default: 64)."),
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Random seed (default: 0).")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a parameter of the method, or features.KEY=VALUE of the features; repeatable.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help='Settings file made by "snuh tune"; other options take precedence.',
    ),
]

# Search options
K = Annotated[int, typer.Option("-k", metavar="N", help="Number of hits to return.")]
Where = Annotated[
    str | None,
    typer.Option(metavar="FILTER", help="Only documents that match this filter, e.g. 'year >= 2020'."),
]
RerankBy = Annotated[
    str | None,
    typer.Option("--rerank", metavar="METHOD", help="Rerank the nearest documents: asymmetric or cosine."),
]
Radius = Annotated[int | None, typer.Option(metavar="N", help="Only documents within Hamming distance N.")]
SearchMode = Annotated[
    str | None,
    typer.Option(
        "--mode", metavar="MODE", help="Search by words and codes (hybrid, the default), words or codes."
    ),
]
Approximate = Annotated[
    bool,
    typer.Option("--approximate", help='Use the index built by "snuh index": faster, but may miss hits.'),
]
Explain = Annotated[bool, typer.Option("--explain", help="Highlight the words that each match is based on.")]
