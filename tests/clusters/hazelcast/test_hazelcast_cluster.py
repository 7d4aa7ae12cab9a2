"""Members of Hazelcast as a cluster: what they tell becomes records, and what is asked of them is done and recorded."""

from __future__ import annotations

import pytest

from quarterdeck.backend.clusters.hazelcast.operator_actions import DIAGNOSTICS
from quarterdeck.backend.clusters.record_order import RecordNumbering
from quarterdeck.backend.commands.discovery import JOINER
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import (
    ChangeState,
    CommandRefused,
    Diagnose,
    KillMember,
    PromoteMember,
    SetJoinList,
    StopMember,
)
from quarterdeck.backend.core.events import OperatorAsked
from quarterdeck.backend.core.membership.events import (
    ClusterStateChanged,
    JoinListChanged,
    ListInstalled,
    MemberMerging,
    MemberStarted,
    MemberStopped,
    SettingsChanged,
)
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed, OwnersTold
from quarterdeck.backend.hazelcast.wire.messages import MemberConfig, MembersView, NameResolved
from quarterdeck.backend.hazelcast.wire.requests import (
    ChangeClusterState,
    GetClusterMetadata,
    GetMemberConfig,
    PromoteLiteMember,
    SetDiagnostics,
    ShutDownMember,
)
from quarterdeck.backend.hazelcast.wire.route import WatchSettings
from quarterdeck.backend.hazelcast.witness import cluster_witness
from quarterdeck.backend.judgement.merging.why_not_merging import why_not_merging
from tests.clusters.hazelcast.fake_cluster import fake_cluster, watching
from tests.hazelcast.wire.fake_member import CONFIG, DENIED, NOT_READY, agree, uuid_of


def test_all_members_are_found_from_one_and_tell_one_list_and_one_table() -> None:
    with fake_cluster(3) as members, watching(members.addresses[0]) as seen:
        seen.until(lambda: len(seen.events(OwnersTold)) >= 3 and len(seen.events(ListInstalled)) == 3)
        assert set(seen.cluster.labels) == set(members.addresses)
        beliefs = [seen.picture.members[address] for address in members.addresses]
        assert {belief.lineage for belief in beliefs} == {uuid_of(1)}
        assert len({belief.table.digest for belief in beliefs if belief.table is not None}) == 1
        assert seen.picture.masters() == (members.addresses[0],)
        assert all(status.contact == "connected" for status in seen.cluster.connection_status().values())


def test_records_of_an_incarnation_are_numbered_without_gaps_in_the_order_of_time() -> None:
    with fake_cluster(2) as members, watching(*members.addresses) as seen:
        seen.until(lambda: len(seen.events(OwnersTold)) >= 2)
        for uuid in (uuid_of(1), uuid_of(2)):
            own = [record for record in seen.records if record.uuid == uuid]
            assert [record.seq for record in own] == list(range(1, len(own) + 1))
            assert [record.at for record in own] == sorted(record.at for record in own)
            assert isinstance(own[0].event, MemberWitnessed)


def test_both_halves_of_a_split_are_seen_each_at_its_own_side() -> None:
    with fake_cluster(4) as members, watching(members.addresses[0]) as seen:
        seen.until(lambda: len(seen.events(ListInstalled)) == 4)
        a, b, c, d = members.members
        members.do(lambda: (agree([a, b], 2), agree([c, d], 2)))
        seen.until(lambda: len(seen.picture.masters()) == 2)
        option, urls = list(seen.cluster.connect_options())[:2]
        assert option == "--connect" and set(urls.removeprefix("hazelcast://").split(",")) == set(members.addresses)
        lists = [seen.picture.members[member.address] for member in (a, c)]
        assert [member_list.version for member_list in lists] == [2, 2]
        assert lists[0].lineage != lists[1].lineage
        story = seen.story
        assert story is not None and [observation.kind for observation in story.observations] == ["halves-apart"]
        apart = story.observations[0]
        assert set(apart.members) == set(members.addresses) and apart.headline.endswith(", until now")


def test_a_member_that_merges_and_one_that_is_gone_show_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        cluster_witness, "STAYED_US", 60 * SECOND_US
    )  # a machine may be busy when it should connect again
    with fake_cluster(2) as members, watching(*members.addresses) as seen:
        seen.until(lambda: len(seen.events(ListInstalled)) == 2)
        a, b = members.members
        members.do(lambda: agree([b], 2))
        seen.until(lambda: len(seen.picture.masters()) == 2)

        def merge() -> None:
            b.answers[type(b.asked[0])] = NOT_READY
            b.hang_up()

        members.do(merge)
        seen.until(lambda: seen.cluster.connection_status()[b.address].state == "merging")

        def rejoin() -> None:
            b.answers.clear()
            b.uuid = uuid_of(7)
            agree([a, b], 3)

        members.do(rejoin)
        seen.until(lambda: seen.events(MemberMerging))
        assert seen.events(MemberMerging) == [MemberMerging(a.address, uuid_of(7))]
        assert seen.events(MemberStarted) == [MemberStarted(b.address, False, (), uuid_of(2))]
        members.stop(b)
        seen.until(lambda: seen.cluster.connection_status()[b.address].state == "gone")
        assert seen.cluster.connection_status()[b.address].contact == "stale"
        seen.until(lambda: seen.events(ConnectionChanged)[-1].state == "gone")


