"""The tape: every moment is the fold of what had happened, whatever checkpoints and the order of arrival."""

from __future__ import annotations

from collections import deque
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.migrations import MigrationHistory
from quarterdeck.backend.picture.replay.tape import Tape
from tests.picture.replay.random_records import EVENTS, RANDOM_EVENTS, A, fold, picture_contents, records_of

HOLD_US = 100
SPANS = st.lists(st.integers(0, 30), min_size=40, max_size=40)
LATENESS = st.lists(st.sampled_from((0, 0, 0, 20, 90, 250)), min_size=40, max_size=40)
CUTS = st.lists(st.integers(0, 40), max_size=5).map(sorted)

Happenings = list[tuple[str, int, Event]]


def batches(records: list[Record], cuts: list[int]) -> list[list[Record]]:
    ends = [0, *(cut for cut in cuts if cut <= len(records)), len(records)]
    return [records[start:end] for start, end in pairwise(ends)]


@given(RANDOM_EVENTS, st.integers(0, 40), RANDOM_EVENTS)
def test_a_copied_picture_and_its_original_go_their_own_ways(before: Happenings, cut: int, after: Happenings) -> None:
    first = records_of(before, list(range(len(before))))
    one_way, other_way = first[cut:], records_of(after, list(range(100, 100 + len(after))))
    original = fold(first[:cut])
    twin = original.copy()
    assert picture_contents(twin) == picture_contents(original)
    third = twin.copy()
    for record in one_way:
        original.apply(record)
    for record in other_way:
        twin.apply(record)
    assert picture_contents(third) == picture_contents(fold(first[:cut]))
    assert picture_contents(original) == picture_contents(fold(first))
    assert picture_contents(twin) == picture_contents(fold([*first[:cut], *other_way]))


def test_a_copied_belief_shares_nothing_that_can_change() -> None:
    belief = MemberBelief("n1", A, "n1-1")
    twin, history = belief.fork(object()), MigrationHistory()
    for one, other in ((belief, twin), (belief.leading, twin.leading), (history, history.fork())):
        names = getattr(one, "__slots__", ()) or getattr(one, "__struct_fields__", ()) or list(vars(one))
        for name in names:
            value = getattr(one, name)
            if isinstance(value, dict | list | set | deque):
                assert getattr(other, name) == value and getattr(other, name) is not value, name


@given(RANDOM_EVENTS, SPANS, CUTS, st.integers(1, 9), st.integers(1, 50), st.booleans(), st.permutations(range(-1, 42)))
def test_each_moment_is_the_fold_of_all_up_to_it(
    random_events: Happenings,
    spans: list[int],
    cuts: list[int],
    spacing: int,
    capacity: int,
    with_head: bool,
    looks: list[int],
) -> None:
    times = list(accumulate(spans))[: len(random_events)]
    records = records_of(random_events, times)
    tape = Tape(capacity, spacing=spacing, hold_us=HOLD_US)
    head = fold([])
    for batch in batches(records, cuts):
        for record in batch:
            head.apply(record)
        tape.append(batch, head if with_head else None)
        assert len(tape) <= capacity
    assert tape.forgotten + len(tape) == len(records)
    moments = [times[look] if 0 <= look < len(times) else look * 30 for look in looks]
    for at_us in moments:
        if at_us >= tape.start_us:
            assert picture_contents(tape.picture_at(at_us)) == picture_contents(
                fold([record for record in records if record.at <= at_us])
            )
    assert picture_contents(head) == picture_contents(fold(records))


@given(RANDOM_EVENTS, SPANS, LATENESS, CUTS, st.integers(1, 9), st.lists(st.integers(0, 1200), max_size=8))
def test_what_is_overtaken_is_put_where_it_belongs(
    random_events: Happenings, spans: list[int], lateness: list[int], cuts: list[int], spacing: int, looks: list[int]
) -> None:
    times = [max(0, at_us - late) for at_us, late in zip(accumulate(spans), lateness, strict=True)]
    arrived = records_of(random_events, times[: len(random_events)])
    tape = Tape(spacing=spacing, hold_us=HOLD_US)
    head = fold([])
    for batch, look in zip(batches(arrived, cuts), [*looks, *[0] * 8], strict=False):
        for record in batch:
            head.apply(record)
        tape.append(batch, head)
        tape.picture_at(look)

    counted: list[tuple[int, Record]] = []
    for record in arrived:
        latest = max((at_us for at_us, _ in counted), default=0)
        counted.append((max(record.at, latest - HOLD_US), record))
    ordered = sorted(counted, key=lambda one: one[0])
    assert tape.records(-1, 10_000) == [record for _, record in ordered]
    for at_us in (*looks, *times):
        assert picture_contents(tape.picture_at(at_us)) == picture_contents(
            fold([one for time, one in ordered if time <= at_us])
        )


