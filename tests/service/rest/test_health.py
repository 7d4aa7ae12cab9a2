"""Health, readiness and the members over HTTP (Hazelcast: REST and complaints)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.address import parse_address
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.picture.fold.belief import Unusable
from quarterdeck.backend.service.http.face import own_belief
from quarterdeck.backend.service.rest.health import why_unsafe
from tests.service.served_members import SETTINGS, ServedMembers, configured, one_member

HEALTH = "/hazelcast/health"


def test_a_member_that_has_not_joined_is_neither_healthy_nor_ready_nor_safe() -> None:
    with ServedMembers() as served:
        served.stop_time()
        member = served.member(configured(join_list=("127.0.0.1:5709",)))
        assert not member.face.member.joined
        answer = member.get(HEALTH)
        assert answer.status_code == 503
        assert answer.json() == {
            "nodeState": "STARTING",
            "clusterState": None,
            "clusterSafe": False,
            "migrationQueueSize": 0,
            "clusterSize": 0,
            "reason": "it has not joined a cluster",
            "journalFailure": "",
        }
        head = member.ask("HEAD", HEALTH)
        assert (head.status_code, "Hazelcast-ClusterState" in head.headers) == (503, False)
        statuses = {
            path: member.get(f"{HEALTH}/{path}").status_code for path in ("ready", "cluster-safe", "cluster-state")
        }
        assert statuses == {"ready": 503, "cluster-safe": 503, "cluster-state": 503}
        assert (member.get(HEALTH + "/node-state").json(), member.get(HEALTH + "/cluster-size").json()) == (
            "STARTING",
            0,
        )


def test_the_reason_that_anyone_may_read_has_a_cause_and_neither_an_address_nor_the_words_of_others() -> None:
    with ServedMembers() as served:
        served.stop_time()
        member = served.member(configured(join_list=("127.0.0.1:5709",)))
        found = Unusable("rejected", "vault.example refuses it")
        own_belief(member.face).unusable[parse_address("127.0.0.1:5709")] = found
        reason = member.get(HEALTH).json()["reason"]
        assert reason == "it has not joined a cluster; it searches in vain: rejected"


def test_a_joined_member_is_healthy() -> None:
    with one_member() as member:
        answer = member.get(HEALTH)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {
            "nodeState": "ACTIVE",
            "clusterState": "ACTIVE",
            "clusterSafe": True,
            "migrationQueueSize": 0,
            "clusterSize": 1,
            "reason": "",
            "journalFailure": "",
        }
        values = [member.get(f"{HEALTH}/{path}").text for path in ("node-state", "cluster-state", "cluster-size")]
        assert values == ['"ACTIVE"', '"ACTIVE"', "1"]
        assert member.get(HEALTH + "/migration-queue-size").text == "0"
        for path in ("ready", "cluster-safe"):
            empty = member.get(f"{HEALTH}/{path}")
            assert (empty.status_code, empty.content) == (200, b"")
        head = member.ask("HEAD", HEALTH)
        assert (head.status_code, head.content) == (200, b"")
        told = {name: head.headers["Hazelcast-" + name] for name in ("NodeState", "ClusterState", "MigrationQueueSize")}
        assert told == {"NodeState": "ACTIVE", "ClusterState": "ACTIVE", "MigrationQueueSize": "0"}
        assert head.headers["Hazelcast-ClusterSize"] == "1"


def test_a_part_that_health_does_not_have() -> None:
    with one_member() as member:
        for path in ("/garbage", "garbage", "/"):
            assert member.get(HEALTH + path).status_code == 400
            assert member.ask("HEAD", HEALTH + path).status_code == 404


def test_a_member_that_is_shut_down_is_not_alive() -> None:
    with one_member() as member:
        member.face.halted = True
        assert [member.get(f"{HEALTH}/{path}").status_code for path in ("node-state", "ready")] == [503, 503]


def test_too_few_members_are_not_ready() -> None:
    settings = Settings.of({"quarterdeck.minimum.cluster.size": 2}, preset="training")
    with ServedMembers() as served:
        athens = served.joined(configured(settings=settings))
        assert athens.get(HEALTH).json()["reason"] == "it sees 1 of at least 2 members"
        assert [athens.get(HEALTH + path).status_code for path in ("", "/ready", "/node-state")] == [503, 503, 200]
        served.joined(configured("byzantium", "127.0.0.1:5702", join_list=("127.0.0.1:5701",), settings=settings))
        athens.until(lambda: len(athens.face.member.view or ()) == 2)
        assert athens.get(HEALTH + "/ready").status_code == 200


def test_a_cluster_is_safe_only_with_all_its_replicas() -> None:
    with ServedMembers() as served:
        athens = served.joined(configured())
        byzantium = served.joined(configured("byzantium", "127.0.0.1:5702", join_list=("127.0.0.1:5701",)))
        athens.until(lambda: len(athens.face.member.view or ()) == 2)
        assert athens.ask("PUT", "/hazelcast/rest/maps/m/k", "v").status_code == 200
        athens.until(lambda: not why_unsafe(athens.face) and not why_unsafe(byzantium.face))
        assert byzantium.get(HEALTH + "/cluster-safe").status_code == 200

        served.look(lambda: served.harness.deaf.add(byzantium.face.address))
        athens.until(lambda: len(athens.face.member.view or ()) == 1)
        athens.until(lambda: not why_unsafe(athens.face))  # alone, one replica is all there can be
        corinth = served.joined(configured("corinth", "127.0.0.1:5703", join_list=("127.0.0.1:5701",)))
        seen: set[str] = set()

        def safe_again() -> bool:
            seen.add(why_unsafe(athens.face))
            return "" in seen and len(seen) > 1

        athens.until(safe_again)
        assert corinth.get(HEALTH + "/cluster-size").json() == 2
        assert "migrations are under way" in seen


def test_a_newcomer_that_has_no_table_yet_does_not_say_that_the_cluster_is_safe() -> None:
    with ServedMembers() as served:
        athens = served.joined(configured())
        byzantium = served.joined(configured("byzantium", "127.0.0.1:5702", join_list=("127.0.0.1:5701",)))
        first = served.look(lambda: why_unsafe(byzantium.face))
        assert first in ("", "whether there is a partition table is not known yet")
        byzantium.until(lambda: not why_unsafe(byzantium.face))
        assert byzantium.face.now_us() - byzantium.face.picture.members["byzantium"].list_since_us >= 3_000_000
        assert served.look(lambda: why_unsafe(athens.face)) == ""


@pytest.mark.parametrize(
    ("groups", "zones", "wanted"),
    [
        ("per-member", ("", "", ""), 3),
        ("zone-aware", ("a", "a", "b"), 2),
        ("zone-aware", ("a", "a", "a"), 2),
        ("host-aware", ("", "", ""), 2),
    ],
)
def test_how_many_replicas_there_can_be(groups: str, zones: tuple[str, ...], wanted: int) -> None:
    from quarterdeck.backend.core.membership.views.identity import Member
    from quarterdeck.backend.service.rest.health import _group_count

    members = tuple(
        Member(parse_address(f"10.0.0.1:{5701 + place}"), f"uuid {place}", 1, zone=zone)
        for place, zone in enumerate(zones)
    )
    lite = Member(parse_address("10.0.0.2:5701"), "lite", 1, lite=True, zone="c")
    assert _group_count((*members, lite), replace(SETTINGS, partition_groups=groups)) == wanted


def test_the_cluster_and_the_instance() -> None:
    with ServedMembers() as served:
        athens = served.joined(configured())
        corinth = served.joined(configured("corinth", "127.0.0.1:5702", join_list=("127.0.0.1:5701",), lite=True))
        athens.until(lambda: len(athens.face.member.view or ()) == 2)
        said = corinth.get("/hazelcast/rest/cluster").json()
        assert [(member["address"], member["liteMember"], member["localMember"]) for member in said["members"]] == [
            ("[127.0.0.1]:5701", False, False),
            ("[127.0.0.1]:5702", True, True),
        ]
        assert said["members"][1]["uuid"] == corinth.face.uuid
        assert said["members"][1]["memberVersion"]
        assert (said["connectionCount"], said["allConnectionCount"]) == (0, 0)
        assert corinth.get("/hazelcast/rest/instance").json() == {"name": "corinth"}
        assert corinth.ask("HEAD", "/hazelcast/rest/cluster").status_code == 200
