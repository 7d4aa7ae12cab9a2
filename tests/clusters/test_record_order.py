"""Streams of several members become one: each record once, each member's in its order, all soon."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.clusters.record_order import RecordMerge
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events

HOLD_US = 100
HISTORY_US = 1_000


def record(source: str, seq: int, utc: int) -> Record:
    return Record("run", source, f"{source}-life", seq, utc, utc, events.MemberStopped("asked to"))


def merge() -> RecordMerge:
    return RecordMerge(HOLD_US, HISTORY_US)


def test_what_happened_before_comes_first_although_it_arrived_after() -> None:
    merging = merge()
    merging.add("a", record("a", 1, 20), now_us=0)
    merging.add("b", record("b", 1, 10), now_us=50)
    assert merging.release(99) == []
    assert [record.member for record in merging.release(100)] == ["b", "a"]


def test_what_happened_later_waits_its_own_time() -> None:
    merging = merge()
    merging.add("a", record("a", 1, 10), now_us=0)
    merging.add("b", record("b", 1, 20), now_us=50)
    assert [record.member for record in merging.release(100)] == ["a"]
    assert [record.member for record in merging.release(150)] == ["b"]


def test_a_clock_that_is_ahead_delays_nothing() -> None:
    merging = merge()
    merging.add("ahead", record("ahead", 1, 10**9), now_us=0)
    merging.add("b", record("b", 1, 10), now_us=90)
    assert [record.member for record in merging.release(100)] == ["b", "ahead"]


def test_what_was_seen_or_passed_over_is_not_given_out() -> None:
    merging = merge()
    assert merging.add("a", record("a", 2, 10), now_us=0)
    assert not merging.add("a again", record("a", 2, 10), now_us=0)
    assert not merging.add("a", record("a", 1, 5), now_us=0)
    assert [record.seq for record in merging.release(HOLD_US)] == [2]


def test_others_wait_for_a_history_but_not_for_ever() -> None:
    merging = merge()
    merging.begin_history("slow", now_us=0)
    merging.add("a", record("a", 1, 20), now_us=0)
    assert merging.release(HOLD_US) == []
    assert len(merging.release(HISTORY_US)) == 1
    merging.begin_history("slow", now_us=2_000)
    merging.add("a", record("a", 2, 30), now_us=2_000)
    merging.add("slow", record("slow", 1, 10), now_us=2_150)
    merging.end_history("slow")
    assert [record.member for record in merging.release(2_150)] == ["slow", "a"]


ARRIVALS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 500), st.integers(0, 60)), max_size=60)
"""Who, how much later on its own clock, how much later it arrives."""


@given(ARRIVALS, st.integers(-10_000, 10_000))
def test_every_record_comes_once_in_its_members_order_and_within_the_hold(
    arrivals: list[tuple[str, int, int]], ahead_us: int
) -> None:
    merging = merge()
    clocks, numbers, now_us = {"a": 0, "b": ahead_us, "c": -ahead_us}, dict.fromkeys("abc", 0), 0
    arrived: dict[tuple[str, int], int] = {}
    released: list[Record] = []
    for who, later_us, pause_us in arrivals:
        now_us += pause_us
        clocks[who] += later_us
        numbers[who] += 1
        arrived[who, numbers[who]] = now_us
        merging.add(who, record(who, numbers[who], clocks[who]), now_us)
        released += merging.release(now_us)
        late = [key for key, when in arrived.items() if now_us - when >= HOLD_US]
        assert set(late) <= {(record.member, record.seq) for record in released}
    released += merging.release(now_us + HOLD_US)
    assert len(released) == len(arrivals)
    for who in "abc":
        assert [record.seq for record in released if record.member == who] == list(range(1, numbers[who] + 1))
