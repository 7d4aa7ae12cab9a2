"""Stories: all that belongs to a migration, a claim, a merge or a member."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core import events
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.data.events import CallFinished
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.picture.explain.causes import causes
from quarterdeck.backend.picture.explain.event_index import identity
from quarterdeck.backend.picture.explain.event_trace import Subject, event_trace, state_record, subjects_of
from tests.picture.played_scenarios import SCENARIOS, event_index_of
from tests.thoroughness import long_after


def story_at(name: str, kind: type, which: str) -> tuple[str, tuple[object, ...]]:
    """Heading and events of the story of this kind that the first event of `kind` is part of."""
    event_index = event_index_of(name)
    record = next(one for one in event_index.records if isinstance(one.event, kind))
    subject = next(one for one in subjects_of(event_index, record) if one.kind == which)
    story = event_trace(event_index, subject)
    places = [event_index.place_of(one) for one in story.records]
    assert places == sorted(places)
    return story.heading, tuple(one.event for one in story.records)


def test_a_migration_from_its_beginning_to_the_last_participant() -> None:
    heading, said = story_at("p-move", partition_events.MigrationCopied, "migration")
    assert "migration of p3, MOVE: a4 to 1, a3 goes" in heading
    assert isinstance(said[0], partition_events.MigrationStarted)
    assert len({one.migration_id for one in said}) == 1
    assert sum(isinstance(one, partition_events.MigrationFinished) for one in said) == 3


def test_a_claim_from_the_suspicions_to_the_lists() -> None:
    for kind in (events.ClaimStarted, events.ClaimAnswered, events.ClaimFinished):
        heading, said = story_at("master-crash", kind, "claim")
        assert heading.startswith("claim of byzantium; list v5 comes of it")
        assert isinstance(said[0], events.SuspicionRaised)
        assert sum(isinstance(one, events.ClaimAnswered) for one in said) == 2
        assert sum(isinstance(one, events.ListInstalled) for one in said) == 3


def test_a_merge_from_the_verdicts_to_the_arrival() -> None:
    heading, said = story_at("join-list-edit", events.MergeStarted, "merge")
    assert heading.startswith("merge of delphi, euphesus into the cluster of athens; all have arrived")
    assert sum(isinstance(one, events.MergeVerdict) for one in said) == 2
    assert sum(isinstance(one, events.MemberMerging) for one in said) == 2
    assert sum(isinstance(one, events.ListInstalled) for one in said) == 2


def test_a_member_in_its_own_words_and_in_those_of_others() -> None:
    event_index = event_index_of("cut-racks")
    record = next(one for one in event_index.records if one.member == "c1")
    story = event_trace(event_index, subjects_of(event_index, record)[-1])
    assert story.heading.startswith("c1 in 2 lives")
    members = {one.member for one in story.records}
    assert {"c1", "a1", "b1", "dev"} <= members
    assert any(isinstance(one.event, events.MemberRemoved) for one in story.records)


def test_what_made_a_member_what_it_is() -> None:
    event_index = event_index_of("master-crash")
    records = {label: state_record(event_index, label) for label in ("athens", "byzantium", "cyrene")}
    assert all(record is not None and isinstance(record.event, events.ListInstalled) for record in records.values())
    found = records["cyrene"]
    assert found is not None
    assert causes(event_index, found)
    assert state_record(event_index, "nowhere") is None


def test_what_comes_from_outside_belongs_to_the_members_it_hits() -> None:
    event_index = event_index_of("cut-racks")
    record = next(one for one in event_index.records if isinstance(one.event, events.LinkChanged))
    assert {subject.key for subject in subjects_of(event_index, record)} == {"b1", "c1"}


@pytest.mark.parametrize("first", long_after(1, [0, 5]))
def test_every_event_has_a_story_that_holds_it(first: int) -> None:
    for name in sorted(path.stem for path in SCENARIOS.glob("*.yaml"))[first::10]:
        event_index = event_index_of(name)
        held_by: dict[Subject, set[RecordId]] = {}
        for record in event_index.records[::3]:
            if isinstance(record.event, CallFinished):
                continue
            subjects = subjects_of(event_index, record)
            assert subjects, record
            widest = subjects[-1]
            if widest not in held_by:
                held_by[widest] = {identity(held) for held in event_trace(event_index, widest).records}
            assert identity(record) in held_by[widest], record
