"""Rows of the space–time diagram: lanes, marks, and arrows that are true causes."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.events.catalogue import ROWS
from quarterdeck.backend.picture.explain.causes import direct_causes
from quarterdeck.backend.picture.explain.space_time import ZOOMS_US, Arrow, SpaceTime
from tests.picture.played_scenarios import event_index_of


def diagram_of(name: str, zoom_us: int = 0) -> SpaceTime:
    event_index = event_index_of(name)
    labels = list(
        dict.fromkeys(record.member for record in event_index.records if ROWS[type(record.event)].befalls is None)
    )
    diagram = SpaceTime(event_index, labels, zoom_us)
    diagram.extend(event_index.records)
    return diagram


def test_every_event_of_a_member_has_a_row_and_a_mark() -> None:
    for name in ("master-crash", "cut-racks", "p-move", "join-list-edit", "frozen-member"):
        diagram, event_index = diagram_of(name), event_index_of(name)
        drawn = [record for record in event_index.records if ROWS[type(record.event)].mark is not None]
        assert len(diagram) == len(drawn)
        for record in drawn:
            place = diagram.row_of(record)
            assert place is not None
            row = diagram.row(place)
            assert row.record is record and len(row.marks) == 1 and row.marks[0].text


def test_an_arrow_is_a_cause_that_came_as_a_message() -> None:
    diagram, event_index = diagram_of("master-crash"), event_index_of("master-crash")
    labels = [lane.label for lane in diagram.lanes]
    arrows = 0
    for place in range(len(diagram)):
        row = diagram.row(place)
        true = {
            Arrow(labels.index(because.record.member), labels.index(row.record.member))
            for because in direct_causes(event_index, row.record)
            if because.message
        }
        assert set(row.arrows) == true
        arrows += len(true)
    assert arrows > 20


def test_a_list_is_marked_with_its_version_and_the_letter_of_its_master() -> None:
    diagram, event_index = diagram_of("master-crash"), event_index_of("master-crash")
    last = next(record for record in reversed(event_index.records) if isinstance(record.event, events.ListInstalled))
    place = diagram.row_of(last)
    assert place is not None
    row = diagram.row(place)
    assert row.marks[0].text == "● v6B"
    assert diagram.lanes[row.arrows[0].source].letter == "B"


def test_lanes_end_with_a_kill_and_begin_with_a_start() -> None:
    diagram, event_index = diagram_of("master-crash"), event_index_of("master-crash")
    killed = next(record for record in event_index.records if isinstance(record.event, ProcessKilled))
    place = diagram.row_of(killed)
    assert place is not None
    assert diagram.row(place).marks[0].lane == 0 and diagram.row(place).marks[0].text == "✕ killed"
    assert diagram.row(place - 1).lanes == "││││"
    assert diagram.row(place + 1).lanes == " │││"
    assert diagram.row(len(diagram) - 1).lanes == "││││"
    assert diagram.row(0).lanes == "│   "


@pytest.mark.parametrize("zoom_us", ZOOMS_US)
def test_zoom_keeps_every_event_in_some_row(zoom_us: int) -> None:
    diagram, event_index = diagram_of("cut-racks", zoom_us), event_index_of("cut-racks")
    drawn = [record for record in event_index.records if ROWS[type(record.event)].mark is not None]
    rows = [diagram.row(place) for place in range(len(diagram))]
    assert sum(row.events for row in rows) == len(drawn)
    assert sum(len(row.marks) + sum(mark.more for mark in row.marks) for row in rows) == len(drawn)
    times = [row.at_us for row in rows]
    assert times == sorted(times)
    for record in drawn:
        place = diagram.row_of(record)
        assert place is not None and rows[place].at_us <= record.at < rows[place].at_us + max(zoom_us, 1)


def test_rows_grow_as_records_come() -> None:
    whole, event_index = diagram_of("cut-racks", 10_000), event_index_of("cut-racks")
    piecemeal = SpaceTime(event_index, [lane.label for lane in whole.lanes], 10_000)
    for record in event_index.records:
        piecemeal.extend([record])
        if len(piecemeal):
            piecemeal.row(len(piecemeal) - 1)
    assert [piecemeal.row(place) for place in range(len(piecemeal))] == [
        whole.row(place) for place in range(len(whole))
    ]


def test_the_row_of_a_moment() -> None:
    diagram = diagram_of("cut-racks", 1_000_000)
    assert diagram.row_at(-1) == 0
    assert diagram.row_at(10**12) == len(diagram) - 1
    assert diagram.row(diagram.row_at(8_500_000)).at_us <= 8_500_000