def test_steps_counts_and_spans() -> None:
    tape = Tape()
    assert (tape.start_us, tape.end_us) == (0, 0)
    assert tape.moment_beside(0, forward=True) is tape.moment_beside(5, forward=False) is None
    records = simple([10, 20, 20, 50])
    tape.append(records)
    assert (tape.start_us, tape.end_us) == (10, 50)
    assert [tape.moment_beside(at, forward=True) for at in (0, 10, 19, 20, 50)] == [10, 20, 20, 50, None]
    assert [tape.moment_beside(at, forward=False) for at in (10, 11, 20, 50, 99)] == [None, 10, 10, 20, 50]
    assert tape.counts([0, 20, 50, 51]) == [1, 2, 1]
    assert tape.records(20, 49) == records[1:3]
    assert tape.last(2) == records[2:] and tape.last(2, 20) == records[1:3] and tape.last(9, 5) == []
    assert tape.first(2, 10) == records[1:3]


def test_it_forgets_the_oldest_and_still_shows_what_was_before() -> None:
    tape = Tape(capacity=100, spacing=10)
    records = simple(range(1_000))
    for start in range(0, 1_000, 7):
        tape.append(records[start : start + 7])
        assert len(tape) <= 100 and len(tape._checkpoints) <= 11
    assert tape.forgotten + len(tape) == 1_000 and len(tape) > 80
    assert tape.start_us == tape.forgotten - 1
    assert picture_contents(tape.picture_at(tape.start_us)) == picture_contents(fold(records[: tape.forgotten]))
    assert picture_contents(tape.picture_at(0)) == picture_contents(tape.picture_at(tape.start_us))


def test_a_seek_folds_no_more_than_lies_between_two_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    records = simple(range(3_000))
    head = fold([])
    tape = Tape(spacing=100)
    applied = 0
    for start in range(0, 3_000, 50):
        for record in records[start : start + 50]:
            head.apply(record)
        with monkeypatch.context() as patched:
            patched.setattr(
                "quarterdeck.backend.picture.fold.picture.Picture.apply", lambda *_: pytest.fail("folded twice")
            )
            tape.append(records[start : start + 50], head)
    original = type(head).apply

    def counting(picture: object, record: Record) -> None:
        nonlocal applied
        applied += 1
        original(picture, record)  # type: ignore[arg-type]

    monkeypatch.setattr("quarterdeck.backend.picture.fold.picture.Picture.apply", counting)
    for at_us in (2_999, 17, 1_550, 1_551, 1_552, 430):
        before = applied
        assert tape.picture_at(at_us).at == at_us
        assert applied - before < 100
    at_550 = tape.picture_at(550)
    before = applied
    assert tape.picture_at(550) is at_550 and tape.picture_at(552).at == 552
    assert applied - before == 2


def test_bookmarks() -> None:
    tape = Tape()
    assert tape.bookmark(50).name == "mark-1" and tape.bookmark(20).name == "mark-2"
    tape.bookmark(30, "the split")
    assert [mark.name for mark in tape.bookmarks] == ["mark-2", "the split", "mark-1"]
    tape.bookmark(60, "the split")
    assert tape.moment_of("the split") == 60 and len(tape.bookmarks) == 3
    assert tape.moment_of("nothing") is None


def test_a_tape_holds_at_least_one_record() -> None:
    with pytest.raises(ValueError, match="1 at least"):
        Tape(capacity=0)


def simple(times: range | list[int]) -> list[Record]:
    random_events = [("n1", 1, EVENTS[0]), *[("n1", 1, EVENTS[5 + place % 2]) for place in range(len(times) - 1)]]
    return records_of(random_events, list(times))


@given(RANDOM_EVENTS, st.integers(0, 45), st.integers(5, 60), RANDOM_EVENTS)
def test_a_copy_of_a_tape_goes_its_own_way_from_a_moment(
    before: Happenings, at_us: int, capacity: int, after: Happenings
) -> None:
    records = records_of(before, list(range(len(before))))
    tape = Tape(capacity, spacing=7, hold_us=HOLD_US)
    tape.append(records)
    at_us = max(at_us, tape.start_us)
    twin = tape.copy_to(at_us)
    assert picture_contents(twin.picture_at(at_us)) == picture_contents(tape.picture_at(at_us))
    assert tape.records(0, at_us) == twin.records(0, 1_000)
    ending = picture_contents(tape.picture_at(tape.end_us))
    twin.append(records_of(after, list(range(100, 100 + len(after)))))
    assert picture_contents(tape.picture_at(tape.end_us)) == ending
