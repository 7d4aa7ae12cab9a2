"""Journals of form 1 are read as if they had been recorded in form 2.

`form_1` and `form_2` hold the same runs, each recorded by the program of its time; runs of today need not be like them.
"""

from pathlib import Path

import pytest
from msgspec import structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.events import FORM, Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import MigrationsCancelled, MigrationsPlanned
from quarterdeck.backend.journal.reader import read_journal, upgraded
from quarterdeck.backend.picture.explain.causes import causes
from quarterdeck.backend.scenarios.format.reading import load_scenario
from quarterdeck.backend.simulation.simulated_driver import simulate

OLD = Path(__file__).parent / "form_1"
NEW = Path(__file__).parent / "form_2"
SCENARIOS = Path(__file__).parents[1] / "scenarios"
UPGRADED = (
    events.SuspicionRaised, events.MemberRemoved, events.MasterChanged, events.MemberStopped, events.SuspicionCleared,
    events.ExplicitSuspicionSent, events.ClaimAbandoned, events.NotMerging, events.MergeAbandoned, MigrationsPlanned,
    MigrationsCancelled,
)  # fmt: skip
"""Kinds whose causes are found again in their sentences."""


def without_precision(event: Event) -> Event:
    """`event` as far as form 1 told of it: lengths of silence in tenths of a second, other causes in words only."""
    if isinstance(event, events.SuspicionRaised | events.MemberRemoved) and event.silence is not None:
        return structs.replace(event, silence=round(event.silence / 100_000) * 100_000)
    if not isinstance(event, UPGRADED) and hasattr(event, "cause") and hasattr(event, "reason"):
        kept = event.cause if isinstance(event, events.ListInstalled) else "unknown"
        return structs.replace(event, cause=kept)
    return event


@pytest.mark.parametrize("old", sorted(OLD.iterdir()), ids=lambda path: path.stem)
def test_an_old_journal_reads_as_a_new_one(old: Path) -> None:
    journal = read_journal(old)
    was = list(journal)
    assert not journal.problems and {record.form for record in was} == {1}
    told = list(read_journal(NEW / old.name))
    assert {record.form for record in told} == {2}
    assert [(record.uuid, record.seq, record.at, record.event) for record in was] == [
        (record.uuid, record.seq, record.at, without_precision(record.event)) for record in told
    ]
    explained = [
        [(cause.record.uuid, cause.record.seq, cause.reason) for cause in causes(was, record)] for record in was
    ]
    assert explained == [
        [(cause.record.uuid, cause.record.seq, cause.reason) for cause in causes(told, record)] for record in told
    ]


def test_every_cause_that_an_old_journal_tells_is_found() -> None:
    found = [
        record.event for old in OLD.iterdir() for record in read_journal(old) if isinstance(record.event, UPGRADED)
    ]
    assert len(found) > 50 and not [event for event in found if event.cause == "unknown"]


def test_what_was_reported_is_told_apart_from_who_reported_it() -> None:
    raised = events.SuspicionRaised(Address("a:1"), "u", "b:2 reports: no heartbeat for 4.5 s")
    event = upgraded(Record("r", "n", "v", 1, 0, 0, raised)).event
    assert event == structs.replace(raised, cause="no-heartbeat", silence=4_500_000, reporter=Address("b:2"))


def test_a_record_of_today_is_left_alone() -> None:
    raised = events.SuspicionRaised(Address("a:1"), "u", "it said goodbye")
    record = Record("r", "n", "v", 1, 0, 0, raised, RecordId("v", 0), FORM)
    assert upgraded(record) is record


@pytest.mark.parametrize("seed", range(3, 9))
def test_the_core_records_no_unknown_cause_and_names_only_records_before(seed: int) -> None:
    scenario = load_scenario(SCENARIOS / f"{('claim-a-to-f', 'cut-lite', 'p-frozen')[seed % 3]}.yaml")
    told: list[Record] = []
    simulate(scenario, seed, told)
    seen: set[RecordId] = set()
    for record in told:
        assert getattr(record.event, "cause", "") != "unknown", record
        assert record.because is None or record.because in seen, record
        seen.add(RecordId(record.uuid, record.seq))
    assert any(record.because is not None for record in told)
