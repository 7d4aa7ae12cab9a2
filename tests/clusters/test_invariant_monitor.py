"""The invariants, watched while a cluster runs."""

from __future__ import annotations

import random

from quarterdeck.backend.clusters.invariant_monitor import HOLD_US, InvariantMonitor
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.membership.views.identity import Member

HERE = Address("10.0.0.1:5701")


def record(seq: int, at: int, version: int, uuid: str = "u1") -> Record:
    members = (Member(HERE, "u1", 1),)
    return Record(
        "r", "a", uuid, seq, at, at, ListInstalled(version, "L", HERE, members, HERE, "unknown", "told by a test")
    )


def test_records_that_come_late_are_judged_in_their_place() -> None:
    records = [record(seq, seq * 1_000, seq) for seq in range(1, 51)]
    random.Random(1).shuffle(records)
    monitor = InvariantMonitor()
    for number, one in enumerate(records, start=1):
        monitor.take([one], number * 1_000)
    monitor.take([], 50_000 + HOLD_US)
    assert monitor.violations == []


def test_a_violation_is_found_once_its_moment_is_over() -> None:
    monitor = InvariantMonitor()
    monitor.take([record(1, 1_000, 5), record(2, 2_000, 4)], 2_000)
    assert not monitor.violations
    monitor.take([], 2_000 + HOLD_US)
    assert [violation.invariant for violation in monitor.violations] == ["version"]


def test_where_records_come_in_order_nothing_waits() -> None:
    monitor = InvariantMonitor(hold_us=0)
    monitor.take([record(1, 1_000, 5), record(2, 2_000, 5, uuid="u2")], 2_000)
    assert [violation.invariant for violation in monitor.violations] == ["numbering", "view integrity"]
