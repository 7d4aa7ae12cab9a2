"""Every class of events has exactly one row, and the row serves all that derive from it."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.partitions.events import TableChanged
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, OwnersTold
from quarterdeck.backend.picture.events.catalogue import ALL_ROWS, describe_record, part_of, tone_of
from quarterdeck.backend.picture.events.event_row import EpisodePart, EventRow
from quarterdeck.backend.picture.explain.causes import RULES
from quarterdeck.backend.picture.text.fact import Tone

EXAMPLES: dict[Any, Any] = {str: "a:1", int: 3, float: 0.5, bool: True, Address: Address("10.0.0.1:5701")}
SOUND: dict[Any, Any] = {
    TableChanged: {"rows": ((3, 3, 1),)},
    OwnersTold: {"owners": (1, 0)},
    ConnectionChanged: {"state": "gone"},
}
"""What has to name the other fields."""


def example_of(kind: Any) -> Any:
    """Return a value of this type, for a struct with every field set."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return inner[-1]
    if origin in (Union, UnionType):
        return example_of(inner[0])
    if origin is tuple:
        return (example_of(inner[0]),) * 2
    if origin is dict:
        return {example_of(inner[0]): example_of(inner[1])}
    if kind in EXAMPLES:
        return EXAMPLES[kind]
    hints = get_type_hints(kind)
    return kind(**{field: example_of(hints[field]) for field in kind.__struct_fields__} | SOUND.get(kind, {}))


def test_every_class_of_events_has_exactly_one_row() -> None:
    assert sorted(row.kind.__name__ for row in ALL_ROWS) == sorted(kind.__name__ for kind in get_args(Event))


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: row.kind.__name__)
def test_a_row_serves_all_that_derive_from_it(row: EventRow[Any]) -> None:
    event = example_of(row.kind)
    line = describe_record(Record("r", "n1", "u", 1, 12_345_678, 0, event))
    assert line.startswith("   12.346  n1  ") and line.isprintable() and row.kind.__name__ not in line
    assert tone_of(event) in get_args(Tone)
    assert part_of(event) in get_args(EpisodePart)
    if row.mark is not None:
        text, tone = row.marked(event, lambda address: "A")
        assert text and "{" not in text and tone in get_args(Tone)
    if row.landmark is not None:
        assert row.landmark(event, "n1")


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: row.kind.__name__)
def test_an_event_comes_from_outside_or_follows_from_something(row: EventRow[Any]) -> None:
    assert [row.external, bool(row.follows), row.kind in RULES].count(True) == 1


def test_no_two_kinds_decide_an_episode_alike() -> None:
    ranks = [row.decides for row in ALL_ROWS if row.decides]
    assert len(set(ranks)) == len(ranks)
