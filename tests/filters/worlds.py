"""Random documents and random filters that have something to say about them."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from snuh.filters.tree import And, Comparison, Contains, Field, Filter, In, IsNull, Not, Or

# Drawing takes its time, and how long it takes says nothing.
THOROUGH = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Few names and few values, so that a filter often meets what it asks for.
NAMES = ["a", "b", "année", "a.b", "in", "my field", "x`y", "नाम", "[0]", "$", "'"]
TEXTS = ["", "x", "X", "é", "\U0001f600", "\uffff", "1", "true", "null", "[1]", '{"a": 1}', 'q"\\\n', "it's"]
NUMBERS = [0, 1, -1, 1.0, 0.5, -0.0, 2**53, 2**53 + 1, 2.0**53, 2**63 - 1, -(2**63), 2.0**63, 1e20, 2.28e274]

# A NUL inside a string of the metadata is read differently by older and newer versions of SQLite.
texts = st.sampled_from(TEXTS) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
integers = st.integers(-(2**63), 2**63 - 1)
numbers = st.sampled_from(NUMBERS) | integers | st.floats(allow_nan=False, allow_infinity=False)
values = st.booleans() | numbers | texts

names = st.sampled_from(NAMES) | st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\\'), min_size=1, max_size=5
)
metadata_values = st.recursive(
    st.none() | values | st.sampled_from([2**63, 2**64, -(2**63) - 1, 10**20, 10**309]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=6,
)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    metadata = draw(st.dictionaries(st.sampled_from(NAMES), metadata_values, max_size=8))
    metadata |= draw(st.dictionaries(names, metadata_values, max_size=2))
    return {
        **{name: value for name, value in metadata.items() if name != "text"},
        "id": draw(texts),
        "split": draw(st.sampled_from(["train", "val", "test", None])),
        "labels": draw(st.lists(texts, max_size=3)),
    }


fields = st.lists(names, min_size=1, max_size=3).map(lambda keys: Field(tuple(keys))) | st.sampled_from(
    [Field((name,)) for name in NAMES]
)
metadata_conditions = st.one_of(
    st.builds(Comparison, fields, st.just("="), values),
    st.builds(Comparison, fields, st.sampled_from(["<", "<=", ">", ">="]), numbers | texts),
    st.builds(In, fields, st.lists(st.none() | values, min_size=1, max_size=5).map(tuple)),
    st.builds(IsNull, fields),
    st.builds(Contains, fields, values),
).filter(lambda condition: condition.field.keys[0] not in ("id", "split", "labels", "text"))

own_fields = st.sampled_from([Field(("id",)), Field(("split",))])
own_texts = texts | st.sampled_from(["train", "test"])
labels = st.just(Field(("labels",)))
own_conditions = st.one_of(
    st.builds(Comparison, own_fields, st.sampled_from(["=", "<", "<=", ">", ">="]), own_texts),
    st.builds(In, own_fields, st.lists(st.none() | own_texts, min_size=1, max_size=5).map(tuple)),
    st.builds(IsNull, own_fields | labels),
    st.builds(Contains, labels, texts),
)


def combined(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    parts = st.lists(inner, min_size=2, max_size=4).map(tuple)
    return st.builds(Not, inner) | st.builds(And, parts) | st.builds(Or, parts)


conditions: st.SearchStrategy[Filter] = st.one_of(metadata_conditions, own_conditions)
filters = st.recursive(conditions, combined, max_leaves=6)
