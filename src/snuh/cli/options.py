"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Source = Annotated[
    str, typer.Argument(metavar="SOURCE", help="The documents: a file, a folder, - or a corpus name.")
]
ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL", help='A model folder made by "snuh fit".')]
Bits = Annotated[int, typer.Option(metavar="N", help="Length of the codes, a multiple of 8.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
TextField = Annotated[str, typer.Option(metavar="NAME", help="The field that holds the text.")]
IdField = Annotated[str, typer.Option(metavar="NAME", help="The field that holds the id.")]