def test_what_a_member_refuses_to_tell_is_not_told() -> None:
    with fake_cluster(1) as members:
        members.members[0].answers[GetClusterMetadata] = DENIED
        with watching(*members.addresses) as seen:
            seen.until(lambda: seen.cluster.is_settled)
            seen.until(lambda: members.addresses[0] in seen.picture.members)
            assert not seen.picture.members[members.addresses[0]].shows("cluster-state")


def test_a_state_is_changed_and_who_asked_is_recorded() -> None:
    with fake_cluster(1) as members, watching(*members.addresses, write=True) as seen:
        (address,) = members.addresses
        seen.until(lambda: seen.picture.members.get(address) and seen.picture.members[address].shows("cluster-state"))
        seen.cluster.execute(ChangeState(address, "FROZEN")).result(10)
        assert ChangeClusterState("FROZEN") in members.members[0].asked
        seen.until(lambda: seen.events(ClusterStateChanged))
        seen.until(lambda: seen.events(OperatorAsked))
        asked = seen.events(OperatorAsked)[0]
        words = (f"change-state {address} state=FROZEN", "write", "hugo@desk", True, "done")
        assert asked == OperatorAsked(*words, do="change-state", target=address)
        seen.cluster.execute(PromoteMember(address)).result(10)
        assert PromoteLiteMember() in members.members[0].asked
        seen.cluster.execute(Diagnose(address, 61_000_000)).result(10)
        assert SetDiagnostics(2, DIAGNOSTICS) in members.members[0].asked, "in whole minutes, none less"


def test_nothing_is_done_where_only_watching_was_allowed_and_what_cannot_be_done_is_refused() -> None:
    with fake_cluster(1) as members, watching(*members.addresses) as seen:
        (address,) = members.addresses
        seen.cluster.started.result(10)
        with pytest.raises(CommandRefused, match="--write"):
            seen.cluster.execute(ChangeState(address, "FROZEN")).result(10)
        seen.until(lambda: seen.events(OperatorAsked))
        assert not seen.events(OperatorAsked)[0].granted
    assert {"kill", "cut", "pause", "search"} <= seen.cluster.lacks
    with fake_cluster(1) as members, watching(*members.addresses, write=True) as seen:
        seen.cluster.started.result(10)
        with pytest.raises(CommandRefused):
            seen.cluster.execute(KillMember(members.addresses[0])).result(10)
        with pytest.raises(CommandRefused, match="is not connected; whether"):  # it cannot have left because of us
            seen.cluster.execute(StopMember("127.0.0.1:1")).result(10)


def test_a_refusal_of_the_member_is_told_in_its_words() -> None:
    with fake_cluster(1) as members, watching(*members.addresses, write=True) as seen:
        members.members[0].answers[ShutDownMember] = DENIED
        seen.cluster.started.result(10)
        with pytest.raises(CommandRefused, match=r"access denied.*trusted-interfaces"):
            seen.cluster.execute(StopMember(members.addresses[0])).result(10)


def test_a_member_that_knows_no_edit_of_its_join_list_hangs_up() -> None:
    rest = '<rest-api enabled="true"><endpoint-group name="CLUSTER_WRITE" enabled="true"/></rest-api></network>'
    with fake_cluster(1) as members:
        (address,) = members.addresses
        members.members[0].answers[GetMemberConfig] = MemberConfig(CONFIG.format("").replace("</network>", rest))
        with watching(address, write=True) as seen:
            seen.until(lambda: seen.cluster.configuration_of(address))
            with pytest.raises(CommandRefused, match=r"before 5\.2 .* restart them"):
                seen.cluster.execute(SetJoinList(address, ("10.0.0.1:5701",))).result(10)


def test_without_rest_it_is_said_which_lines_the_configuration_needs() -> None:
    with fake_cluster(1) as members, watching(*members.addresses, write=True) as seen:
        (address,) = members.addresses
        members.members[0].join_list = ("10.0.0.9:5701",)
        seen.until(lambda: seen.events(JoinListChanged))
        with pytest.raises(CommandRefused, match="CLUSTER_WRITE"):
            seen.cluster.execute(SetJoinList(address, (address, "10.0.0.8:5701"))).result(10)
        assert "10.0.0.9:5701" not in seen.picture.members, "a join list alone makes nobody a member"


