"""A small language to filter documents by metadata: `year >= 2020 and lang in ("de", "fr")`."""

from snuh.filters.parser import FilterError, parse
from snuh.filters.sql import SqlColumns, to_sql
from snuh.filters.tree import Filter, matches

__all__ = ["Filter", "FilterError", "SqlColumns", "matches", "parse", "to_sql"]
