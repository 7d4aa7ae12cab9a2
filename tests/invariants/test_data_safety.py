"""Why data is not safe: what the judge of tables says when replicas are missing, differ, or move."""

from __future__ import annotations

from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.core.membership.views.identity import Member
from tests.invariants.test_membership_invariants import (
    FORMED,
    A,
    B,
    C,
    Happened,
    installed,
    recorded,
    watched,
)
from tests.invariants.test_partition_invariants import ARRANGED, MOVED, killed, started, table


def test_a_row_is_full_when_each_zone_has_a_replica() -> None:
    zoned = {"quarterdeck.partition.group.type": "zone-aware"}

    def why(settings: dict[str, str], *zones: str) -> str:
        here = tuple(
            Member(one.address, one.uuid, one.join_version, zone=zone)
            for one, zone in zip((A, B, C), zones, strict=True)
        )
        rows = {0: (1, (here[0], here[2], None))}
        history = (
            (A, MemberStarted(A.address, False, (), settings=settings)),
            *(installed(member, 1, *here) for member in here),
            *(table(member, rows, cause="arranged") for member in here),
        )
        return watched(recorded(*history)).tables.why_not_safe()

    assert why(zoned, "east", "east", "west") == ""
    assert why(zoned, "east", "middle", "west") == "partition 0 has 2 replicas"
    assert why({}, "east", "east", "west") == "partition 0 has 2 replicas"


def test_why_data_is_not_safe() -> None:
    def why(*history: Happened) -> str:
        return watched(recorded(*history)).tables.why_not_safe()

    assert why(*FORMED) == ""
    assert why(*ARRANGED) == ""
    assert why(*MOVED) == ""
    assert why(*ARRANGED[:-1]) == "c has another table than its master a"
    assert why(*ARRANGED, started("m1")) == "1 migrations are running"
    assert why(*ARRANGED, killed(B)) == "b holds partition 0 and does not run"
    assert why(*ARRANGED, killed(A)) == "0 members lead"
    holes = [table(member, {0: (2, (A, None))}) for member in (A, B, C)]
    assert why(*ARRANGED, *holes) == "partition 0 has 1 replicas"
