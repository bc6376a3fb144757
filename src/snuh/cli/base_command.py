"""What the commands share: options, errors and warnings as one line each, and exit codes."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

import snuh
from snuh.errors import NEEDS_POSIX, POSIX_MODULES, InputError, SnuhError, missing_extra
from snuh.filters import FilterError
from snuh.methods import DEFAULT, METHODS
from snuh.text import sanitize

EXIT_USER, EXIT_INTERRUPTED = 2, 130
PATH_METAVARS = ("FILE", "FOLDER", "MODEL", "COLLECTION", "TARGET")

# UsageError. Any, here and below: depending on its version, typer uses click's types or its own copy.
_UsageError: Any = typer.BadParameter.__base__


def _without_flag_types(params: list[Any]) -> list[Any]:
    """Show no type for options that take no value; newer versions of typer show <bool>."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class CommandGroup(TyperGroup):
    """Reports an error of a command as one line on stderr and an exit code."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options before the command."""
        return _without_flag_types(super().get_params(ctx))

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse the options before the command."""
        with _usage_errors_in_one_line():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; any error that is not a SnuhError is a bug and keeps its traceback."""
        try:
            with _usage_errors_in_one_line(), _warnings_in_one_line():
                return super().invoke(ctx)
        except SnuhError as error:
            say(str(error))
            if isinstance(error, FilterError):
                _show_position(error)
            raise typer.Exit(EXIT_USER) from None
        except ModuleNotFoundError as error:
            if error.name in POSIX_MODULES:
                say(NEEDS_POSIX.format(f'"snuh {ctx.invoked_subcommand}"'))
            elif isinstance(missing := missing_extra(error), SnuhError):
                say(str(missing))
            else:
                raise
            raise typer.Exit(EXIT_USER) from None
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None


class Command(TyperCommand):
    """A command whose usage errors include the value given."""

    def get_params(self, ctx: Any) -> Any:
        """Return the arguments and options."""
        return _without_flag_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; InputError if a file, folder or collection is an empty string."""
        values: dict[str, Any] = {}
        try:
            values = self.make_parser(ctx).parse_args(args=list(args))[0]
            self._check_paths(ctx, values)
            return super().parse_args(ctx, args)
        except _UsageError as error:
            error.ctx = error.ctx or ctx
            _add_value(error, values)
            raise

    def _check_paths(self, ctx: Any, values: dict[str, Any]) -> None:
        # pathlib would take "" for the current folder.
        for param in self.get_params(ctx):
            value = values.get(param.name or "")
            if param.metavar in PATH_METAVARS and "" in (
                value if isinstance(value, list | tuple) else [value]
            ):
                name = param.opts[0] if param.param_type_name == "option" else param.metavar
                raise InputError(f'{name} is empty: expected the name of a {param.metavar.lower()}, got ""')


def say(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"snuh: {sanitize(' '.join(message.split()))}\n")
    sys.stderr.flush()


def _show_position(error: FilterError) -> None:
    """Write the filter with a caret below the offending character."""
    sys.stderr.write("".join(f"  {line}\n" for line in error.pointer().splitlines()))


def _add_value(error: Any, values: dict[str, Any]) -> None:
    """Add the value to a message that lacks it, as messages of newer versions of typer do."""
    value = values.get(getattr(getattr(error, "param", None), "name", ""))
    if isinstance(value, str) and value not in error.message and "got " not in error.message:
        error.message = f"{error.message.removesuffix('.')}, got {value!r}"


@contextmanager
def _usage_errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # shows the help
            raise
        message = error.format_message().removesuffix(".")
        hint = f' (see "{error.ctx.command_path} --help")' if error.ctx else ""
        say(message[:1].lower() + message[1:] + hint)
        raise typer.Exit(EXIT_USER) from None


class _OneLineHandler(logging.Handler):
    # `say` looks up sys.stderr each time: while progress bars are shown, it writes above them.
    def emit(self, record: logging.LogRecord) -> None:
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        say(f"{level}{record.getMessage()}")


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    logger = logging.getLogger("snuh")
    logging.getLogger("snuh._numba").setLevel(logging.INFO)  # says when kernels are compiled
    handler = _OneLineHandler()
    show = warnings.showwarning

    def show_in_one_line(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category.__module__.partition(".")[0] == "snuh":
            say(f"warning: {message}")
        else:
            show(message, category, filename, lineno, file, line)

    logger.addHandler(handler)
    with warnings.catch_warnings():
        warnings.showwarning = show_in_one_line
        try:
            yield
        finally:
            logger.removeHandler(handler)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"snuh {snuh.__version__}")
        raise typer.Exit


def global_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Handle the options before the command."""


def check_text(value: str | None) -> str | None:
    """Raise BadParameter for bytes that are not valid UTF-8."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise typer.BadParameter("expected UTF-8 text, got other bytes") from None
    return value


# Arguments and options

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
Vectors = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD|FILE.npy",
        help="Field with the vector of each document, or a NumPy file with a row per document.",
    ),
]
EmbedWith = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Embedding model (sentence-transformers, model2vec) that makes the vectors."
    ),
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
