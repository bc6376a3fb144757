"""Batch jobs on Apache Spark: fit a model on, and encode, more documents than one machine can handle.

`fit(frame)` returns a `Model`; `encode(frame, model)` returns a frame of ids and codes. The driver needs the
extra `spark`, every executor the same Python with the same version of snuh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snuh.spark.collection_sink import add_to_collection
    from snuh.spark.documents import read_documents
    from snuh.spark.encoding import encode, write_codes
    from snuh.spark.fitting import fit
    from snuh.spark.session import open_session

__all__ = ["add_to_collection", "encode", "fit", "open_session", "read_documents", "write_codes"]

# No module may be called "fit" or "encode": once imported, it would hide the function of that name.
_MODULES = {
    "add_to_collection": "collection_sink",
    "encode": "encoding",
    "fit": "fitting",
    "open_session": "session",
    "read_documents": "documents",
    "write_codes": "encoding",
}


def __getattr__(name: str) -> object:
    """Import a public name on first access."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
