"""Traces: all records about a migration, an episode or a member."""

from __future__ import annotations

from typing import Any

import pytest

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.data.events import CallFinished
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.picture.explain.causes import causes
from quarterdeck.backend.picture.explain.episodes.episodes import Episodes
from quarterdeck.backend.picture.explain.event_index import identity
from quarterdeck.backend.picture.explain.event_trace import Subject, event_trace, state_record, subjects_of
from tests.picture.played_scenarios import SCENARIOS, event_index_of, records_of
from tests.thoroughness import long_after


def episodes_of(name: str) -> Episodes:
    """The episodes of a scenario's records."""
    episodes = Episodes(event_index_of(name).label_of)
    episodes.extend(records_of(name))
    return episodes


def story_at(name: str, kind: type, which: str) -> tuple[str, tuple[Any, ...]]:
    """Heading and events of the trace of this kind that the first event of `kind` is part of."""
    event_index, episodes = event_index_of(name), episodes_of(name)
    record = next(record for record in event_index.records if isinstance(record.event, kind))
    subject = next(subject for subject in subjects_of(event_index, record, episodes) if subject.kind == which)
    story = event_trace(event_index, subject, episodes)
    places = [event_index.place_of(record) for record in story.records]
    assert places == sorted(places)
    return story.heading, tuple(record.event for record in story.records)


def test_a_migration_from_its_beginning_to_the_last_participant() -> None:
    heading, said = story_at("p-move", partition_events.MigrationCopied, "migration")
    assert "migration of p3, MOVE: a4 becomes backup 1 in place of a3" in heading
    assert isinstance(said[0], partition_events.MigrationStarted)
    assert len({event.migration_id for event in said}) == 1
    assert sum(isinstance(event, partition_events.MigrationFinished) for event in said) == 3


def test_a_claim_from_what_made_it_necessary_to_the_lists() -> None:
    for kind in (events.ClaimStarted, events.ClaimAnswered, events.ClaimFinished):
        heading, said = story_at("master-crash", kind, "episode")
        assert heading.startswith("kill athens: ")
        assert "byzantium leads v5" in heading or "v5 of 4" in heading, heading
        assert sum(isinstance(event, events.ClaimAnswered) for event in said) == 2
        assert sum(isinstance(event, events.ListInstalled) for event in said) == 3


def test_a_merge_to_the_arrival() -> None:
    heading, said = story_at("join-list-edit", events.MergeStarted, "episode")
    assert heading.startswith("delphi, euphesus merge into the cluster of athens")
    assert sum(isinstance(event, events.MemberMerging) for event in said) == 2
    assert any(isinstance(event, events.ListInstalled) for event in said)


def test_an_episode_that_is_not_remembered_has_no_records() -> None:
    event_index = event_index_of("master-crash")
    assert event_trace(event_index, Subject("episode", "7"), Episodes()).records == ()


def test_a_member_in_its_own_words_and_in_those_of_others() -> None:
    event_index = event_index_of("cut-racks")
    record = next(record for record in event_index.records if record.member == "c1")
    episodes = Episodes()
    story = event_trace(event_index, subjects_of(event_index, record, episodes)[-1], episodes)
    assert story.heading.startswith("c1 in 2 incarnations")
    members = {record.member for record in story.records}
    assert {"c1", "a1", "b1", "dev"} <= members
    assert any(isinstance(record.event, events.MemberRemoved) for record in story.records)


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
    record = next(record for record in event_index.records if isinstance(record.event, LinkChanged))
    assert {subject.key for subject in subjects_of(event_index, record, Episodes())} == {"b1", "c1"}


@pytest.mark.parametrize("first", long_after(1, [0, 5]))
def test_every_event_has_a_story_that_holds_it(first: int) -> None:
    for name in sorted(path.stem for path in SCENARIOS.glob("*.yaml"))[first::10]:
        event_index, episodes = event_index_of(name), Episodes()
        held_by: dict[Subject, set[RecordId]] = {}
        for record in event_index.records[::3]:
            if isinstance(record.event, CallFinished):
                continue
            subjects = subjects_of(event_index, record, episodes)
            assert subjects, record
            widest = subjects[-1]
            if widest not in held_by:
                held_by[widest] = {identity(held) for held in event_trace(event_index, widest, episodes).records}
            assert identity(record) in held_by[widest], record
