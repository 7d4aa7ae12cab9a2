"""The buffer against a plain list of everything: what it gives is always the end of that, and it never hides a loss."""

from __future__ import annotations

import tracemalloc
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.data.events import DataMeasured, MapMeasured
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ClaimAbandoned
from quarterdeck.backend.service.record_buffer import BEGINNING, WHOLE_MEASUREMENTS, RecordBuffer


def made(lives: str) -> list[Record]:
    """One record for each letter, which is its life."""
    return [
        Record("run", "n1", life, lives[: place + 1].count(life), place, place, ClaimAbandoned("why"))
        for place, life in enumerate(lives)
    ]


def filled(records: list[Record], most_records: int = 1000, most_bytes: int = 1_000_000) -> RecordBuffer:
    buffer = RecordBuffer(most_records, most_bytes)
    for record in records:
        buffer.append(record)
    return buffer


def after(buffer: RecordBuffer, uuid: str, seq: int) -> tuple[bool, list[Record]]:
    complete, records = buffer.after(uuid, seq)
    return complete, [stored.record for stored in records]


def test_who_follows_gets_what_is_new() -> None:
    records = made("aab")
    buffer = filled(records)
    assert after(buffer, "a", 1) == (True, records[1:])
    assert after(buffer, "b", 1) == (True, [])
    assert after(buffer, "", 0) == (True, records)


def test_the_latest_position_is_found_without_a_look_at_what_is_kept() -> None:
    assert RecordBuffer().latest_position() == BEGINNING
    buffer = filled(made("aab"))
    assert buffer.latest_position() == ("b", 1)
    assert after(buffer, *buffer.latest_position()) == (True, [])


class FromTheEnd(deque[Any]):
    """Is read from its end alone, as far as it is asked for."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("goes through all that is kept")


def test_who_is_near_the_end_makes_the_buffer_go_through_nothing_else() -> None:
    records = made("a" * 500)
    buffer = filled(records)
    buffer._records = FromTheEnd(buffer._records)
    assert after(buffer, *buffer.latest_position()) == (True, [])
    assert after(buffer, "a", 498) == (True, records[498:])


def test_lives_may_change_and_others_record_in_between() -> None:
    records = made("axaxbxb")
    assert after(filled(records), "x", 2) == (True, records[4:])
    assert after(filled(records), "b", 0) == (True, records[4:])


def test_what_is_lost_is_said() -> None:
    records = made("aaaaaa")
    buffer = filled(records, most_records=2)
    assert after(buffer, "a", 4) == (True, records[4:])
    assert after(buffer, "a", 3) == (False, records[4:])
    assert after(buffer, "", 0) == (False, records[4:])
    assert after(buffer, "another process", 17) == (False, records[4:])


def test_bytes_are_bounded_too_but_the_newest_stays() -> None:
    assert len(filled(made("a" * 50), most_bytes=500)) < 5
    assert len(filled(made("aa"), most_bytes=1)) == 1


@given(st.text("abc", max_size=40), st.integers(1, 10), st.sampled_from("abcd"), st.integers(0, 20))
def test_against_a_list(lives: str, most: int, uuid: str, seq: int) -> None:
    records = made(lives)
    complete, found = after(filled(records, most), uuid, seq)
    assert found == records[len(records) - len(found) :]
    places = [place for place, record in enumerate(records) if (record.uuid, record.seq) == (uuid, seq)]
    if places and complete:
        assert found == records[places[0] + 1 :]
    elif places:
        assert len(found) == min(most, len(records)) < len(records) - places[0] - 1
    if complete and found and seq == 0:
        assert (found[0].uuid, found[0].seq) == (uuid, 1)


@pytest.mark.parametrize("most", [1, 5])
def test_it_never_holds_more(most: int) -> None:
    assert len(filled(made("ab" * 20), most)) == most


def test_of_old_records_that_tell_of_data_the_totals_stay_and_no_number_is_missing() -> None:
    told = DataMeasured(
        2_000_000, 3, 30, 0, 0, 0, (MapMeasured("m", 3, 30, 1, 1),), tuple((row, 1, 2, 3, 4) for row in range(99)), ()
    )
    count = WHOLE_MEASUREMENTS + 200
    first = made("a")
    records = [Record("run", "n1", "a", seq, seq, seq, told) for seq in range(2, count + 2)]
    buffer = filled(first + records, most_records=10_000, most_bytes=WHOLE_MEASUREMENTS * 2_500)
    complete, kept = after(buffer, "", 0)
    assert complete and kept[0] == first[0] and [record.seq for record in kept] == list(range(1, count + 2))
    events = [record.event for record in kept[1:] if isinstance(record.event, DataMeasured)]
    assert [bool(event.rows) for event in events] == [False] * 200 + [True] * WHOLE_MEASUREMENTS
    assert {(event.entries, event.bytes) for event in events} == {(3, 30)}


def test_records_that_tell_of_data_may_be_gone_before_they_are_shortened() -> None:
    told = DataMeasured(2_000_000, 3, 30, 0, 0, 0, (), ((0, 1, 2, 3, 4),), ())
    records = [Record("run", "n1", "a", seq, seq, seq, told) for seq in range(1, WHOLE_MEASUREMENTS + 50)]
    buffer = filled(records, most_records=20)
    assert after(buffer, "", 0) == (False, records[-20:])


def test_records_take_no_more_memory_than_their_text() -> None:
    rows = tuple((row, 1_000 + row, 100_000 + row, 300 + row, 400 + row) for row in range(90))
    buffer = RecordBuffer(most_bytes=200_000)
    tracemalloc.start()
    for seq in range(1, 301):
        told = DataMeasured(
            seq, 3, 30, 0, 0, 0, (), tuple((row[0], *(seq + place for place in row[1:])) for row in rows), ()
        )
        buffer.append(Record("run", "n1", "a", seq, seq, seq, told))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 300_000
