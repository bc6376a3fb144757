from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snuh.corpus.reader import SeenIds


@given(st.lists(st.text(max_size=3)), st.integers(1, 9))
def test_exactly_the_duplicate_ids_are_found(doc_ids: list[str], recent: int) -> None:
    seen = SeenIds(max_recent=recent)
    found = set().union(*[seen.add(doc_id) for doc_id in doc_ids], seen.check())
    assert found == {hash(doc_id) for doc_id in doc_ids if doc_ids.count(doc_id) > 1}
