from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snuh.corpus.reader import SeenIds


@given(st.lists(st.text(max_size=3)), st.integers(1, 9))
def test_every_repeated_id_is_found_and_no_other(identities: list[str], recent: int) -> None:
    seen = SeenIds(recent=recent)
    found = set().union(*[seen.add(identity) for identity in identities], seen.check())
    assert found == {hash(identity) for identity in identities if identities.count(identity) > 1}
