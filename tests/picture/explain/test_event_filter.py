"""The text that selects events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.events.catalogue import describe_record, kind_of
from quarterdeck.backend.picture.explain.event_trace import EventFilter
from tests.picture.played_scenarios import records_of


def chosen(text: str) -> list[Record]:
    selection = EventFilter.of(text)
    return [record for record in records_of("cut-racks") if selection.accepts(record, describe_record(record).casefold)]


@pytest.mark.parametrize(
    ("text", "kinds", "members"),
    [
        ("kind:suspicion*", {"suspicion-raised"}, None),
        ("kind:member-removed,merge-started", {"member-removed", "merge-started"}, None),
        ("member:a1 kind:member-removed", {"member-removed"}, {"a1"}),
        ("member:c* kind:suspicion*", {"suspicion-raised"}, {"c1", "c2"}),
        ('"no heartbeat" !kind:heartbeat-late', {"suspicion-raised"}, None),
        ("suspects !member:c1,c2 KIND", None, None),
        ("kind:suspicion* !heartbeat", {"suspicion-raised"}, {"c1", "c2"}),
    ],
)
def test_words_phrases_kinds_and_members(text: str, kinds: set[str] | None, members: set[str] | None) -> None:
    found = chosen(text)
    if kinds is not None:
        assert {kind_of(record) for record in found} == kinds
    if members is not None:
        assert {record.member for record in found} == members


def test_a_life_is_chosen_by_the_beginning_of_its_uuid() -> None:
    record = records_of("cut-racks")[0]
    assert all(found.uuid == record.uuid for found in chosen(f"life:{record.uuid[:8]}"))


@pytest.mark.parametrize("text", ["", "  ", "!", '"', "kind:", "member:,", '!"'])
def test_what_says_nothing_selects_all(text: str) -> None:
    assert len(chosen(text)) == len(records_of("cut-racks"))


@given(st.text())
def test_every_text_means_something_and_its_opposite(text: str) -> None:
    record = records_of("cut-racks")[0]
    selection = EventFilter.of(text)
    words = describe_record(record).casefold
    for term in selection.terms:
        turned = type(term)(term.field, term.wanted, not term.negated)
        assert term.accepts(record, words) is not turned.accepts(record, words)
