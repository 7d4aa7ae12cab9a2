"""Merge policies: which of two entries stays (Emergent Leader, Recovering from split brain)."""

import pytest

from quarterdeck.backend.core.data.partition_store import StoredEntry, merged
from quarterdeck.backend.core.properties import PROPERTIES

OLD = StoredEntry(b"existing", version=5, created_us=10, updated_us=20, accessed_us=30, hits=3)


def incoming(**changed: int) -> StoredEntry:
    fields = {"version": 2, "created_us": 1, "updated_us": 20, "accessed_us": 30, "hits": 3, **changed}
    return StoredEntry(b"incoming", **fields)


@pytest.mark.parametrize(
    ("policy", "into_nothing", "equal", "later_update", "later_access", "more_hits", "less_of_all"),
    [
        ("put-if-absent", True, False, False, False, False, False),
        ("pass-through", True, True, True, True, True, True),
        ("latest-update", True, False, True, False, False, False),
        ("latest-access", True, False, False, True, False, False),
        ("higher-hits", True, False, False, False, True, False),
        ("discard", False, False, False, False, False, False),
    ],
)
def test_which_entry_stays(
    policy: str,
    into_nothing: bool,
    equal: bool,
    later_update: bool,
    later_access: bool,
    more_hits: bool,
    less_of_all: bool,
) -> None:
    outcomes = [
        merged(policy, None, incoming()),
        merged(policy, OLD, incoming()),
        merged(policy, OLD, incoming(updated_us=21)),
        merged(policy, OLD, incoming(accessed_us=31)),
        merged(policy, OLD, incoming(hits=4)),
        merged(policy, OLD, incoming(updated_us=19, accessed_us=29, hits=2)),
    ]
    assert [outcome is not None for outcome in outcomes] == [
        into_nothing,
        equal,
        later_update,
        later_access,
        more_hits,
        less_of_all,
    ]


def test_every_policy_that_can_be_set_is_in_the_table_above() -> None:
    _, how = PROPERTIES["quarterdeck.merge.policy"]
    assert sorted(how.choices) == sorted(
        ["put-if-absent", "pass-through", "latest-update", "latest-access", "higher-hits", "discard"]
    )


def test_what_is_taken_keeps_its_past_and_has_a_version_above_both() -> None:
    taken = merged("latest-update", OLD, incoming(updated_us=50))
    assert taken == StoredEntry(b"incoming", 6, 1, 50, 30, 3)
    assert merged("put-if-absent", None, incoming()) == incoming()


@pytest.mark.parametrize("policy", ["put-if-absent", "latest-update", "latest-access", "higher-hits", "discard"])
def test_an_offer_that_comes_twice_changes_nothing_more(policy: str) -> None:
    for offer in (incoming(), incoming(updated_us=99, accessed_us=99, hits=99)):
        first = merged(policy, OLD, offer) or OLD
        assert merged(policy, first, offer) is None
