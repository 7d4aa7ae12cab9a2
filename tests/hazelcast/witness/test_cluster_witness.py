"""What is heard of real members becomes events: nothing that was told is missed, nothing that was not told is made up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import DataMeasured, MapMeasured
from quarterdeck.backend.core.events import (
    ClusterStateChanged,
    Event,
    JoinListChanged,
    ListInstalled,
    MasterChanged,
    MemberMerging,
    MemberStarted,
    Record,
    SettingsChanged,
)
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.witnessed.events import (
    ConnectionChanged,
    MemberMeasured,
    MemberWitnessed,
    OwnersTold,
    ReplicaMigrated,
)
from quarterdeck.backend.hazelcast.wire.messages import (
    Authenticated,
    ClusterMetadata,
    ConnectionReport,
    ConnectionState,
    Heard,
    MemberConfig,
    MembersView,
    Message,
    Metrics,
    MetricSample,
    MetricSet,
    MigrationState,
    Observation,
    PartitionLostEvent,
    PartitionsView,
    ReplicaMigrationEvent,
    TopicRefused,
    ViewMember,
)
from quarterdeck.backend.hazelcast.witness.cluster_witness import ClusterWitness, HeardEvent
from quarterdeck.backend.picture.boards.member_detail import link_facts, process_facts
from quarterdeck.backend.picture.boards.migration_board import progress_text
from quarterdeck.backend.picture.boards.overview.migration_lanes import queue_figure
from quarterdeck.backend.picture.events.catalogue import part_of
from quarterdeck.backend.picture.events.witnessed import connection_text
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.health.data_loss import data_losses

A, B, C = (Address(f"10.0.0.{number}:5701") for number in (1, 2, 3))
SECOND_US = 1_000_000


def view(version: int, *members: tuple[Address, str]) -> MembersView:
    return MembersView(version, tuple(ViewMember(uuid, address, False) for address, uuid in members))


class Watched:
    """A witness, and what it has told so far."""

    def __init__(self, logged: Sequence[Address] = ()) -> None:
        self.witness = ClusterWitness(logged)
        self.told: list[HeardEvent] = []
        self.now_us = 0

    def hear(self, observation: Observation) -> list[Event]:
        fresh = self.witness.hear(observation)
        self.told += fresh
        return [one.event for one in fresh]

    def says(self, address: Address, uuid: str, *messages: Message) -> list[Event]:
        return [event for one in messages for event in self.hear(Heard(self.now_us, address, uuid, one))]

    def answers(self, address: Address, uuid: str, first: MembersView) -> list[Event]:
        accepted = Authenticated("authenticated", address, uuid, "5.3.8", 271, "cluster")
        connected = self.hear(ConnectionReport(self.now_us, address, "connected", "", self.now_us))
        return connected + self.says(address, uuid, accepted, first)

    def loses(self, address: Address, state: ConnectionState, reason: str = "why") -> list[Event]:
        return self.hear(ConnectionReport(self.now_us, address, state, reason, self.now_us))

    def wait(self, seconds: float) -> list[Event]:
        self.now_us += round(seconds * SECOND_US)
        fresh = self.witness.wake(self.now_us)
        self.told += fresh
        return [one.event for one in fresh]

    def witnessed(self) -> list[Event]:
        """Each time that it was said what is told."""
        return [one.event for one in self.told if isinstance(one.event, MemberWitnessed)]

    def picture(self) -> Picture:
        picture = Picture()
        for number, one in enumerate(self.told, start=1):
            picture.apply(Record("run", one.address, one.uuid, number, one.at_us, one.at_us, one.event))
        return picture


def kinds(events: Sequence[Event]) -> list[type]:
    return [type(one) for one in events]


def test_a_member_that_runs_already_is_witnessed_and_not_started() -> None:
    watched = Watched()
    told = watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert kinds(told) == [MemberWitnessed, ConnectionChanged, MasterChanged, ListInstalled]
    assert told[1] == ConnectionChanged("connected", "Hazelcast 5.3.8")
    belief = watched.picture().members[A]
    assert (belief.address, belief.version, belief.lineage, belief.master) == (A, 3, "a", A)
    assert belief.tells("migration-ends")
    assert not belief.tells("suspicions")
    assert not belief.tells("join-list")


def test_versions_repeat_across_a_split_and_lineages_tell_them_apart() -> None:
    watched = Watched()
    watched.answers(A, "a", view(13, (A, "a")))
    watched.answers(B, "b", view(13, (B, "b")))
    picture = watched.picture()
    assert picture.members[A].version == picture.members[B].version == 13
    assert picture.members[A].lineage != picture.members[B].lineage
    assert set(picture.masters()) == {A, B}


def test_the_same_list_told_again_is_nothing_new() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert watched.says(A, "a", view(3, (A, "a"), (B, "b"))) == []


def test_a_frozen_member_that_goes_on_tells_its_old_list_then_itself_alone() -> None:
    watched = Watched()
    watched.answers(B, "b", view(3, (A, "a"), (B, "b")))
    watched.now_us += 2 * SECOND_US
    assert watched.loses(B, "silent", "since 2 s") == [ConnectionChanged("silent", "since 2 s")]
    watched.now_us += 17 * SECOND_US
    accepted = Authenticated("authenticated", B, "b", "5.3.8", 271, "cluster")
    assert watched.says(B, "b", accepted) == [ConnectionChanged("connected", "Hazelcast 5.3.8")]
    assert watched.says(B, "b", view(3, (A, "a"), (B, "b"))) == []
    alone = watched.says(B, "b", view(4, (B, "b")))
    assert next(one for one in alone if isinstance(one, ListInstalled)).members[0].address == B
    assert watched.picture().members[B].uuid == "b"


def test_a_silence_on_a_connection_that_stays_ends_with_whatever_is_heard() -> None:
    watched = Watched()
    watched.answers(B, "b", view(3, (A, "a"), (B, "b")))
    watched.loses(B, "silent")
    assert watched.says(B, "b", view(3, (A, "a"), (B, "b"))) == [ConnectionChanged("connected", "")]


def test_a_merge_is_told_of_when_the_process_stayed_and_follows_another_master() -> None:
    watched = Watched()
    watched.answers(B, "b", view(4, (B, "b")))
    watched.now_us += SECOND_US
    watched.loses(B, "gone", "connection closed")
    watched.now_us += SECOND_US // 3
    watched.loses(B, "merging", "Hazelcast instance is not ready yet!")
    watched.now_us += 6 * SECOND_US
    told = watched.answers(B, "b2", view(9, (A, "a"), (B, "b2")))
    assert kinds(told)[:3] == [MemberMerging, MemberWitnessed, MemberStarted]
    assert told[0] == MemberMerging(A, "b2")
    assert told[2] == MemberStarted(B, False, (), "b")
    assert [one.uuid for one in watched.told if isinstance(one.event, MemberMerging)] == ["b"]
    assert watched.picture().members[B].merged_from == "b"


def test_a_restart_is_no_merge() -> None:
    watched = Watched()
    watched.answers(B, "b", view(4, (A, "a"), (B, "b")))
    watched.loses(B, "gone", "refused")
    watched.now_us += 3 * SECOND_US
    watched.loses(B, "merging", "Hazelcast instance is not ready yet!")
    told = watched.answers(B, "b2", view(9, (C, "c"), (B, "b2")))
    assert kinds(told)[:2] == [MemberWitnessed, MemberStarted]
    assert told[1] == MemberStarted(B, False, ())


def uptime(at_ms: int, up_ms: int) -> Metrics:
    return Metrics(1, (MetricSet(at_ms, (MetricSample("runtime.uptime", up_ms),)),))


def test_a_merge_is_a_merge_though_other_answers_come_before_the_list() -> None:
    watched = Watched()
    watched.answers(B, "b", view(4, (B, "b")))
    watched.loses(B, "gone", "connection closed")
    watched.loses(B, "merging", "Hazelcast instance is not ready yet!")
    watched.now_us += 6 * SECOND_US
    accepted = Authenticated("authenticated", B, "b2", "5.3.8", 271, "cluster")
    assert watched.says(B, "b2", accepted, ClusterMetadata("FROZEN", 0, "5.3.8")) == []
    told = watched.says(B, "b2", view(9, (A, "a"), (B, "b2")))
    assert kinds(told)[:3] == [MemberMerging, MemberWitnessed, MemberStarted]
    assert ClusterStateChanged("FROZEN", "its first answer says so") in told
    assert watched.witness.incarnation_of(B) == "b2"


def test_a_process_that_goes_on_has_merged_however_late_it_answers_again() -> None:
    for up_ms, merged_from in ((40_000, "b"), (7_000, "")):
        watched = Watched()
        watched.answers(B, "b", view(4, (B, "b")))
        watched.says(B, "b", uptime(1_000_000, 10_000))
        watched.loses(B, "gone", "connection closed")
        watched.now_us += 30 * SECOND_US
        assert watched.answers(B, "b2", view(9, (A, "a"), (B, "b2"))) == []
        told = watched.says(B, "b2", uptime(1_030_000, up_ms))
        assert MemberStarted(B, False, (), merged_from) in told
        assert kinds(told)[-1] == ListInstalled


def test_a_list_that_is_replaced_within_milliseconds_stands_in_the_events() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b"), (C, "c")))
    for version, members in ((4, ((A, "a"), (B, "b"))), (5, ((A, "a"),))):
        watched.now_us += 5_000
        watched.says(A, "a", view(version, *members))
    restarted = Watched()
    restarted.answers(B, "b", view(4, (B, "b")))
    restarted.says(B, "b", uptime(1_000_000, 10_000))
    restarted.loses(B, "gone", "connection closed")
    restarted.now_us += 30 * SECOND_US
    restarted.answers(B, "b2", view(9, (A, "a"), (B, "b2"), (C, "c")))
    restarted.says(B, "b2", view(10, (A, "a"), (B, "b2")), uptime(1_030_000, 40_000))
    for heard, versions in ((watched, [3, 4, 5]), (restarted, [4, 9, 10])):
        lists = [one.event for one in heard.told if isinstance(one.event, ListInstalled)]
        assert [one.version for one in lists] == versions
        assert {part_of(one) for one in lists} == {"decision"}


def test_without_its_age_a_process_is_not_waited_for_long() -> None:
    watched = Watched()
    watched.answers(B, "b", view(4, (B, "b")))
    watched.says(B, "b", uptime(1_000_000, 10_000))
    watched.loses(B, "gone", "connection closed")
    watched.now_us += 30 * SECOND_US
    watched.answers(B, "b2", view(9, (A, "a"), (B, "b2")))
    told = watched.wait(2)
    assert MemberStarted(B, False, ()) in told and kinds(told)[-1] == ListInstalled


def test_a_member_that_is_not_ready_merges_or_starts_by_what_came_before() -> None:
    watched = Watched()
    watched.answers(B, "b", view(4, (B, "b")))
    watched.loses(B, "gone", "connection refused")
    watched.now_us += 20 * SECOND_US
    (starts,) = watched.loses(B, "merging", "Hazelcast instance is not ready yet!")
    assert connection_text(starts) == "is not ready yet: it starts, or merges"
    watched.answers(B, "b2", view(9, (B, "b2")))
    watched.loses(B, "gone", "connection closed")
    (merges,) = watched.loses(B, "merging", "Hazelcast instance is not ready yet!")
    assert connection_text(merges) == "is not ready yet: it merges, for its process goes on"


def test_a_new_incarnation_that_follows_the_same_master_has_not_merged() -> None:
    watched = Watched()
    watched.answers(B, "b", view(4, (A, "a"), (B, "b")))
    watched.loses(B, "merging")
    told = watched.answers(B, "b2", view(6, (A, "a"), (B, "b2")))
    assert MemberMerging not in kinds(told)


def test_a_new_incarnation_that_tells_no_list_begins_after_a_while() -> None:
    watched = Watched()
    watched.says(A, "a", Authenticated("authenticated", A, "a", "5.3.8", 271, None))
    assert watched.told == []
    assert kinds(watched.wait(3)) == [MemberWitnessed, ConnectionChanged]


def test_a_member_that_others_list_and_nobody_reaches_is_told_of_and_nothing_more() -> None:
    watched = Watched()
    watched.loses(B, "silent", "no answer")
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert watched.wait(5) == []
    assert watched.wait(6) == [MemberWitnessed(("client-protocol",), ()), ConnectionChanged("silent", "no answer")]
    belief = watched.picture().members[B]
    assert not belief.tells("owners")
    assert belief.version == 0


def test_a_state_that_is_told_first_has_not_changed_unless_it_is_another_one() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    assert watched.says(A, "a", ClusterMetadata("ACTIVE", 0, "5.3.8")) == []
    assert watched.says(A, "a", ClusterMetadata("IN_TRANSITION", 0, "5.3.8")) == []
    changed = watched.says(A, "a", ClusterMetadata("FROZEN", 0, "5.3.8"))
    assert changed == [ClusterStateChanged("FROZEN", "it was ACTIVE")]
    assert watched.says(A, "a", ClusterMetadata("FROZEN", 0, "5.3.8")) == []


CONFIGURATION = """<hazelcast xmlns="http://www.hazelcast.com/schema/config">
  <cluster-name>dev</cluster-name>
  <network><port auto-increment="true">5701</port><join><auto-detection enabled="true"/>
    <tcp-ip enabled="true" connection-timeout-seconds="5"><member-list>{entries}</member-list></tcp-ip></join>
    <rest-api enabled="true"><endpoint-group name="CLUSTER_WRITE" enabled="true"/></rest-api></network>
  <properties><property name="hazelcast.max.no.heartbeat.seconds">5</property></properties>