def test_behind_a_map_only_the_members_names_are_left() -> None:
    with fake_cluster(2) as members:
        for number, one in enumerate(members.members):
            one.address = Address(f"10.0.0.{number}:5701")
        members.do(lambda: agree(members.members, 2))
        mapped = {member.address: member.listens_at for member in members.members}
        dialled = members.members[0].listens_at
        with watching(dialled, settings=WatchSettings((dialled,), address_map=mapped)) as seen:
            seen.until(lambda: seen.cluster.is_settled and len(seen.events(ListInstalled)) == 2)
            assert set(seen.cluster.labels) == set(mapped)
            assert all(status.contact == "connected" for status in seen.cluster.connection_status().values())


def test_a_map_of_hosts_is_for_all_of_their_ports() -> None:
    settings = WatchSettings((), address_map={Address("a:5701"): Address("b:15701")}, host_map={"a": "b", "c": "d"})
    for inner, outer in (("a:5701", "b:15701"), ("a:5702", "b:5702"), ("c:5709", "d:5709"), ("e:1", "e:1")):
        assert settings.endpoint_of(Address(inner)) == outer
        assert settings.name_of(Address(outer)) == (None if inner == outer else inner)


def test_where_all_expect_a_member_that_is_not_there_it_is_missed_with_the_reason() -> None:
    with fake_cluster(4) as members:
        a, b, killed, frozen = members.members
        for member in (a, b):
            member.join_list = members.addresses
        b.join_list = members.addresses[:3]
        members.do(lambda: agree([a, b], 2))
        members.stop(killed)
        frozen.silent = True
        with watching(a.address) as seen:
            seen.until(lambda: seen.cluster.is_settled)
            status = seen.cluster.connection_status()
            assert set(status) == {a.address, b.address, killed.address}, "one that only some expect is not missed"
            assert status[killed.address].state == "gone" and "no process" in status[killed.address].why
        b.join_list = members.addresses
        with watching(a.address) as seen:
            seen.until(lambda: seen.cluster.is_settled)
            status = seen.cluster.connection_status()
            assert status[frozen.address].state == "silent" and status[frozen.address].why


def test_what_logs_tell_of_the_same_moment_is_numbered_where_it_happened_and_an_end_counts_once() -> None:
    numbering = RecordNumbering("try", 1_000_000, hold_us=300)
    numbering.add(100, "a", "u", MemberWitnessed(("client-protocol",), ()), 100)
    numbering.add(200, "a", "u", MemberStopped("heard"), 200)
    assert numbering.release(250) == []
    numbering.add(150, "a", "u", ConnectionChanged("connected"), 260)
    numbering.add(210, "a", "u", MemberStopped("logged"), 270)
    released = numbering.release(600)
    assert [(record.seq, record.at, type(record.event)) for record in released] == [
        (1, 100, MemberWitnessed),
        (2, 150, ConnectionChanged),
        (3, 200, MemberStopped),
    ]
    assert released[0].utc == 1_000_100


def test_a_list_without_the_member_that_tells_it_is_told_as_it_is() -> None:
    with fake_cluster(2) as members, watching(members.addresses[0]) as seen:
        seen.until(lambda: len(seen.events(ListInstalled)) == 2)
        a, b = members.members
        members.do(lambda: a.tell(MembersView(9, (b.on_list(),))))
        seen.until(lambda: seen.picture.members[a.address].version == 9)
        assert seen.picture.members[a.address].master == b.address


def test_a_service_of_which_no_pod_answers_is_looked_for_at_each_of_its_addresses() -> None:
    service, pods = Address("hz.orders.svc:5701"), (Address("127.0.0.2:9"), Address("127.0.0.3:9"))
    with watching(service) as watch:
        cluster = watch.cluster
        cluster._hear(NameResolved(0, service, pods))
        assert set(cluster.labels) == set(pods)
        cluster._hear(NameResolved(1, service, pods[1:]))
        assert set(cluster.labels) == {pods[1]}


PODS = """<hazelcast xmlns="http://www.hazelcast.com/schema/config"><network><join><kubernetes enabled="true">
<service-dns>hz.orders.svc</service-dns></kubernetes></join></network></hazelcast>"""


def test_halves_that_find_each_other_by_kubernetes_get_no_advice_about_join_lists() -> None:
    with fake_cluster(4) as members, watching(members.addresses[0]) as seen:
        for member in members.members:
            member.answers[GetMemberConfig] = MemberConfig(PODS)
        seen.until(lambda: len([event for event in seen.events(SettingsChanged) if JOINER in event.properties]) == 4)
        a, b, c, d = members.members
        members.do(lambda: (agree([a, b], 2), agree([c, d], 2)))
        seen.until(lambda: len(seen.picture.masters()) == 2 and seen.story and seen.story.observations)
        story = seen.story
        assert story is not None
        (apart,) = story.observations
        assert "publishNotReadyAddresses" in apart.remedy and "join list" not in apart.cause + apart.remedy
        (pair,) = why_not_merging(seen.picture, seen.cluster.now_us())
        assert "is not a join list, but kubernetes: let one service select the pods of both sides" in pair.sentence
