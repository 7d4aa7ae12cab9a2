"""Every record that has a cause names it: over all scenarios, kind by kind, and for what operators ask."""

from __future__ import annotations

from collections import defaultdict

import pytest

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.commands import ChangeState
from quarterdeck.backend.core.data.events import BackupOutOfStep
from quarterdeck.backend.core.events import EVENT_KINDS, JournalChanged, Record, StrangerRefused
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.witnessed.events import WitnessEvent
from quarterdeck.backend.picture.events.catalogue import ROWS
from tests.core.stepped_cluster import SteppedCluster
from tests.picture.played_scenarios import SCENARIOS, records_of

SELDOM = frozenset(
    (
        *(events.ObserverPaused, events.ListRejected, events.ClaimAbandoned, events.MergeAbandoned),
        *(events.ClusterStateRefused, events.SettingsChanged, BackupOutOfStep, StrangerRefused, JournalChanged),
        *WitnessEvent.__args__,
    )
)
"""No scenario shows these with a cause."""


@pytest.mark.long
def test_each_kind_that_has_a_cause_shows_one() -> None:
    examples: defaultdict[type, set[type]] = defaultdict(set)
    for path in SCENARIOS.glob("*.yaml"):
        records = {RecordId(record.uuid, record.seq): record for record in records_of(path.stem)}
        for record in records.values():
            if record.because is not None:
                examples[type(record.event)].add(type(records[record.because].event))
    without = {kind for kind in EVENT_KINDS.values() if not ROWS[kind].external} - examples.keys() - SELDOM
    assert not without


def records_after(cluster: SteppedCluster, command: ChangeState, because: RecordId) -> list[Record]:
    cluster.take("A", cluster.machines["A"].step(cluster.now, command, because))
    return cluster.records["A"]


def test_what_an_operator_asks_for_names_the_request() -> None:
    cluster, asked = SteppedCluster(), RecordId("console", 7)
    cluster.settled("A")
    changed = records_after(cluster, ChangeState("A", "PASSIVE"), asked)[-1]
    assert isinstance(changed.event, events.ClusterStateChanged) and changed.because == asked


def test_the_removal_of_several_members_has_one_cause_and_their_list_follows_from_the_last() -> None:
    records = [record for record in records_of("cut-racks") if record.member == "a1"]
    removed = [record for record in records if isinstance(record.event, events.MemberRemoved)]
    assert len(removed) == 2 and removed[0].because == removed[1].because
    listed = next(record for record in records if record.seq == removed[1].seq + 1)
    assert isinstance(listed.event, events.ListInstalled)
    assert listed.because == RecordId(removed[1].uuid, removed[1].seq)