</hazelcast>"""


def test_what_a_member_tells_is_said_when_it_begins_and_once_more_when_it_has_answered() -> None:
    watched = Watched()
    first = watched.answers(A, "a", view(3, (A, "a"), (B, "b")))[0]
    assert first == MemberWitnessed(("client-protocol",), ("losses", "migration-ends", "owners"))
    watched.says(A, "a", ClusterMetadata("ACTIVE", 0, "5.3.8"))
    watched.says(A, "a", configured(A))
    aspects = ("cluster-state", "join-list", "losses", "migration-ends", "owners", "settings")
    assert watched.witnessed() == [first, MemberWitnessed(("client-protocol",), aspects)]
    watched.says(A, "a", configured(A, B))
    watched.loses(A, "silent")
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert len(watched.witnessed()) == 2
    watched.says(A, "a", view(4, (B, "b"), (A, "a")))  # it does not lead any more
    assert watched.witnessed()[2:] == [
        MemberWitnessed(("client-protocol",), ("cluster-state", "join-list", "owners", "settings"))
    ]


def test_a_member_that_answers_half_is_not_waited_for_long() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (B, "b"), (A, "a")))
    watched.says(A, "a", ClusterMetadata("ACTIVE", 0, "5.3.8"))
    assert watched.wait(0) == watched.wait(3) == []
    assert watched.wait(2) == [MemberWitnessed(("client-protocol",), ("cluster-state", "owners"))]


def configured(*entries: str) -> MemberConfig:
    return MemberConfig(CONFIGURATION.format(entries="".join(f"<member>{one}</member>" for one in entries)))


def test_the_join_list_of_the_moment_and_the_properties_are_told() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    told = watched.says(A, "a", configured(A, B))
    assert [one for one in told if not isinstance(one, MemberWitnessed)] == [
        JoinListChanged((A, B), 0, A),
        SettingsChanged({"hazelcast.max.no.heartbeat.seconds": "5"}),
    ]
    assert watched.says(A, "a", configured(A, B)) == []
    assert watched.says(A, "a", configured(A, B, C)) == [JoinListChanged((A, B, C), 1, A)]
    assert watched.witness.configurations[A].may_edit_join_list()


def test_members_with_the_same_table_have_the_same_digest_whatever_their_counters() -> None:
    watched = Watched()
    members = ((A, "a"), (B, "b"))
    for address, uuid, counter in ((A, "a", 22), (B, "b", 33)):
        watched.answers(address, uuid, view(3, *members))
        watched.says(address, uuid, PartitionsView(counter, ("a", "b"), (0, 1, -1)))
    tables = [one.event for one in watched.told if isinstance(one.event, OwnersTold)]
    assert len(tables) == 2
    assert tables[0] == tables[1]
    assert [one.address for one in tables[0].holders] == [A, B]


def test_a_table_that_changes_all_the_time_is_told_a_few_times_a_second_and_its_end_is_told() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    for number in range(100):
        watched.now_us += 5_000
        watched.says(A, "a", PartitionsView(number, ("a", "b"), (0,) * (100 - number) + (1,) * number))
    watched.wait(1)
    tables = [one.event for one in watched.told if isinstance(one.event, OwnersTold)]
    assert 2 <= len(tables) <= 5
    assert tables[-1].owners.count(1) == 99


def test_the_state_stamp_comes_with_the_table() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    watched.says(A, "a", PartitionsView(1, ("a",), (0, 0)))
    watched.wait(1)
    unarranged = Metrics(1, (MetricSet(0, (MetricSample("partitions.stateStamp", 0),)),))
    assert watched.says(A, "a", unarranged) == []  # that of a member that has just joined is not yet one
    stamp = Metrics(1, (MetricSet(0, (MetricSample("partitions.stateStamp", 17),)),))
    assert [type(one) for one in watched.says(A, "a", stamp)] == [OwnersTold]
    assert watched.picture().members[A].state_stamp == 17


def of_map(at_ms: int, **counts: int) -> Metrics:
    """The metrics of the map `orders`."""
    which = ("name", "orders")
    samples = (MetricSample(f"map.{name}", value, None, which) for name, value in counts.items())
    return Metrics(1, (MetricSet(at_ms, tuple(samples)),))


def test_entries_and_operations_of_maps_are_measured_by_the_metrics_that_come_anyway() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    first = of_map(1_000, ownedEntryCount=50, ownedEntryMemoryCost=700, backupEntryCount=40, getCount=9, putCount=90)
    assert watched.says(A, "a", first) == [
        DataMeasured(0, 50, 700, 40, 0, 0, (MapMeasured("orders", 50, 700, 0, 0),), (), ())
    ]
    assert watched.says(A, "a", first) == [], "what has not changed is not recorded"
    (second,) = watched.says(A, "a", of_map(6_000, ownedEntryCount=52, getCount=19, putCount=95, setCount=2))
    assert second == DataMeasured(5_000_000, 52, 0, 0, 0, 0, (MapMeasured("orders", 52, 0, 10, 7),), (), ())
    data = watched.picture().members[A].data
    assert data is not None and data.maps["orders"].entries == 52
    assert (data.reads, data.writes) == (10, 7)


def test_the_end_of_a_migration_names_members_by_address() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    end = ReplicaMigrationEvent(7, 1, "a", "b", True, 12, MigrationState(0, 54, 31, 400))
    assert watched.says(A, "a", end) == [ReplicaMigrated(7, 1, A, B, True, 12_000, 54, 31)]
    assert watched.says(A, "a", PartitionLostEvent(7, 6, "a")) == [PartitionLost(7, 6, data_lost=True)]


MAPS = """<hazelcast xmlns="http://www.hazelcast.com/schema/config"><map name="default"/>
<map name="orders"><backup-count>1</backup-count><async-backup-count>1</async-backup-count></map>
<map name="cache*"><backup-count>0</backup-count></map></hazelcast>"""


def test_a_loss_is_judged_against_the_backups_of_maps() -> None:
    """Two of five members were killed at once, and a map with one backup lost 1,785 entries: `lost_backups` was 1."""
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert watched.says(A, "a", PartitionLostEvent(7, 0, "a")) == [PartitionLost(7, 0, data_lost=False)]
    assert watched.says(A, "a", PartitionLostEvent(7, 1, "a")) == [PartitionLost(7, 1, data_lost=True)]
    watched.says(A, "a", MemberConfig(MAPS))
    assert watched.says(A, "a", PartitionLostEvent(8, 0, "a")) == [PartitionLost(8, 0, True, ("cache*",))]
    assert watched.says(A, "a", PartitionLostEvent(8, 1, "a")) == [PartitionLost(8, 1, True, ("cache*", "default"))]
    (lost,) = watched.says(A, "a", PartitionLostEvent(9, 2, "a"))
    assert lost == PartitionLost(9, 2, True, ("cache*", "default", "orders"))
    picture = watched.picture()
    (loss,) = data_losses(picture, picture.at)
    assert loss.what == "3 partitions of cache*, default, orders"
    assert picture.history.lost_count == 3, "each partition once, although several members report it"


def test_what_a_member_refuses_is_not_told() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    watched.says(A, "a", ClusterMetadata("ACTIVE", 0, "5.3.8"))
    watched.hear(TopicRefused(watched.now_us, A, "cluster-state", "not from this interface"))
    assert not watched.picture().members[A].tells("cluster-state")
    assert watched.witness.refused[A]["cluster-state"] == "not from this interface"


def test_logs_tell_more() -> None:
    watched = Watched(logged=(A,))
    watched.answers(A, "a", view(3, (A, "a")))
    belief = watched.picture().members[A]
    assert belief.tells("suspicions")
    assert belief.witnessed_by == ("client-protocol", "logs")


ADDRESSES = st.sampled_from((A, B, C))
VIEWS = st.builds(
    lambda version, members: view(version, *members),
    st.integers(1, 5),
    st.lists(st.tuples(ADDRESSES, st.sampled_from("abcdef")), min_size=0, max_size=3, unique_by=lambda one: one[0]),
)
MESSAGES = st.one_of(
    VIEWS,
    st.builds(
        Authenticated, st.just("authenticated"), ADDRESSES, st.just(None), st.just("5.3.8"), st.just(271), st.none()
    ),
    st.builds(ClusterMetadata, st.sampled_from(("ACTIVE", "FROZEN", "unknown")), st.just(0), st.just("5.3.8")),
    st.builds(
        PartitionsView, st.integers(0, 3), st.just(("a", "b")), st.tuples(st.integers(-1, 1), st.integers(-1, 1))
    ),
    st.just(PartitionLostEvent(1, 6, None)),
)
OBSERVATIONS = st.one_of(
    st.builds(Heard, st.just(0), ADDRESSES, st.sampled_from("abcdef"), MESSAGES),
    st.builds(
        ConnectionReport, st.just(0), ADDRESSES,
        st.sampled_from(("connected", "merging", "silent", "refused", "gone")), st.just("why"), st.just(0),
    ),
)  # fmt: skip


@given(st.lists(st.tuples(OBSERVATIONS, st.integers(0, 15 * SECOND_US)), max_size=40))
def test_whatever_is_heard_each_incarnation_begins_with_who_witnesses_it_and_no_list_is_told_twice(
    heard: list[tuple[Observation, int]],
) -> None:
    watched = Watched()
    for observation, later_us in heard:
        watched.hear(observation)
        watched.wait(later_us / SECOND_US)
    by_uuid: dict[tuple[Address, str], list[Event]] = {}
    for one in watched.told:
        by_uuid.setdefault((one.address, one.uuid), []).append(one.event)
    lists_heard = {(one.message.version, tuple(each.uuid for each in one.message.members))
                   for one, _ in heard if isinstance(one, Heard) and isinstance(one.message, MembersView)}  # fmt: skip
    for events in by_uuid.values():
        assert isinstance(events[0], MemberWitnessed)
        lists = [one for one in events if isinstance(one, ListInstalled)]
        assert all((one.version, tuple(each.uuid for each in one.members)) in lists_heard for one in lists)
        # That of an incarnation which seems to come back is new: another one was there in between.
        known = [one for one in events if isinstance(one, ListInstalled | MemberStarted)]
        assert all(one != following for one, following in pairwise(known) if isinstance(one, ListInstalled))
        assert all(one.lineage == one.members[0].uuid for one in lists)


def of_member(at_ms: int, **values: int) -> Metrics:
    """Metrics of the member itself; two underscores stand for a point."""
    samples = (MetricSample(name.replace("__", "."), value) for name, value in values.items())
    return Metrics(1, (MetricSet(at_ms, tuple(samples)),))


def test_what_metrics_say_of_a_member_is_recorded_when_much_has_changed() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    heap, sent = "memory__usedHeap", "cluster__heartbeat__lastHeartbeat"
    collected = {"gc__minorTime": 40, "gc__majorTime": 0}
    (first,) = watched.says(A, "a", of_member(10_000, **{heap: 50_000, sent: 9_100}, **collected))
    assert first == MemberMeasured(heartbeat_age=900_000, heap_used=50_000), "the rest is not told"
    steady = {heap: 50_000, sent: 13_200, "gc__minorTime": 90, "gc__majorTime": 0}
    assert watched.says(A, "a", of_member(15_000, **steady)) == [
        MemberMeasured(heartbeat_age=1_800_000, heap_used=50_000, span=5_000_000, collecting=50_000)
    ], "the time of collections is known from the second metrics on"
    assert watched.says(A, "a", of_member(20_000, **{**steady, sent: 18_000})) == []
    (paused,) = watched.says(A, "a", of_member(25_000, **{**steady, sent: 18_000, "gc__majorTime": 4_000}))
    assert isinstance(paused, MemberMeasured)
    assert (paused.heartbeat_age, paused.collecting) == (7_000_000, 4_000_000)
    belief = watched.picture().members[A]
    assert belief.metrics == paused
    facts = {fact.heading: fact.text for fact in process_facts(belief, belief.metrics_us + 2_000_000)}
    assert "stood still" in facts["process"] and "much the same for 2 s" in facts["process"]
    assert "files" not in facts["process"], "what is not told is left out"
    assert "work" not in facts


def test_the_masters_metrics_say_how_many_migrations_wait() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    rounds = {"partitions__plannedMigrations": 31, "partitions__completedMigrations": 26}
    watched.says(A, "a", of_member(10_000, partitions__migrationQueueSize=5, **rounds))
    assert progress_text(watched.picture()) == "5 migrations waiting, 26 of 31 of the round done"
    watched.says(A, "a", of_member(15_000, partitions__migrationQueueSize=0, **rounds))
    assert progress_text(watched.picture()) == ""
    assert queue_figure(watched.picture(), 0) == ("none waits, 0 done", "faint")


def test_the_detail_of_a_member_says_to_whom_it_does_not_write() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert "not told" in str(list(link_facts(watched.picture(), watched.picture().members[A], 0)))

    def idle(at_ms: int, idle_ms: int) -> Metrics:
        which = ("pipelineId", "/10.0.0.1:5701->/10.0.0.2:5701")
        return Metrics(1, (MetricSet(at_ms, (MetricSample("tcp.connection.out.idleTimeMillis", idle_ms, 1, which),)),))

    watched.says(A, "a", idle(10_000, 40))
    assert "it writes to every member" in str(list(link_facts(watched.picture(), watched.picture().members[A], 0)))
    watched.says(A, "a", idle(25_000, 15_040))
    assert "nothing written for 15 s" in str(list(link_facts(watched.picture(), watched.picture().members[A], 0)))
