"""Lines of a log that is being written: what only logs tell, and when it was by our own clock."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import ListInstalled, MemberRemoved, SuspicionRaised
from quarterdeck.backend.hazelcast.witness.log_witness import LogClocks, Logged, LogWitness

A, B = Address("127.0.0.1:5701"), Address("127.0.0.1:5702")
UUIDS = ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222")

LINES = f"""\
2026-11-22 20:00:00,000 [ INFO] [main] [c.h.i.c.ClusterService]: [127.0.0.1]:5701 [dev] [5.3.8]

Members {{size:2, ver:2}} [
	Member [127.0.0.1]:5701 - {UUIDS[0]} this
	Member [127.0.0.1]:5702 - {UUIDS[1]}
]

2026-11-22 20:00:05,000 [ WARN] [hz.monitor] [c.h.i.c.i.MembershipManager]: [127.0.0.1]:5701 [dev] [5.3.8] Member [127.0.0.1]:5702 - {UUIDS[1]} is suspected to be dead for reason: No connection
""".splitlines()  # noqa: E501


def read(witness: LogWitness) -> list[Logged]:
    return [record for line in LINES for record in witness.add_line(line)] + list(witness.flush())


def test_a_suspicion_is_told_under_the_uuid_that_the_log_names() -> None:
    logged = read(LogWitness())
    lists = [record for record in logged if isinstance(record.event, ListInstalled)]
    suspicions = [record for record in logged if isinstance(record.event, SuspicionRaised | MemberRemoved)]
    assert [(member_list.member, member_list.uuid) for member_list in lists] == [(A, UUIDS[0])]
    assert suspicions and all(suspicion.uuid == UUIDS[0] for suspicion in suspicions)
    assert suspicions[0].utc_us - lists[0].utc_us == 5_000_000


def test_what_was_written_last_waits_until_nothing_follows() -> None:
    witness = LogWitness()
    told = [record for line in LINES for record in witness.add_line(line)]
    assert not [record for record in told if isinstance(record.event, SuspicionRaised | MemberRemoved)]
    assert [record for record in witness.flush() if isinstance(record.event, SuspicionRaised | MemberRemoved)]
    assert list(witness.flush()) == []


def listed(version: int) -> ListInstalled:
    return ListInstalled(version, "lineage", A, (), A, "unknown")


def test_lists_that_both_tell_show_how_far_clocks_are_apart_and_one_that_was_late_does_not_matter() -> None:
    clocks = LogClocks()
    assert clocks.ahead_us(A) == 0
    clocks.read(A, 1_000, 3_000_400)
    assert clocks.ahead_us(A) == 2_999_400
    for version, late_us in enumerate((20, 30, 341_000, 25), start=1):
        clocks.logged(A, listed(version), version * 1_000)
        clocks.heard(A, listed(version), version * 1_000 + 3_000_000 + late_us)
    assert clocks.ahead_us(A) == 3_000_025
    clocks.heard(A, listed(9), 13_000_030)
    clocks.logged(A, listed(9), 10_000_000)
    assert clocks.ahead_us(A) == 3_000_030
    assert clocks.ahead_us(B) == 0
