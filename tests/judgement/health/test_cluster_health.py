"""One sentence for every kind of cluster: whether it is whole and its data safe; what is not known is neither."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quarterdeck.backend.boards.operator_questions import operator_questions
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import BackupOutOfStep, DataMeasured
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused
from quarterdeck.backend.core.membership.events import (
    ListInstalled,
    MemberMerging,
    MemberStarted,
)
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import Holder
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed, OwnersTold, Source
from quarterdeck.backend.judgement.health.cluster_health import LONGEST, ClusterHealth
from quarterdeck.backend.judgement.health.copy_counts import most_copies
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.watcher import Missed, Watcher
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster, fold

CITIES = ("athens", "byzantium", "cyrene", "delphi", "euphesus")
SECOND = 1_000_000
LATER = 3 * SECOND
"""After so long members have heard of a list."""


def missing(away: Sequence[str] = (), gone: Sequence[str] = ()) -> Watcher:
    """Return a watcher that does not reach these members, and knows that those in `gone` have ended."""
    return Watcher({label: Missed(0, has_ended=label in gone) for label in (*away, *gone)})


def judged(cluster: FakeCluster, picture: Picture | None = None, after_us: int = LATER) -> ClusterHealth:
    picture = picture or Picture()
    fold(cluster, picture)
    health = Judge(picture, now_us=cluster.now_us() + after_us).health
    assert len(health.sentence) <= LONGEST
    return health


def formed(labels: tuple[str, ...] = CITIES, *, data: bool = True, **how: bool) -> FakeCluster:
    cluster = FakeCluster(labels)
    cluster.form()
    if data:
        rows = {
            place: (labels[place % len(labels)], labels[(place + 1) % len(labels)])[: len(labels)]
            for place in range(271)
        }
        for label in labels:
            cluster.change_table(label, 271, rows)
    return cluster


def witnessed(*labels: str, sources: tuple[Source, ...] = ("client-protocol",)) -> FakeCluster:
    """Members of Hazelcast, of which owners are told and backups are not."""
    cluster = FakeCluster(labels, source="hazelcast")
    holders = tuple(Holder(cluster.address(label), f"{label}-life-1") for label in labels)
    for label in labels:
        cluster.happen(label, MemberWitnessed(sources, ("owners", "losses")))
        cluster.happen(label, ConnectionChanged("connected"))
        cluster.install(label, len(labels), labels)
        owners = tuple(place % len(labels) for place in range(271))
        cluster.happen(label, OwnersTold(holders, owners, "abc", 1))
    return cluster


def measured(*entries_of: tuple[int, int]) -> DataMeasured:
    """So many entries are in these partitions of an owner."""
    rows = tuple((partition, entries, 0, 0, 0) for partition, entries in entries_of)
    return DataMeasured(SECOND, sum(entries for _, entries in entries_of), 0, 0, 0, 0, (), rows, ())


def test_an_owner_that_has_merged_and_is_not_reached_yet_is_an_owner() -> None:
    cluster, picture = witnessed(*CITIES), Picture()
    cluster.happen("euphesus", ConnectionChanged("merging"))
    listed = (*(cluster.member(label) for label in CITIES[:4]), cluster.member("euphesus", 2))
    for label in CITIES[:4]:
        athens = cluster.address("athens")
        cluster.happen(label, ListInstalled(7, "L1", athens, listed, athens, "join", ""), after_us=SECOND)
    holders = tuple(Holder(member.address, member.uuid) for member in listed)
    cluster.happen("athens", OwnersTold(holders, tuple(place % 5 for place in range(271)), "def", 2))
    assert "without an owner" not in judged(cluster, picture, 0).sentence
    cluster.happen("euphesus", MemberStarted(cluster.address("euphesus"), False, ()), life=3, after_us=SECOND)
    assert "54 partitions without an owner" in judged(cluster, picture, 0).sentence, "another incarnation runs there"


# Well


def test_a_whole_cluster_with_all_copies_is_healthy() -> None:
    health = judged(formed())
    assert health.sentence == "healthy · 5 members agree · data safe: 2 copies"
    assert (health.whole, health.data_safe, health.replicas.copies, health.data_lost) == (True, True, 2, None)


def test_a_member_that_cannot_join_is_not_passed_over() -> None:
    cluster = FakeCluster(CITIES[:3])
    for label in cluster.labels:
        cluster.start(label)
    for label in CITIES[:2]:
        cluster.install(label, 2, CITIES[:2])
    health = judged(cluster)
    assert health.sentence == "changing · 2 members agree · cyrene joining · no data yet"
    assert health.whole is None


def test_without_a_table_there_is_no_data_yet() -> None:
    assert judged(formed(data=False)).sentence == "healthy · 5 members agree · no data yet"


def test_one_member_has_one_copy() -> None:
    assert judged(formed(("athens",))).sentence == "healthy · 1 member · data in 1 copy, as there is no other member"


def test_backups_that_are_not_told_are_not_safe() -> None:
    health = judged(witnessed("athens", "byzantium"))
    assert health.sentence == "healthy · 2 members agree · backups unknown"
    assert (health.whole, health.data_safe, health.replicas.copies) == (True, None, None)


# Not whole


def test_a_split_names_masters_and_since_when() -> None:
    cluster = formed()
    cluster.split(CITIES[:3], CITIES[3:])
    health = judged(cluster, after_us=14 * SECOND)
    assert health.sentence == "SPLIT since 14 s · 3 + 2, masters athens, delphi · writes go to both"
    assert (health.whole, health.data_safe, health.tone) == (False, False, "bad")


def test_a_split_that_was_there_at_first_sight_has_no_beginning() -> None:
    cluster = witnessed("athens", "byzantium")
    for label in ("athens", "byzantium"):
        cluster.install(label, 7, [label], lineage=f"of {label}")
    assert judged(cluster).sentence.startswith("SPLIT since 3 s · 1 + 1")
    cluster = FakeCluster(("athens", "byzantium"))
    for label in cluster.labels:
        cluster.happen(label, MemberWitnessed(("client-protocol",), ()))
        cluster.install(label, 7, [label], lineage=f"of {label}")
    assert judged(cluster).sentence == "SPLIT · 1 + 1, masters athens, byzantium · writes may go to both"


def test_a_suspected_member_and_single_copies_are_a_degraded_cluster() -> None:
    cluster = formed()
    cluster.suspect("athens", "delphi")
    cluster.suspect("byzantium", "delphi")
    rows = dict.fromkeys(range(41), ("athens", ""))
    for label in CITIES:
        cluster.change_table(label, 300, rows, "repaired")
    health = judged(cluster)
    assert health.sentence == "degraded · delphi suspected by 2 · 41 partitions have one copy"
    assert (health.whole, health.data_safe) == (False, False)


def test_a_frozen_and_a_killed_member_are_said_while_they_are_listed() -> None:
    cluster = formed(data=False)
    cluster.happen("dev", ProcessPaused("delphi"))
    cluster.happen("dev", ProcessKilled("euphesus"))
    assert judged(cluster).sentence == "degraded · delphi frozen · euphesus gone"


def test_a_new_list_that_spreads_is_a_change_and_later_a_disagreement() -> None:
    cluster = formed(data=False)
    cluster.install("athens", 6, CITIES[:4])
    picture = Picture()
    health = judged(cluster, picture, after_us=SECOND // 10)
    assert health.sentence.startswith("changing · 2 member lists, another one at athens") and health.whole is None
    health = judged(cluster, picture)
    assert health.sentence.startswith("degraded · 2 member lists") and health.whole is False


def test_a_listed_member_without_a_list_joins() -> None:
    cluster = FakeCluster(CITIES[:3])
    for label in CITIES[:3]:
        cluster.start(label)
    for label in CITIES[:2]:
        cluster.install(label, 3, CITIES[:3])
    health = judged(cluster)
    assert health.sentence == "changing · 2 of 3 members agree · cyrene joining · no data yet" and health.whole is None


def test_a_suspicion_is_trouble_also_while_a_list_spreads() -> None:
    cluster = formed(data=False)
    cluster.install("athens", 6, CITIES[:4])
    cluster.suspect("athens", "delphi")
    health = judged(cluster, after_us=SECOND // 10)
    assert health.whole is False and health.sentence.startswith("degraded · delphi suspected by 1 · 2 member lists")


def test_members_without_a_master_are_degraded() -> None:
    cluster = formed(data=False)
    cluster.happen("dev", ProcessKilled("athens"))
    assert judged(cluster).sentence == "degraded · athens gone · no master is seen"


def test_a_backup_out_of_step_is_not_safe() -> None:
    cluster = formed()
    cluster.happen("byzantium", BackupOutOfStep(0, cluster.address("athens"), "it lacks writes"))
    assert judged(cluster).sentence == "degraded · 5 members agree · 1 backup out of step"


def test_before_the_first_list_and_after_the_last_end() -> None:
    cluster = FakeCluster(CITIES)
    assert judged(cluster).sentence == "unknown · no member is reached"
    cluster.start("athens")
    assert judged(cluster, Picture()).sentence == "changing · 1 member joining, no member list yet"
    cluster = formed(("athens",))
    cluster.happen("dev", ProcessKilled("athens"))
    health = judged(cluster)
    assert (health.sentence, health.whole) == ("down · no member runs: 1 member ended", False)


# Not known


def test_silent_members_off_the_list_may_follow_another_master() -> None:
    cluster = witnessed("athens", "byzantium", "cyrene")
    for label in ("byzantium", "cyrene"):
        cluster.happen(label, ConnectionChanged("silent"))
    cluster.install("athens", 9, ["athens"])
    health = judged(cluster)
    assert (
        health.sentence
        == "degraded · 1 of 3 · byzantium, cyrene out of reach 3 s ago · owners of 180 partitions unknown"
    )
    assert health.whole is None


@pytest.mark.parametrize("is_seen_to_merge", [False, True])
def test_a_member_on_its_way_into_the_cluster_is_not_passed_over(is_seen_to_merge: bool) -> None:
    """Its log says that it merges before the watcher finds that it is not ready, and before that is recorded."""
    cluster = witnessed("athens", "byzantium", "cyrene")
    cluster.install("athens", 9, ["athens", "byzantium"])
    cluster.install("byzantium", 9, ["athens", "byzantium"])
    cluster.happen("cyrene", MemberMerging(cluster.address("athens"), "next"))
    cluster.install("cyrene", 4, ["cyrene"])  # its last list may come when it has left already
    if is_seen_to_merge:
        cluster.happen("cyrene", ConnectionChanged("merging", "it merges, for its process goes on"))
    picture = fold(cluster)
    health = Judge(picture, missing(away=["cyrene"]), cluster.now_us() + LATER).health
    assert health.whole is None
    assert health.sentence == "changing · 2 members agree · cyrene joining · owners of 90 partitions unknown"
    questions = operator_questions(Judge(picture, missing(away=["cyrene"]), LATER), ())
    answer = next(fact.text for fact in questions if fact.heading == "is it one cluster")
    assert answer.startswith("not known: athens leads 2 members") and answer.endswith("cyrene merges")
    cluster.happen("cyrene", ConnectionChanged("silent"))
    assert (
        judged(cluster, picture).sentence
        == "degraded · 2 of 3 · cyrene out of reach 3 s ago · owners of 90 partitions unknown"
    )


def test_the_next_incarnation_of_an_ended_member_is_not_gone_before_it_is_met() -> None:
    cluster = witnessed("athens", "byzantium")
    cluster.happen("byzantium", ConnectionChanged("gone", "no process listens there"))
    picture = Picture()
    assert "byzantium gone" in judged(cluster, picture).sentence
    again = Member(cluster.address("byzantium"), "another", 9, False)
    athens = cluster.member("athens")
    cluster.happen("athens", ListInstalled(9, "L1", athens.address, (athens, again), athens.address, "unknown", ""))
    health = judged(cluster, picture)
    assert (health.whole, "byzantium joining" in health.sentence) == (None, True), health.sentence


def test_the_end_of_a_log_says_nothing_of_its_member() -> None:
    cluster = witnessed("athens", "byzantium", sources=("logs",))
    cluster.happen("byzantium", ConnectionChanged("gone", "its log is over"))
    health = judged(cluster)
    assert health.whole is None and "byzantium silent" in health.sentence


def test_members_that_the_watcher_does_not_reach() -> None:
    cluster = formed(data=False)
    picture = fold(cluster)
    health = Judge(picture, missing(away=["delphi", "10.0.0.9:5701"]), LATER).health
    assert health.sentence == "degraded · delphi not reached · not seen: 10.0.0.9:5701"
    assert health.whole is False
    health = Judge(picture, missing(gone=["delphi", "10.0.0.9:5701"]), LATER).health
    assert health.sentence == "degraded · delphi gone", "where a host answers and no process is, none is missed"
    assert Judge(picture, missing(gone=CITIES), LATER).health.sentence == "down · no member runs: 5 members ended"


def test_zones_limit_how_many_copies_there_should_be() -> None:
    cluster = FakeCluster(CITIES[:2])
    settings = {"quarterdeck.partition.group.type": "host-aware"}
    for label in CITIES[:2]:
        address = Address(f"10.0.0.1:570{CITIES.index(label)}")
        cluster.happen(label, MemberStarted(address, False, (), settings=settings))
        listed = tuple(
            Member(Address(f"10.0.0.{place % 2}:{place}"), f"{label}-life-1", place)
            for place, label in enumerate((*CITIES[:2], "x", "y"))
        )
        cluster.happen(label, ListInstalled(1, "L1", address, listed, address, "unknown", ""))
    picture = fold(cluster)
    assert most_copies(picture.members["athens"]) == 2
