"""How to search a collection: the options that a caller may give, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from snuh.collection.backend import Backend
from snuh.collection.rerank import SHORTLISTS, Rerank
from snuh.errors import InputError, check_arguments, suggest
from snuh.filters import Filter, parse

SPECIAL_FIELDS = ("id", "labels", "split")
MOST_SUGGESTED, MOST_LISTED = 1_000, 20


class SearchOptions(TypedDict, total=False):
    """What `search`, `search_many` and `similar` take beside the query.

    k: most documents to return, 10 by default.
    where: a filter on metadata, such as `year >= 2020 and lang = "en"`.
    radius: the most bits in which a hit may differ.
    rerank: order the nearest by more than their distance: "asymmetric" weighs each bit by how sure the query
        is of it, "cosine" compares the words themselves.
    shortlist: how many of the nearest to reorder; 1,000 and 200 by default.
    fast: look into the index made by `Collection.make_lists`, not at all codes.
    """

    k: int
    where: str | Filter | None
    radius: int | None
    rerank: Rerank | None
    shortlist: int | None
    fast: bool


@dataclass(frozen=True, slots=True)
class Search:
    """Checked options."""

    k: int
    where: Filter | None
    radius: int | None
    rerank: Rerank | None
    most: int  # documents to find, of which k are returned
    fast: bool


def checked(options: SearchOptions) -> Search:
    """Fill in what is not given; InputError for what cannot be."""
    if not options.keys() <= SearchOptions.__annotations__.keys():  # to look at a signature takes its time
        check_arguments(_defaults, options, what="a search")
    return _defaults(**options)


def _defaults(
    k: int = 10,
    where: str | Filter | None = None,
    radius: int | None = None,
    rerank: Rerank | None = None,
    shortlist: int | None = None,
    fast: bool = False,
) -> Search:
    if not _is_whole(k) or k < 1:
        raise InputError(f"k must be a whole number of at least 1, got {k}")
    if radius is not None and (not _is_whole(radius) or radius < 0):
        raise InputError(f"radius must be a whole number of at least 0, got {radius}")
    if rerank is not None and rerank not in SHORTLISTS:
        known = ", ".join(SHORTLISTS)
        raise InputError(f'rerank must be one of {known}, got "{rerank}"{suggest(str(rerank), SHORTLISTS)}')
    if shortlist is not None and (rerank is None or not _is_whole(shortlist) or shortlist < 1):
        raise InputError(f"shortlist must be a whole number of at least 1, and needs rerank; got {shortlist}")
    most = k if rerank is None else max(k, shortlist or SHORTLISTS[rerank])
    return Search(k, parse(where) if isinstance(where, str) else where, radius, rerank, most, fast)


def check_fields(where: str | Filter, backend: Backend) -> Filter:
    """Return the filter; InputError where no document has had one of its fields."""
    condition = parse(where) if isinstance(where, str) else where
    for name in dict.fromkeys(field.keys[0] for field in condition.walk()):
        if name not in SPECIAL_FIELDS and not backend.has_field(name):
            known = [*SPECIAL_FIELDS, *backend.fields(most=MOST_SUGGESTED)]
            listed = ", ".join(known[:MOST_LISTED]) + (", ..." if len(known) > MOST_LISTED else "")
            raise InputError(
                f'no document has a field "{name}"{suggest(name, known)}: expected one of {listed}'
            )
    return condition


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
