"""What is heard of real members becomes events: nothing that was reported is missed, nothing else is made up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import (
    ClusterStateChanged,
    JoinListChanged,
    ListInstalled,
    MasterChanged,
    MemberMerging,
    MemberStarted,
    SettingsChanged,
)
from quarterdeck.backend.core.witnessed.events import (
    ConnectionChanged,
    ConnectionState,
    MemberWitnessed,
)
from quarterdeck.backend.hazelcast.wire.messages import (
    Authenticated,
    ClusterMetadata,
    ConnectionReport,
    Heard,
    MemberConfig,
    MembersView,
    Message,
    Metrics,
    MetricSample,
    MetricSet,
    Observation,
    PartitionLostEvent,
    PartitionsView,
    TopicRefused,
    ViewMember,
)
from quarterdeck.backend.hazelcast.witness.cluster_witness import ClusterWitness, HeardEvent
from quarterdeck.backend.picture.events.catalogue import part_of
from quarterdeck.backend.picture.events.witnessed import connection_text
from quarterdeck.backend.picture.fold.picture import Picture

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
        return [event.event for event in fresh]

    def says(self, address: Address, uuid: str, *messages: Message) -> list[Event]:
        return [event for message in messages for event in self.hear(Heard(self.now_us, address, uuid, message))]

    def answers(self, address: Address, uuid: str, first: MembersView) -> list[Event]:
        accepted = Authenticated("authenticated", address, uuid, "5.3.8")
        connected = self.hear(ConnectionReport(self.now_us, address, "connected", "", self.now_us))
        return connected + self.says(address, uuid, accepted, first)

    def loses(self, address: Address, state: ConnectionState, reason: str = "why") -> list[Event]:
        return self.hear(ConnectionReport(self.now_us, address, state, reason, self.now_us))

    def wait(self, seconds: float) -> list[Event]:
        self.now_us += round(seconds * SECOND_US)
        fresh = self.witness.wake(self.now_us)
        self.told += fresh
        return [record.event for record in fresh]

    def witnessed(self) -> list[Event]:
        """Each time that it was said what is told."""
        return [event.event for event in self.told if isinstance(event.event, MemberWitnessed)]

    def picture(self) -> Picture:
        picture = Picture()
        for number, one in enumerate(self.told, start=1):
            picture.apply(Record("run", one.address, one.uuid, number, one.at_us, one.at_us, one.event))
        return picture


def kinds(events: Sequence[Event]) -> list[type]:
    return [type(event) for event in events]


def test_a_member_that_runs_already_is_witnessed_and_not_started() -> None:
    watched = Watched()
    told = watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert kinds(told) == [MemberWitnessed, ConnectionChanged, MasterChanged, ListInstalled]
    assert told[1] == ConnectionChanged("connected", "Hazelcast 5.3.8")
    belief = watched.picture().members[A]
    assert (belief.address, belief.version, belief.lineage, belief.master) == (A, 3, "a", A)
    assert belief.shows("migration-ends")
    assert not belief.shows("suspicions")
    assert not belief.shows("join-list")


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
    accepted = Authenticated("authenticated", B, "b", "5.3.8")
    assert watched.says(B, "b", accepted) == [ConnectionChanged("connected", "Hazelcast 5.3.8")]
    assert watched.says(B, "b", view(3, (A, "a"), (B, "b"))) == []
    alone = watched.says(B, "b", view(4, (B, "b")))
    assert next(event for event in alone if isinstance(event, ListInstalled)).members[0].address == B
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
    assert [event.uuid for event in watched.told if isinstance(event.event, MemberMerging)] == ["b"]
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
    accepted = Authenticated("authenticated", B, "b2", "5.3.8")
    assert watched.says(B, "b2", accepted, ClusterMetadata("FROZEN")) == []
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
        lists = [event.event for event in heard.told if isinstance(event.event, ListInstalled)]
        assert [member_list.version for member_list in lists] == versions
        assert {part_of(member_list) for member_list in lists} == {"decision"}


def test_without_its_age_a_process_is_not_waited_for_long() -> None:
    watched = Watched()
    watched.answers(B, "b", view(4, (B, "b")))
    watched.says(B, "b", uptime(1_000_000, 10_000))
    watched.loses(B, "gone", "connection closed")
    watched.now_us += 30 * SECOND_US
    watched.answers(B, "b2", view(9, (A, "a"), (B, "b2")))
    told = watched.wait(2)
    assert MemberStarted(B, False, ()) in told and kinds(told)[-1] == ListInstalled


def test_a_member_that_neither_refused_nor_gave_its_age_is_not_said_to_have_started_or_merged() -> None:
    """As a console that stood still finds it: the connection was closed, and another incarnation follows another master."""
    watched = Watched()
    watched.answers(B, "b", view(4, (B, "b")))
    watched.loses(B, "silent", "it has closed the connection")
    watched.now_us += 30 * SECOND_US
    told = [*watched.answers(B, "b2", view(9, (A, "a"), (B, "b2"))), *watched.wait(2)]
    assert {MemberStarted, MemberMerging}.isdisjoint(kinds(told))
    assert watched.picture().members[B].uuid == "b2"


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
    watched.says(A, "a", Authenticated("authenticated", A, "a", "5.3.8"))
    assert watched.told == []
    assert kinds(watched.wait(3)) == [MemberWitnessed, ConnectionChanged]


def test_a_member_that_others_list_and_nobody_reaches_is_told_of_and_nothing_more() -> None:
    watched = Watched()
    watched.loses(B, "silent", "no answer")
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert watched.wait(5) == []
    assert watched.wait(6) == [MemberWitnessed(("client-protocol",), ()), ConnectionChanged("silent", "no answer")]
    belief = watched.picture().members[B]
    assert not belief.shows("owners")
    assert belief.version == 0


def test_a_state_that_is_told_first_has_not_changed_unless_it_is_another_one() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    assert watched.says(A, "a", ClusterMetadata("ACTIVE")) == []
    assert watched.says(A, "a", ClusterMetadata("IN_TRANSITION")) == []
    changed = watched.says(A, "a", ClusterMetadata("FROZEN"))
    assert changed == [ClusterStateChanged("FROZEN", "it was ACTIVE before")]
    assert watched.says(A, "a", ClusterMetadata("FROZEN")) == []


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
    watched.says(A, "a", ClusterMetadata("ACTIVE"))
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
    watched.says(A, "a", ClusterMetadata("ACTIVE"))
    assert watched.wait(0) == watched.wait(3) == []
    assert watched.wait(2) == [MemberWitnessed(("client-protocol",), ("cluster-state", "owners"))]


def configured(*entries: str) -> MemberConfig:
    return MemberConfig(CONFIGURATION.format(entries="".join(f"<member>{entry}</member>" for entry in entries)))


def test_the_join_list_of_the_moment_and_the_properties_are_told() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    told = watched.says(A, "a", configured(A, B))
    assert [event for event in told if not isinstance(event, MemberWitnessed)] == [
        JoinListChanged((A, B), 0, A),
        SettingsChanged({"hazelcast.max.no.heartbeat.seconds": "5"}),
    ]
    assert watched.says(A, "a", configured(A, B)) == []
    assert watched.says(A, "a", configured(A, B, C)) == [JoinListChanged((A, B, C), 1, A)]
    assert watched.witness.configurations[A].may_edit_join_list()


def test_an_edit_that_is_first_read_after_the_merge_that_it_brought_about_is_an_edit() -> None:
    """Of four members, the two whose configuration was read before they merged were named alone."""
    watched = Watched()
    watched.answers(B, "b", view(3, (B, "b")))
    assert JoinListChanged((A,), 0, B) in watched.says(B, "b", configured(A))
    watched.loses(B, "merging")
    watched.now_us += SECOND_US
    merged = watched.answers(B, "b2", view(9, (A, "a"), (B, "b2")))
    assert MemberMerging(A, "b2") in merged
    assert JoinListChanged((A, C), 1, B) in watched.says(B, "b2", configured(A, C))
    watched.loses(B, "merging")
    watched.now_us += SECOND_US
    watched.answers(B, "b3", view(12, (C, "c"), (B, "b3")))
    assert JoinListChanged((A, C), 0, B) in watched.says(B, "b3", configured(A, C)), "read again, and not edited"


def test_what_a_member_refuses_is_not_told() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    watched.says(A, "a", ClusterMetadata("ACTIVE"))
    watched.hear(TopicRefused(watched.now_us, A, "cluster-state", "not from this interface"))
    assert not watched.picture().members[A].shows("cluster-state")


def test_logs_tell_more() -> None:
    watched = Watched(logged=(A,))
    watched.answers(A, "a", view(3, (A, "a")))
    belief = watched.picture().members[A]
    assert belief.shows("suspicions")
    assert belief.witnessed_by == ("client-protocol", "logs")


ADDRESSES = st.sampled_from((A, B, C))
VIEWS = st.builds(
    lambda version, members: view(version, *members),
    st.integers(1, 5),
    st.lists(st.tuples(ADDRESSES, st.sampled_from("abcdef")), min_size=0, max_size=3, unique_by=lambda one: one[0]),
)
MESSAGES = st.one_of(
    VIEWS,
    st.builds(Authenticated, st.just("authenticated"), ADDRESSES, st.just(None), st.just("5.3.8")),
    st.builds(ClusterMetadata, st.sampled_from(("ACTIVE", "FROZEN", "unknown"))),
    st.builds(PartitionsView, st.just(("a", "b")), st.tuples(st.integers(-1, 1), st.integers(-1, 1))),
    st.just(PartitionLostEvent(1, 6)),
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
    for told in watched.told:
        by_uuid.setdefault((told.address, told.uuid), []).append(told.event)
    lists_heard = {(one.message.version, tuple(each.uuid for each in one.message.members))
                   for one, _ in heard if isinstance(one, Heard) and isinstance(one.message, MembersView)}  # fmt: skip
    for events in by_uuid.values():
        assert isinstance(events[0], MemberWitnessed)
        lists = [event for event in events if isinstance(event, ListInstalled)]
        assert all(
            (member_list.version, tuple(each.uuid for each in member_list.members)) in lists_heard
            for member_list in lists
        )
        # That of an incarnation which seems to come back is new: another one was there in between.
        known = [event for event in events if isinstance(event, ListInstalled | MemberStarted)]
        assert all(one != following for one, following in pairwise(known) if isinstance(one, ListInstalled))
        assert all(member_list.lineage == member_list.members[0].uuid for member_list in lists)


def test_a_member_that_is_forgotten_is_so_on_record_if_it_was_ever_met() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert watched.witness.forget(C, watched.now_us) == []
    (forgotten,) = watched.witness.forget(A, watched.now_us)
    assert (forgotten.address, forgotten.uuid, forgotten.event) == (A, "a", ConnectionChanged("forgotten"))
    watched.told.append(forgotten)
    assert A not in watched.picture().members
