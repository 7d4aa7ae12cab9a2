"""What waits: a member to leave, a cluster to be ACTIVE again, a member to be let in."""

from pathlib import Path

import pytest

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.judgement.observations.observation import Observation
from quarterdeck.backend.judgement.observations.story import RecordObservers
from tests.hazelcast.logs.written_logs import A, B, C, Logs, member


def observed(logs: Logs, kind: str) -> list[Observation]:
    """Return the observations of one kind; those of a journal that is made of the logs are the same."""
    of_logs = [observation for observation in logs.observed() if observation.kind == kind]
    records: list[Record] = logs.records()
    observers = RecordObservers("r")
    for record in records:
        observers.add(record)
    story = observers.story()
    assert story is not None
    of_records = [observation for observation in story.observations if observation.kind == kind]
    assert [observation.headline.partition(", until")[0] for observation in of_records] == [
        observation.headline.partition(", until")[0] for observation in of_logs
    ]
    return of_logs


def test_a_stop_that_waits_says_for_whom_and_for_how_many(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 3, "1a2a3a")
    logs.said(10, 1, f"Shutdown request of {member(3)} is handled")
    for second, count in ((25, 90), (40, 60)):
        logs.said(second, 1, f"Remaining migration tasks: {count}. (plannedMigrations=120)")
    logs.said(50, 1, "Migration failed: MigrationInfo{uuid=x, partitionId=5, destination=[10.0.0.2]:5701}")
    logs.said(70, 1, "Remaining migration tasks: 20. (plannedMigrations=120)")
    (waits,) = observed(logs, "shutdown-waits")
    assert waits.headline == (
        f"{C} waited for its master {A} to let it leave: 60 s, until the logs end; 20 migrations were left"
    )
    assert waits.is_open and waits.members == (C, A) and waits.evidence_lines == 5
    assert waits.detail == "It had 90 migrations left at first and 20 at last. Migrations failed once meanwhile."
    assert "hazelcast.graceful.shutdown.max.wait" in waits.remedy
    logs.said(100, 3, "[10.0.0.3]:5701 is SHUTDOWN")
    (waits,) = observed(logs, "shutdown-waits")
    assert not waits.is_open and ": 90 s; 20" in waits.headline


def test_a_member_that_leaves_soon_does_not_wait(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 2, "1a2a")
    logs.said(10, 1, f"Shutdown request of {member(2)} is handled")
    logs.said(39, 1, f"Removing {member(2)}")
    logs.said(90, 1, "processors=2")
    assert observed(logs, "shutdown-waits") == []


def test_a_state_that_lasts_is_one_observation_of_all_members(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 2, "1a2a")
    change = "Changing cluster state from {} to {}, initiator: [10.0.0.1]:5701,"
    for host in (1, 2):
        logs.said(10 + host / 10, host, change.format("ACTIVE", "FROZEN"))
    logs.said(60, 1, "[10.0.0.1]:5701 is STARTED")
    assert observed(logs, "frozen") == []
    logs.said(130, 1, change.format("FROZEN", "ACTIVE"))
    logs.said(131, 2, change.format("FROZEN", "ACTIVE"))
    (frozen,) = observed(logs, "frozen")
    assert (frozen.headline, frozen.members) == ("the cluster was FROZEN: 2 min 1 s", (A, B))
    assert "initiated by [10.0.0.1]:5701" in frozen.detail and not frozen.is_open
    logs.said(200, 2, change.format("ACTIVE", "PASSIVE"))
    logs.said(300, 2, "[10.0.0.2]:5701 is STARTED")
    assert [observation for observation in logs.observed() if observation.kind == "frozen"][
        1
    ].headline == "the cluster was PASSIVE: 100 s, until the logs end"


@pytest.mark.parametrize(
    ("reason", "differs"),
    [
        ("Incompatible joiners! expected: tcp-ip, found: multicast", "the joiners differ"),
        ("Incompatible partition count! expected: 271, found: 100", "the numbers of partitions differ"),
        (
            "Incompatible partition groups! expected: enabled / HOST_AWARE, found: disabled / null",
            "the partition groups",
        ),
        ("members part of different cluster", "the names of the clusters differ"),
    ],
)
def test_a_member_that_is_refused_names_the_setting(tmp_path: Path, reason: str, differs: str) -> None:
    logs = Logs(tmp_path)
    logs.lists(0, 2, "1a2a")
    logs.said(10, 1, f"Received an invalid join request from [10.0.0.3]:5701, cause: {reason}")
    (refused,) = observed(logs, "join-refused")
    assert refused.members == (C, A)
    assert refused.headline.startswith(f"{C} was refused once: {differs}")
    assert reason in refused.detail


def test_a_joiner_says_why_itself(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    why = "Joining node's version 5.3.5 is not compatible with cluster version 4.2"
    logs.said(10, 3, "Node could not join cluster. Before join check failed node is going to shutdown now!")
    logs.said(10, 3, f"Reason of failure for node join: {why}")
    (refused,) = observed(logs, "join-refused")
    assert refused.headline == f"{C} was refused twice: the versions do not fit"
    assert refused.detail == f"“{why}”"
    logs.lists(60, 3, "1a2a3b", "13")
    (refused,) = observed(logs, "join-refused")
    assert refused.headline.endswith("; it joined later")
