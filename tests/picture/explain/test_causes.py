"""Why something happened, on runs of the simulator: chains that reach back to what was done to the cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.events import Event, OperatorAsked, ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.explain.causes import Cause, causes, direct_causes
from quarterdeck.backend.picture.explain.event_index import EventIndex, identity
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.picture.played_scenarios import event_index_of, records_of


def the_last(event_index: EventIndex, kind: type[Event], wanted: Callable[[Record], bool] = lambda _: True) -> Record:
    return next(record for record in reversed(event_index.records) if isinstance(record.event, kind) and wanted(record))


def told_by(chain: tuple[Cause, ...], kind: type[Event]) -> list[Cause]:
    return [cause for cause in chain if isinstance(cause.record.event, kind)]


def test_the_list_after_the_death_of_the_master_is_traced_back_to_the_kill() -> None:
    event_index = event_index_of("master-crash")
    last = the_last(event_index, events.ListInstalled, lambda one: one.event.version == 5 and one.member == "delphi")
    chain = causes(event_index, last)
    kinds = [type(cause.record.event) for cause in chain]
    assert kinds[:3] == [events.ListInstalled, events.ClaimFinished, events.ClaimStarted]
    assert chain[0].message and "byzantium published it" in chain[0].reason
    killed = told_by(chain, ProcessKilled)
    assert len(killed) == 1 and killed[0].reason == "athens was killed"
    assert isinstance(killed[0].effect.event, events.SuspicionRaised)


def test_a_suspicion_goes_back_to_the_link_that_drops_its_heartbeats_and_to_no_other() -> None:
    event_index = event_index_of("claim-a-to-f")
    suspects_c = the_last(
        event_index, events.SuspicionRaised, lambda one: one.member == "b" and "no heartbeat" in one.event.reason
    )
    links = told_by(causes(event_index, suspects_c), LinkChanged)
    assert [(link.record.event.source, link.record.event.target) for link in links] == [("c", "b")]
    suspects_a = the_last(
        event_index, events.SuspicionRaised, lambda one: one.member == "b" and "connection" in one.event.reason
    )
    chain = causes(event_index, suspects_a)
    assert told_by(chain, ProcessKilled) and not told_by(chain, LinkChanged)


def test_a_removal_goes_back_to_reports_suspicions_and_the_cut() -> None:
    event_index = event_index_of("cut-racks")
    list_without = the_last(
        event_index, events.ListInstalled, lambda one: one.event.version == 8 and one.member == "b2"
    )
    chain = causes(event_index, list_without)
    for kind in (
        events.MemberRemoved, events.DisconnectionResolved, events.DisconnectionReported, events.SuspicionRaised,
        events.HeartbeatLate, LinkChanged,
    ):  # fmt: skip
        assert told_by(chain, kind), kind
    assert all(cause.record.event.blocked for cause in told_by(chain, LinkChanged))


def test_a_merge_goes_back_to_the_edit_of_a_join_list_or_to_the_heal() -> None:
    edited = event_index_of("join-list-edit")
    joined = the_last(edited, events.ListInstalled, lambda one: one.member == "delphi" and one.event.cause == "joined")
    chain = causes(edited, joined)
    assert told_by(chain, events.MergeStarted) and told_by(chain, events.MergeVerdict)
    first_edit = told_by(chain, events.JoinListChanged)[-1]
    assert first_edit.record.member == "euphesus" and first_edit.message

    healed = event_index_of("cut-racks")
    back = the_last(healed, events.ListInstalled, lambda one: one.member == "c1" and one.event.cause == "joined")
    links = told_by(causes(healed, back), LinkChanged)
    assert len(links) == 1 and not links[0].record.event.blocked


def test_a_migration_goes_back_to_the_plan_and_to_who_joined() -> None:
    event_index = event_index_of("p-move")
    table = the_last(event_index, partition_events.TableChanged, lambda one: one.member == "a3")
    chain = causes(event_index, table)
    for kind in (
        partition_events.MigrationDecided, partition_events.MigrationFinished, partition_events.MigrationCommitting,
        partition_events.MigrationCopied, partition_events.MigrationAccepted, partition_events.MigrationStarted,
        partition_events.MigrationsPlanned, events.ListInstalled, events.JoinRequested,
    ):  # fmt: skip
        assert told_by(chain, kind), kind
    ids = {cause.record.event.migration_id for cause in chain if hasattr(cause.record.event, "migration_id")}
    assert len(ids) == 1


def test_a_lost_partition_goes_back_to_the_kill() -> None:
    event_index = event_index_of("p-lost-partition")
    chain = causes(event_index, the_last(event_index, partition_events.PartitionLost))
    assert [type(cause.record.event) for cause in chain] == [
        events.ListInstalled, events.MemberRemoved, ProcessKilled,
    ]  # fmt: skip


def test_a_lost_write_is_explained_by_the_loss_and_by_the_write() -> None:
    cluster = formed(["n1", "n2"])
    for call, operation, value in ((1, "put", "x"), (2, "get", "")):
        if call == 2:
            cluster.happen("n1", partition_events.PartitionLost(3, partition_events.ALL_LOST))
        cluster.happen("n1", CallStarted(call, operation, "map", "k", value))
        cluster.happen("n1", CallFinished(call, operation, "map", "k", 3, "", False, 100, "", False))
    records = cluster.drain()
    chain = causes(records, records[-1])
    assert [type(cause.record.event) for cause in chain if cause.depth == 1] == [
        CallStarted,
        partition_events.PartitionLost,
        CallFinished,
    ]


def test_a_pause_explains_a_suspicion_and_a_pause_long_over_does_not() -> None:
    cluster = formed(["n1", "n2"])
    cluster.happen("n1", ProcessPaused("n2"))
    cluster.happen("n1", ProcessResumed("n2"))
    for _ in range(2):
        cluster.happen("n1", LinkChanged("n2", "n1", blocked="blackhole"), after_us=20 * SECOND_US)
        cluster.happen("n1", LinkChanged("n2", "n1"))
    cluster.happen("n1", ProcessKilled("somebody"), after_us=20 * SECOND_US)
    cluster.suspect("n1", "n2", "no heartbeat for 4.0 s")
    records = cluster.drain()
    assert causes(records, records[-1]) == ()
    cluster.happen("n1", ProcessPaused("n2"))
    cluster.suspect("n1", "n2", "no heartbeat for 4.0 s")
    records += cluster.drain()
    assert [cause.reason for cause in causes(records, records[-1])] == ["n2 was frozen"]


def test_a_cut_that_was_healed_within_the_silence_still_explains_it() -> None:
    cluster = formed(["n1", "n2"])
    cluster.happen("n1", LinkChanged("n2", "n1", blocked="blackhole"))
    cluster.happen("n1", LinkChanged("n2", "n1"), after_us=3 * SECOND_US)
    cluster.suspect("n1", "n2", "no heartbeat for 4.0 s")
    records = cluster.drain()
    (cause,) = causes(records, records[-1])
    assert isinstance(cause.record.event, LinkChanged) and cause.record.event.blocked


def test_each_record_stands_once_and_below_what_it_explains() -> None:
    event_index = event_index_of("cut-racks")
    for record in event_index.records:
        chain = causes(event_index, record)
        known = {identity(record)}
        for cause in chain:
            assert identity(cause.effect) in known
            assert identity(cause.record) not in known
            known.add(identity(cause.record))


def test_who_is_not_among_the_records_has_no_causes() -> None:
    records = records_of("master-crash")
    assert causes(records[:10], records[-1]) == ()


@given(
    kept=st.sets(st.integers(0, 200)), name=st.sampled_from(["cut-racks", "claim-a-to-f", "p-move", "join-list-edit"])
)
def test_records_with_gaps_never_break_it(kept: set[int], name: str) -> None:
    records = [one for place, one in enumerate(records_of(name)) if place in kept]
    event_index = EventIndex(records)
    for record in records:
        for cause in causes(event_index, record):
            assert event_index.place_of(cause.record) is not None


def test_names_may_be_addresses_of_members_never_seen() -> None:
    cluster = FakeCluster(["n1"])
    cluster.start("n1")
    cluster.happen("n1", events.SuspicionRaised(Address("[fe80::1]:5701"), "x", "no connection (refused)"))
    records = cluster.drain()
    assert causes(records, records[-1]) == ()


def test_a_suspicion_of_a_life_that_is_over_explains_nothing() -> None:
    """The suspect was started again, and the list with its new life ended the suspicion."""
    cluster = formed(("n1", "n2", "n3"))
    cluster.suspect("n3", "n2")
    cluster.start("n2", life=2)
    listed = (cluster.member("n1"), cluster.member("n3"), cluster.member("n2", life=2))
    master = cluster.address("n1")
    cluster.happen("n3", events.ListInstalled(5, "L1", master, listed, master, "published"))
    cluster.suspect("n3", "n1")
    cluster.happen(
        "n3", events.MasterChanged(cluster.address("n3"), "it suspects all before it", cause="suspects-older")
    )
    records = cluster.drain()
    chain = direct_causes(EventIndex(records), records[-1])
    assert [cause.reason for cause in chain] == ["it suspects n1"]


def test_a_heartbeat_of_the_life_before_was_not_late_already() -> None:
    cluster = formed(("n1", "n2"))
    cluster.happen("n1", events.HeartbeatLate(cluster.address("n2"), "n2-life-1", SECOND_US, 4 * SECOND_US, False))
    cluster.happen("n1", events.SuspicionRaised(cluster.address("n2"), "n2-life-2", "no heartbeat"))
    records = cluster.drain()
    assert "its heartbeat was late already" not in [
        cause.reason for cause in direct_causes(EventIndex(records), records[-1])
    ]


def asked(do: str, target: str) -> OperatorAsked:
    return OperatorAsked(do, "write", "ann at 10.0.0.9:5", True, "", do=do, target=target)


@pytest.mark.parametrize(
    ("request_made", "effect"),
    [
        (asked("stop", "n2"), events.MemberStopped("asked to stop", "asked")),
        (asked("stop-cluster", "n1"), events.MemberStopped("asked to stop", "asked")),
        (asked("change-state", "n1"), events.ClusterStateChanged("FROZEN", "the master decided it", "decided")),
    ],
)
def test_who_asked_is_named_as_the_cause(request_made: OperatorAsked, effect: Event) -> None:
    """Not a request to another member, nor one that was refused."""
    cluster = formed(("n1", "n2"))
    cluster.happen("n1", events.MasterChanged(cluster.address("n1"), "it forms the cluster", cause="forms-cluster"))
    member = "n1" if request_made.do == "change-state" else "n2"
    for event in (request_made, asked("stop", "n1"), structs.replace(request_made, granted=False), effect):
        cluster.happen(member, event)
    records = cluster.drain()
    (cause,) = causes(records, records[-1])
    assert (cause.record.event, cause.reason) == (request_made, "ann at 10.0.0.9:5 asked for it")


def test_a_kill_over_http_ends_the_chain_of_a_suspicion() -> None:
    cluster = formed(("n1", "n2"))
    cluster.happen("n1", asked("kill", "n2"))
    cluster.suspect("n1", "n2")
    records = cluster.drain()
    assert "n2 was killed" in [cause.reason for cause in causes(records, records[-1])]
