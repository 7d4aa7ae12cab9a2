"""Every kind of event has its sentence."""

from __future__ import annotations

import msgspec
import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.events import (
    Event,
    JournalChanged,
    MembersExpected,
    OperatorAsked,
    ProcessKilled,
    ProcessPaused,
    ProcessResumed,
    Record,
    StrangerRefused,
)
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions import events as partitions
from quarterdeck.backend.core.partitions.events import Holder, MigrationStarted, PlannedMigration
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.picture.events.catalogue import describe_event, describe_record

A, B = Address("[fe80::1]:5701"), Address("10.0.0.2:5701")

SAMPLES: list[Event] = [
    events.MemberStarted(A, True, (A, B)),
    events.JoinRequested(A, 2),
    events.JoinFailed({A: "no route"}),
    events.MemberStopped("asked to"),
    events.ListInstalled(3, "L", A, (Member(A, "u", 1), Member(B, "v", 2)), A, "B joined"),
    events.ListRejected(3, B, "not from the master"),
    events.MasterChanged(B, "its claim was accepted"),
    events.MemberAdmitted(B, "v", 4, 1, 2),
    events.MemberRemoved(B, "v", "suspected"),
    events.SuspicionRaised(B, "v", "no heartbeat"),
    events.SuspicionCleared(B, "v", "a heartbeat"),
    events.ExplicitSuspicionSent(B, "stranger"),
    events.ExplicitSuspicionReceived(B, True, "all matches"),
    events.ComplaintSent(A, B),
    events.ObserverPaused(2_500_000),
    events.HeartbeatLate(B, "v", 31_000_000, 60_000_000, False),
    events.ClaimStarted(3, (A,), (B,)),
    events.ClaimAnswered(B, "retry", 3, "does not suspect A"),
    events.ClaimFinished(5, "L2", (B,), ()),
    events.ClaimAbandoned("refused"),
    events.MemberStarted(A, False, (B,), "u"),
    events.DisconnectionReported(A, (B,)),
    events.DisconnectionReported(A, ()),
    events.DisconnectionResolved((A,), (B,), False, "the largest that reach one another"),
    events.MemberHeldBack(B, (A,)),
    events.JoinDelayed(A, (B,), 1_500_000),
    events.MergeVerdict(B, "cannot-merge", "cluster-name", "the names differ"),
    events.NotMerging("nobody answers"),
    events.MergeStarted(A, (B,)),
    events.MergeAbandoned(A, "it fell silent"),
    events.MemberMerging(A, "v"),
    events.AddressUnusable(A, "the name of the host does not resolve", "unresolvable"),
    events.SearchPlanned(5_000_000, 3_000_000),
    events.AddressesRemembered((A,), (B,)),
    events.JoinListChanged((A, B), 3, B),
    events.ClusterStateChanged("FROZEN", "the master decided it"),
    events.ClusterStateRefused("PASSIVE", "no answer"),
    events.LiteChangeRefused(True, "no other member could hold its data"),
    events.ProtectionChanged(2, 3, False),
    partitions.TableChanged(
        12, "d", 271, (Holder(A, "u"), Holder(B, "v")), ((3, 2, 1, 0), (4, 1, -1, 0)), "u", "repaired"
    ),
    partitions.PartitionLost(3, 6),
    partitions.TableRecoveryStarted((A, B)),
    partitions.TableRecovered(12, {A: 11, B: 12}, ("m1",), ()),
    partitions.MigrationsPlanned((PlannedMigration(3, "MOVE", A, B, 0),), 1, 1, "somebody joined"),
    partitions.MigrationsPlanned((), 0, 0, "somebody left"),
    partitions.MigrationsCancelled(7, "somebody left"),
    MigrationStarted("m1", 3, "SHIFT DOWN", 4, A, 0, 2, B, -1, 0, A, 2, 3, True),
    partitions.MigrationAccepted("m1", 3, "source", 0, -1),
    partitions.MigrationRejected("m1", 3, "destination", "its table is older"),
    partitions.MigrationCopied("m1", 3, 2, 2_500_000, 3_500),
    partitions.MigrationCommitting("m1", 3),
    partitions.MigrationDecided("m1", 3, False, 6, "the destination left"),
    partitions.MigrationFinished("m1", 3, "destination", True, -1, 0),
    partitions.CompletedEvicted(("m1", "m2")),
    partitions.DrainStarted(A),
    partitions.DrainFinished(A, "the cluster is FROZEN"),
    data.CallStarted(1, "put", "orders", "k1", "v1"),
    data.CallFinished(1, "get", "orders", "k1", 3, "v1", True, 1_500, "", False),
    data.CallFinished(2, "remove", "orders", "k1", 3, "", False, 1_500, "its owner left", False),
    data.BackupOutOfStep(3, B, "a write is missing"),
    data.BackupInStep(3, B, 12, 999),
    data.DataMeasured(
        1_000_000,
        3,
        30,
        2,
        20,
        4,
        (data.MapMeasured("m", 3, 30, 5, 4),),
        ((7, 3, 30, 5, 4, 1, 9_000),),
        (data.BackupLag(B, 1, 1, 9_000),),
    ),
    data.EntriesEvicted(7, "cache", ("k1", "k2")),
    data.EntriesMerged("latest-update", 12, 3, "nobody answers"),
    ProcessKilled("n1"),
    ProcessPaused("n1"),
    ProcessResumed("n1"),
    LinkChanged("n1", "n2", "blackhole", 1_500, 0.25, 0.5, ("heartbeat",)),
    OperatorAsked("change-state FROZEN", "write", "10.0.0.9:51234", True, ""),
    events.SettingsChanged({"hazelcast.merge.next.run.delay.seconds": "5"}),
    JournalChanged("n1", "No space left on device", 0),
    MembersExpected(4),
    StrangerRefused("1.2.3.4:9", "no handshake"),
    witnessed.MemberWitnessed(("logs",), ("suspicions", "claims")),
    witnessed.OwnersTold((Holder(A, "u"),), (0, -1), "a61bc9", 17),
    witnessed.JoinerRefused(B, "Incompatible joiners! expected: tcp-ip, found: multicast"),
    witnessed.LeaveRequested(B, "v"),
    witnessed.MigrationsRemaining(20),
    witnessed.MigrationFailed(5, "MigrationInfo{partitionId=5}"),
    witnessed.MigrationFailed(None, "something"),
    witnessed.ReplicaMigrated(3, 1, None, B, True, 12_000, 54, 31),
    witnessed.MemberMeasured(
        3, 31, 28, 0, 900_000, heap_used=38_000_000, heap_max=129_000_000, open_files=60, clients=1
    ),
    witnessed.MemberMeasured(cp_missing=1, strained_links=(witnessed.LinkMeasured(B, 0),)),
    witnessed.MemberMeasured(heap_used=38_000_000, span=5_000_000, collecting=4_200_000),
    witnessed.ConnectionChanged("merging", "it merges, for its process goes on"),
]


