"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snuh.methods import DEFAULT

MAX_CHARACTERS = 10_000_000  # the library's own limit: importing it here would make --help slow


Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="The documents: a file, a folder, a collection, - or a corpus name."
    ),
]
ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL", help='A model folder made by "snuh fit".')]
CollectionAddress = Annotated[
    str,
    typer.Argument(metavar="COLLECTION", help='A collection made by "snuh create".'),
]
Bits = Annotated[int, typer.Option(metavar="N", help="Length of the codes, a multiple of 8.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
TextField = Annotated[str, typer.Option(metavar="NAME", help="The field that holds the text.")]
IdField = Annotated[str, typer.Option(metavar="NAME", help="The field that holds the id.")]
MaxCharacters = Annotated[int, typer.Option(metavar="N", help="The longest text to take.")]

# How to learn; what is not given is taken from elsewhere
Method = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f'How to learn, see "snuh methods"; {DEFAULT} if not given.'),
]
Length = Annotated[
    int | None,
    typer.Option("--bits", metavar="N", help="Length of the codes, a multiple of 8; 64 if not given."),
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Of everything random; 0 if not given.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A parameter of the method, or features.KEY=VALUE for the vocabulary; as often as needed.",
    ),
]

# How to search
K = Annotated[int, typer.Option("-k", metavar="N", help="How many documents to show.")]
Where = Annotated[
    str | None, typer.Option(metavar="FILTER", help="Only documents like this, such as 'year >= 2020'.")
]
RerankBy = Annotated[
    str | None,
    typer.Option("--rerank", metavar="BY", help="Order the nearest more finely: asymmetric or cosine."),
]
Radius = Annotated[
    int | None, typer.Option(metavar="N", help="Only documents that differ in at most N bits.")
]
Approximate = Annotated[
    bool,
    typer.Option("--approximate", help='Use the index built by "snuh index": faster, and may miss hits.'),
]
Explain = Annotated[bool, typer.Option("--explain", help="Show which words brought each document up.")]
