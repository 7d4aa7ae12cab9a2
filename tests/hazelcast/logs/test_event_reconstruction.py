"""What a member's log makes of its lives where the recordings have no example: restarts, old releases, missing lines."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import (
    ExplicitSuspicionReceived,
    JoinFailed,
    ListInstalled,
    MemberMerging,
    MemberRemoved,
    MemberStarted,
    MemberStopped,
    MergeAbandoned,
    MergeVerdict,
    ObserverPaused,
    SuspicionCleared,
    SuspicionRaised,
)
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.witnessed.events import MemberWitnessed
from quarterdeck.backend.hazelcast.logs.interpretation import EventReconstruction
from quarterdeck.backend.hazelcast.logs.log_files import NoLogs
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import read_logs

U = [f"{digit * 8}-0000-4000-8000-{digit * 12}" for digit in "0123456789"]
A, B, C = Address("10.0.0.1:5701"), Address("10.0.0.2:5701"), Address("10.0.0.3:5701")


def listed(version: int, *members: str) -> str:
    """Such as ``a1 b2!``: address a with uuid 1, b with uuid 2, which is this one."""
    entries = []
    for member in members:
        host = "abc".index(member[0]) + 1
        entries.append(
            f"\tMember [10.0.0.{host}]:5701 - {U[int(member[1])]}" + (" this" if member.endswith("!") else "")
        )
    return f"\n\nMembers {{size:{len(members)}, ver:{version}}} [\n" + "\n".join(entries) + "\n]\n"


def told(*texts: str, member: str = A) -> list[Record]:
    """The records of a member that says this, one a second."""
    reconstruction = EventReconstruction("r", member, 0)
    records: list[Record] = []
    for second, text in enumerate(texts):
        matched = match_message(text)
        assert matched is not None, text
        records += reconstruction.apply(second * 1_000_000, second * 1_000_000, matched.parsed)
    return records + list(reconstruction.end())


def events(records: list[Record], *kinds: type[Event]) -> list[Event]:
    return [record.event for record in records if isinstance(record.event, kinds)]


STARTING = "Hazelcast 5.3.8 (20240717) starting at [10.0.0.1]:5701"


def test_what_is_said_before_the_uuid_is_known_belongs_to_the_same_life() -> None:
    records = told(STARTING, "[10.0.0.1]:5701 is STARTING", listed(1, "a1!"))
    assert [(record.uuid, record.seq, record.at) for record in records] == [
        (U[1], 1, 0),
        (U[1], 2, 0),
        (U[1], 3, 2_000_000),
        (U[1], 4, 2_000_000),
    ]
    assert [type(record.event).__name__ for record in records[:2]] == ["MemberWitnessed", "MemberStarted"]
    assert events(records, MemberStarted) == [MemberStarted(A, False, ())]


def test_a_lite_member_says_so_only_in_its_list() -> None:
    records = told(STARTING, listed(1, "a1!").replace(" this", " this lite"))
    assert events(records, MemberStarted) == [MemberStarted(A, True, ())]


def test_a_life_without_a_uuid_gets_one_that_shows_it() -> None:
    texts = (
        STARTING,
        "Could not join cluster. Shutting down now!",
        "[10.0.0.1]:5701 is SHUTDOWN",
        STARTING,
        listed(1, "a1!"),
    )
    records = told(*texts)
    assert records == told(*texts)
    first = records[0].uuid
    assert first.startswith("unknown-")
    assert [record.uuid for record in records] == [first] * 4 + [U[1]] * 4
    assert events(records, JoinFailed, MemberStopped) == [
        JoinFailed({A: "Could not join cluster. Shutting down now!"}),
        MemberStopped("shut down"),
    ]


def test_a_member_whose_log_breaks_off_while_it_stops_has_stopped_then() -> None:
    """java.util.logging may close the log at the signal that ends the process; the next start is no end of the one before."""
    records = told(
        STARTING,
        listed(1, "a1!"),
        "Running shutdown hook... Current node state: ACTIVE",
        STARTING,
        listed(1, "a2!"),
    )
    (stopped,) = [record for record in records if isinstance(record.event, MemberStopped)]
    (_, again) = [record for record in records if isinstance(record.event, MemberStarted)]
    assert (stopped.at, again.at) == (2_000_000, 3_000_000)


def test_each_incarnation_begins_with_what_is_told_of_it() -> None:
    """Of the state of the cluster only changes are logged: the state of a life that began before its log is not known."""
    merging = "[10.0.0.1]:5701 is merging to [10.0.0.3]:5701, because: instructed by master [10.0.0.2]:5701"
    reset = f"Resetting local member UUID. Previous: {U[1]}, new: {U[3]}"
    records = told(listed(2, "b2", "a1!"), merging, reset, listed(3, "b2", "a3!"))
    assert [
        (record.uuid, record.seq, record.event) for record in records if isinstance(record.event, MemberWitnessed)
    ] == [
        (U[1], 1, MemberWitnessed(("logs",), ("suspicions", "claims", "merge-verdicts", "losses"))),
        (U[3], 1, MemberWitnessed(("logs",), ("suspicions", "claims", "merge-verdicts", "losses", "cluster-state"))),
    ]


def test_a_list_that_is_printed_again_is_not_installed_again() -> None:
    records = told(listed(1, "a1!"), listed(1, "a1!"), listed(2, "a1!", "b2"), listed(2, "a1!", "b2"))
    assert [event.version for event in events(records, ListInstalled) if isinstance(event, ListInstalled)] == [1, 2]


def test_another_content_under_the_same_version_is_kept_for_the_audit() -> None:
    records = told(listed(2, "a1!", "b2"), listed(2, "a1!", "c3"))
    assert [event.version for event in events(records, ListInstalled) if isinstance(event, ListInstalled)] == [2, 2]


def test_a_restart_under_the_same_uuid_goes_on_with_its_numbers_in_lineages_of_its_own() -> None:
    """With persistence a whole cluster comes back with its uuids, and counts its lists from 1 again."""
    records = told(
        STARTING, listed(1, "a1!"), listed(2, "a1!", "b2"), STARTING, listed(1, "a1!"), listed(2, "a1!", "b2")
    )
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert {record.uuid for record in records} == {U[1]}
    lists = [
        (event.lineage, event.version) for event in events(records, ListInstalled) if isinstance(event, ListInstalled)
    ]
    assert lists == [(U[1], 1), (U[1], 2), (f"{U[1]}#2", 1), (f"{U[1]}#2", 2)]


def test_old_lists_without_versions_count_for_themselves() -> None:
    block = "\n\nMembers [{0}] {{\n\tMember [10.0.0.1]:5701{1}\n\tMember [10.0.0.2]:5701{2}\n}}"
    records = told(
        block.format(2, "", " this"), block.format(2, "", " this"), block.format(2, "", " this lite"), member=B
    )
    lists = [event for event in events(records, ListInstalled) if isinstance(event, ListInstalled)]
    assert [member_list.version for member_list in lists] == [1, 2]
    assert len({member_list.lineage for member_list in lists}) == 1 and lists[0].lineage.startswith("unversioned/")
    assert lists[0].members[0].uuid == "unknown-10.0.0.1:5701"
    assert all(record.uuid == lists[0].members[1].uuid for record in records)


def test_a_merge_of_a_release_that_does_not_say_the_new_uuid() -> None:
    records = told(
        listed(2, "b2", "a1!"),
        "[10.0.0.1]:5701 is merging to [10.0.0.3]:5701, because: instructed by master [10.0.0.2]:5701",
        "[10.0.0.1]:5701 is MERGING",
        listed(4, "c3", "a4!"),
    )
    assert events(records, MemberMerging, MemberStarted) == [MemberMerging(C, U[4]), MemberStarted(A, False, (), U[1])]
    assert [record.uuid for record in records if isinstance(record.event, ListInstalled)] == [U[1], U[4]]


def test_another_uuid_without_a_merge_is_another_life() -> None:
    records = told(listed(1, "a1!"), listed(3, "b2", "a3!"))
    assert events(records, MemberStopped, MemberStarted) == [
        MemberStopped("its uuid was reset"),
        MemberStarted(A, False, ()),
    ]


def test_explicit_suspicion_is_heeded_when_the_suspicion_follows() -> None:
    asked = "Received suspicion request from: [10.0.0.2]:5701"
    suspected = f"Member [10.0.0.2]:5701 - {U[2]} is suspected to be dead for reason: explicit suspicion"
    heeded = told(listed(2, "b2", "a1!"), asked, suspected)
    assert [type(event).__name__ for event in events(heeded, ExplicitSuspicionReceived, SuspicionRaised)] == [
        "ExplicitSuspicionReceived",
        "SuspicionRaised",
    ]
    (received,) = events(heeded, ExplicitSuspicionReceived)
    assert isinstance(received, ExplicitSuspicionReceived) and received.heeded
    for rest in ([], [asked], ["[10.0.0.1]:5701 is STARTED"]):
        ignored = events(told(listed(2, "b2", "a1!"), asked, *rest), ExplicitSuspicionReceived)
        assert all(isinstance(event, ExplicitSuspicionReceived) and not event.heeded for event in ignored)
        assert len(ignored) == 1 + rest.count(asked)


def test_a_detector_that_fires_is_a_suspicion_only_on_a_master() -> None:
    fired = f"Suspecting Member [10.0.0.2]:5701 - {U[2]} because it has not sent any heartbeats since 1. Now: 2"
    removing = f"Removing Member [10.0.0.2]:5701 - {U[2]}"
    on_master = told(listed(2, "a1!", "b2"), fired, removing)
    assert events(on_master, SuspicionRaised, MemberRemoved) == [
        SuspicionRaised(B, U[2], fired, "no-heartbeat"),
        MemberRemoved(B, U[2], fired, "no-heartbeat"),
    ]
    assert events(told(listed(2, "b2", "a1!"), fired), SuspicionRaised) == []


def test_a_partial_disconnection_is_told_with_its_reason() -> None:
    removing = f"Removing Member [10.0.0.2]:5701 - {U[2]}"
    reason = f"{removing} because it has disconnected from some of the members"
    records = told(listed(2, "a1!", "b2"), f"{reason}!", removing)
    assert events(records, MemberRemoved) == [MemberRemoved(B, U[2], reason, "disconnected")]


def test_a_member_that_asked_to_leave_was_not_lost() -> None:
    leaving = f"Member [10.0.0.2]:5701 - {U[2]}"
    refused = (
        "Could not connect to: /10.0.0.2:5701. Reason: SocketException[Connection refused to address /10.0.0.2:5701]"
    )
    records = told(listed(2, "a1!", "b2"), f"Shutdown request of {leaving} is handled", refused, f"Removing {leaving}")
    (removed,) = events(records, MemberRemoved)
    assert removed == MemberRemoved(B, U[2], "it asked its master to let it leave", "goodbye")


def test_a_suspicion_that_is_lifted_may_be_raised_again() -> None:
    raised = "[10.0.0.2]:5701 is suspected to be dead for reason: No connection"
    lifted = "Removed suspicion from [10.0.0.2]:5701. Reason: Valid heartbeat"
    records = told(listed(2, "b2", "a1!"), raised, raised, lifted, raised)
    assert events(records, SuspicionRaised, SuspicionCleared) == [
        SuspicionRaised(B, U[2], "No connection", "no-connection"),
        SuspicionCleared(B, U[2], "Valid heartbeat"),
        SuspicionRaised(B, U[2], "No connection", "no-connection"),
    ]


def test_the_rest_of_what_makes_events() -> None:
    verdict = "We should merge to [10.0.0.3]:5701, both have the same data member count: 1"
    postponed = "Could not change cluster state to FROZEN in time. Postponing merge process until next attempt."
    records = told(
        listed(1, "a1!"),
        verdict,
        verdict,
        "[10.0.0.1]:5701 is merging [tcp/ip] to [10.0.0.3]:5701",
        postponed,
        "Resetting heartbeat timestamps because of huge system clock jump! Clock-Jump: 31000 ms, Heartbeat-Timeout: 60000 ms",
        "partitionId=7 is completely lost!",
    )
    assert events(records, MergeVerdict, MergeAbandoned, ObserverPaused, PartitionLost) == [
        MergeVerdict(C, "local-merges", "address", verdict),
        MergeAbandoned(C, postponed),
        ObserverPaused(31_000_000, is_by_clock=True),
        PartitionLost(7, 6),
    ]


ANYTHING = [
    STARTING,
    "[10.0.0.1]:5701 is STARTING",
    "[10.0.0.1]:5701 is SHUTDOWN",
    listed(1, "a1!"),
    listed(2, "a1!", "b2"),
    listed(3, "b2", "a3!"),
    listed(4, "b2"),
    "Starting mastership claim process...",
    f"Resetting local member UUID. Previous: {U[1]}, new: {U[3]}",
    "[10.0.0.1]:5701 is merging to [10.0.0.3]:5701, because: instructed by master [10.0.0.2]:5701",
    "Running shutdown hook",
    "Received suspicion request from: [10.0.0.2]:5701",
    "[10.0.0.2]:5701 is suspected to be dead",
]


@given(st.lists(st.sampled_from(ANYTHING)))
def test_whatever_the_order_lives_are_numbered_without_gaps(texts: list[str]) -> None:
    records = told(*texts)
    numbers: dict[str, int] = {}
    for record in records:
        assert record.uuid
        assert record.seq == numbers.get(record.uuid, 0) + 1
        numbers[record.uuid] = record.seq


# Who speaks


@pytest.mark.parametrize("run", ["split-and-merge", "split-and-merge-log4j2"])
def test_logs_that_are_there_twice_count_once(run: str, tmp_path: Path) -> None:
    data = Path(__file__).parent / "data" / run
    for log in sorted(data.glob("*.log")):
        (tmp_path / log.name).write_bytes(log.read_bytes())
        (tmp_path / f"{log.name}.copy").write_bytes(log.read_bytes())
    assert read_logs([tmp_path], LogOptions(run=run)).records == read_logs([data]).records


def test_a_client_in_the_same_file_is_no_member(tmp_path: Path) -> None:
    members = f"\n\nMembers [1] {{\n\tMember [10.0.0.1]:5701 - {U[1]}\n}}\n"
    lines = [
        "2026-11-21 12:00:00,000 INFO c.h.c.LifecycleService - [10.0.0.1]:5701 [dev] [5.3.8] [10.0.0.1]:5701 is STARTING\n",
        f"2026-11-21 12:00:01,000 INFO c.h.i.c.ClusterService - [10.0.0.1]:5701 [dev] [5.3.8] {listed(1, 'a1!')}",
        f"2026-11-21 12:00:02,000 INFO c.h.c.i.s.ClientClusterService - hz.client_1 [dev] [5.3.8] {members}",
        f"2026-11-21 12:00:03,000 INFO c.h.c.i.s.ClientClusterService - {members}",
    ]
    (tmp_path / "app.log").write_text("".join(lines))
    reading = read_logs([tmp_path])
    assert [type(record.event).__name__ for record in reading.records] == [
        "MemberWitnessed",
        "MemberStarted",
        "MasterChanged",
        "ListInstalled",
    ]


@pytest.mark.parametrize(
    "before",
    [
        "2026-11-21 12:00:00,000 INFO c.h.i.c.ClusterService -",
        "2026-11-21 12:00:00,000 INFO  [main] ClusterService:",
        "2026-11-21 12:00:00,000 [INFO ] [ClusterService]",
        "2026-11-21 12:00:00,000 INFO  ClusterService -",
        "Nov 21, 2026 12:00:00 PM com.hazelcast.internal.cluster.ClusterService\nINFO:",
        "2026-11-21T12:00:00.000Z|INFO|ClusterService|",
    ],
)
def test_logs_without_the_products_prefix_are_of_the_member_that_lists_itself(before: str, tmp_path: Path) -> None:
    """As with `hazelcast.logging.details.enabled` off."""
    text = f"{before} {listed(1, 'a1!')}"
    (tmp_path / "node-7.log").write_text(text)
    assert [record.member for record in read_logs([tmp_path]).records] == [A, A, A]


def test_logs_that_name_nobody_are_of_their_file(tmp_path: Path) -> None:
    line = "2026-11-21 12:00:00,000 INFO c.h.i.c.i.MembershipManager - Starting mastership claim process...\n"
    (tmp_path / "node-7.log").write_text(line)
    reading = read_logs([tmp_path])
    assert [(record.member, record.uuid[:8]) for record in reading.records] == [("node-7", "unknown-")] * 2


def test_a_line_of_nobody_among_several_members_is_kept_aside(tmp_path: Path) -> None:
    def said(host: int) -> str:
        return f"2026-11-21 12:00:00,000 INFO x - [10.0.0.{host}]:5701 [dev] [5.3.8] [10.0.0.{host}]:5701 is STARTING\n"

    nobody = "2026-11-21 12:00:00,000 INFO c.h.x.MembershipManager - Starting mastership claim process...\n"
    (tmp_path / "all.log").write_text(said(1) + nobody + said(2))
    (aside,) = read_logs([tmp_path]).quarantine
    assert (aside.line, aside.text) == (2, "Starting mastership claim process...")
    assert "which member" in aside.reason


def test_what_is_unknown_is_kept_with_its_place_and_its_stack_trace(tmp_path: Path) -> None:
    trace = "java.lang.IllegalStateException: odd\n\tat com.hazelcast.X.y(X.java:1)\nCaused by: java.io.IOException"
    text = f"stray\n2026-11-21 12:00:00,000 WARN x - [10.0.0.1]:5701 [dev] [5.3.8] Never heard of\n{trace}\n\n"
    text += "2026-11-21 12:00:01,000 INFO org.example.App - something else\n"
    (tmp_path / "h1.log").write_text(text)
    reading = read_logs([tmp_path])
    assert [(aside.line, aside.text.rstrip()) for aside in reading.quarantine] == [
        (1, "stray"),
        (2, f"Never heard of\n{trace}"),
    ]
    (counts,) = reading.counts.values()
    assert counts == {"quarantined": (1, 1), "unrecognised": (1, 5), "foreign": (1, 1)}


def test_a_directory_without_logs_says_so(tmp_path: Path) -> None:
    (tmp_path / "lab.jsonl").write_text("{}\n")
    with pytest.raises(NoLogs, match="no log of a member"):
        read_logs([tmp_path])


def test_runs_are_directories_unless_named(tmp_path: Path) -> None:
    line = "2026-11-21 12:00:00,000 INFO x - [10.0.0.1]:5701 [dev] [5.3.8] [10.0.0.1]:5701 is STARTING\n"
    for run in ("monday", "tuesday"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "h1.log").write_text(line)
    assert [record.run for record in read_logs([tmp_path]).records] == ["monday"] * 2 + ["tuesday"] * 2
    assert {record.run for record in read_logs([tmp_path], LogOptions(run="week")).records} == {"week"}
