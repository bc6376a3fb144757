"""Batch work on Apache Spark: fit a model on, and encode, more documents than one machine takes.

`fit(frame)` returns the usual `Model`; `encode(frame, model)` a frame of ids and codes. The driver needs the
extra `spark`, every executor the same Python with the same snuh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snuh.spark.documents import read_documents
    from snuh.spark.encoding import encode
    from snuh.spark.fitting import fit
    from snuh.spark.into import add_to_collection
    from snuh.spark.session import open_session
    from snuh.spark.writing import write_codes

__all__ = ["add_to_collection", "encode", "fit", "open_session", "read_documents", "write_codes"]

_HOMES = {
    "add_to_collection": "into",
    "encode": "encoding",
    "fit": "fitting",
    "open_session": "session",
    "read_documents": "documents",
    "write_codes": "writing",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