UNTOLD = ("L", "L2", "u", "v", "cannot-merge", "merging")
"""Names of lineages, lives and rules that a line leaves out or puts in words."""


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.__struct_config__.tag)
def test_every_kind_is_told_in_words(event: Event) -> None:
    line = describe_record(Record("r", "n1", "u", 1, 12_345_678, 0, event))
    assert line.startswith("   12.346  n1  ")
    assert "\n" not in line and type(event).__name__ not in line
    for name, value in msgspec.structs.asdict(event).items():
        told_as_sentence = name == "cause" and bool(getattr(event, "reason", getattr(event, "why", "")))
        if (
            name not in ("migration_id", "digest")
            and not told_as_sentence
            and isinstance(value, str)
            and value not in UNTOLD
        ):
            assert value in line


def test_addresses_go_by_the_names_people_know() -> None:
    assert (
        describe_event(events.SuspicionRaised(B, "v", "no heartbeat"), {B: "n2"}.__getitem__)
        == "suspects n2: no heartbeat"
    )


def test_where_no_other_could_acknowledge_an_admission_none_is_counted() -> None:
    assert describe_event(events.MemberAdmitted(B, "v", 2, 0, 0), {B: "n2"}.__getitem__) == "admits n2 with list v2"


def test_addresses_within_reasons_go_by_name_too() -> None:
    names = {B: "n2", A: "n1"}
    event = events.NotMerging(
        f"{A} has 3 data members and {B} has 2, so {B} merges into {A}; (nobody at 10.0.0.2:57010)"
    )
    line = describe_record(Record("r", "n1", "u", 1, 0, 0, event), lambda address: names.get(address, address))
    assert line.endswith("n1 has 3 data members and n2 has 2, so n2 merges into n1; (nobody at 10.0.0.2:57010)")


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            partitions.TableChanged(12, "d", 271, (Holder(A, "u"), Holder(B, "v")), ((3, 2, 1, 0, -1),), "u", "migration"),
            "has table v12: p3 is n2, n1, – (migration)",
        ),
        (
            witnessed.ReplicaMigrated(3, 1, None, B, True, 12_000, 54, 31),
            "p3, replica 1, has moved from no member to n2 within 12 ms (31 of 54 done)",
        ),
        (witnessed.ConnectionChanged("gone", "refused"), "cannot be reached: refused"),
        (partitions.PartitionLost(3, 6), "loses p3: no replica is left, it begins empty"),
        (partitions.PartitionLost(3, 0), "p3 has lost its owner"),
        (partitions.PartitionLost(3, 0, False), "p3 has lost its owner: no data is lost, a backup takes over"),
        (
            partitions.PartitionLost(3, 1, True),
            "p3 has lost its owner and 1 backup: entries of maps with at most 1 backup are gone, if there were any",
        ),
        (
            partitions.PartitionLost(3, 1, True, ("orders",)),
            "p3 has lost its owner and 1 backup: entries of maps with at most 1 backup are gone, if there were any",
        ),
        (partitions.PartitionLost(3, 1), "p3 has lost its owner and 1 backup"),
        (
            partitions.TableRecovered(12, {A: 11}, ("m1",), ("m2", "m3")),
            "has recovered the table, v12, from answers of n1 v11; of migrations under way 1 committed, 2 rolled back",
        ),
        (
            partitions.MigrationsPlanned(
                (PlannedMigration(3, "MOVE", A, B, 0), PlannedMigration(3, "CLEAR", A, None, 1)), 1, 1, "n3 left"
            ),
            "plans 1 migration (1 replica to copy, 1 places to fill at least, 1 place to clear): n3 left",
        ),
        (partitions.MigrationsPlanned((), 0, 0, "n3 left"), "has nothing to migrate: n3 left"),
        (
            MigrationStarted("m1", 3, "SHIFT DOWN", 4, A, 0, 2, B, -1, 0, A, 2, 3, True),
            "begins p3 SHIFT DOWN: n2 becomes owner, n1 becomes backup 2, unavoidably with a replica less meanwhile",
        ),
        (MigrationStarted("m1", 3, "COPY", 4, None, -1, -1, B, -1, 1, A, 2, 3, False), "begins p3 COPY: n2 becomes backup 1"),
        (
            MigrationStarted("m1", 3, "SHIFT UP", 4, A, 0, -1, B, 2, 0, A, 2, 3, False),
            "begins p3 SHIFT UP: n2 becomes owner (was backup 2) in place of n1",
        ),
        (partitions.MigrationCopied("m1", 3, 2, 2_500_000, 3_500), "copied p3: 2.5 MB, 2 chunks, 3.5 ms"),
        (partitions.MigrationDecided("m1", 3, True, 5, ""), "commits p3, now v5"),
        (
            partitions.MigrationFinished("m1", 3, "source", True, 0, -1),
            "ends the migration of p3 as source, from owner to no replica",
        ),
        (data.CallFinished(1, "get", "orders", "k1", 3, "v1", True, 1_500, "", False), "get orders k1: 'v1' (p3, 1.5 ms)"),
        (
            data.CallFinished(1, "put", "orders", "k1", 3, "", False, 1_500, "", False),
            "put orders k1: was not there before (p3, 1.5 ms)",
        ),
        (
            data.CallFinished(1, "put", "orders", "k1", 3, "", False, 1_500, "too few members", True),
            "put orders k1 failed: too few members; nothing was done",
        ),
    ],
)  # fmt: skip
def test_partitions_and_data(event: Event, told: str) -> None:
    assert describe_event(event, {A: "n1", B: "n2"}.__getitem__) == told


def test_long_values_are_cut_short() -> None:
    assert len(describe_event(data.CallStarted(1, "put", "orders", "k1", "v" * 10_000))) < 120


def test_conditions_of_a_link() -> None:
    assert describe_event(LinkChanged("n1", "n2", "blackhole", 1_500, 0.25)) == (
        "link n1 to n2 is cut (blackhole) and loses 25% and is slower by 1.5 ms"
    )
    assert describe_event(LinkChanged("n1", "n2", duplicate=0.5, dropped_kinds=("heartbeat", "join-request"))) == (
        "link n1 to n2 drops every heartbeat, join-request and doubles 50%"
    )
    assert describe_event(LinkChanged("n1", "n2")) == "link n1 to n2 is healed"


def test_nothing_in_a_line_steers_a_terminal() -> None:
    line = describe_record(Record("r", "n\n1", "u", 1, 0, 0, events.MemberStopped("\x1b]0;owned\x07\r\u202e")))
    assert line.isprintable()
