"""Copies and owners that are gone count no more, and a member that refuses calls is named, whoever leads."""

from __future__ import annotations

from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership.events import ClusterStateChanged, MasterChanged
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.watcher import WATCHES_ALL, Watcher
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster, fold
from tests.judgement.health.test_cluster_health import CITIES, LATER, formed, missing, witnessed


def judge(cluster: FakeCluster, watcher: Watcher = WATCHES_ALL) -> Judge:
    """Judge what has happened in a cluster, which can be asked once."""
    picture = Picture()
    fold(cluster, picture)
    return Judge(picture, watcher, cluster.now_us() + LATER)


def test_copies_at_a_member_that_the_watcher_knows_to_have_ended_count_no_more() -> None:
    cluster = formed()
    assert judge(cluster, missing(away=("euphesus",))).replicas.safe is True
    replicas = judge(formed(), missing(gone=("euphesus",))).replicas
    assert (replicas.safe, replicas.ownerless) == (False, 54)


def test_a_partition_whose_owner_was_killed_has_no_owner_until_a_backup_is_promoted() -> None:
    cluster = formed()
    cluster.happen("dev", ProcessKilled("euphesus"))
    found = judge(cluster)
    assert found.replicas.text == "54 partitions have no owner"
    assert [refusal.kind for refusal in found.refusals] == ["no-owner"]
    assert found.health.condition == "degraded"


def test_a_slave_that_missed_the_end_of_passive_is_named() -> None:
    cluster = formed()
    cluster.happen("byzantium", ClusterStateChanged("PASSIVE", "asked for"))
    assert [refusal.text for refusal in judge(cluster).refusals] == ["PASSIVE at byzantium: writes are refused"]
    cluster = formed()
    for label in CITIES:
        cluster.happen(label, ClusterStateChanged("PASSIVE", "asked for"))
    assert [refusal.text for refusal in judge(cluster).refusals] == ["PASSIVE: writes are refused"]


def test_passive_is_said_before_the_member_is_known_to_report_its_state() -> None:
    cluster = witnessed("athens", "byzantium")
    cluster.happen("athens", ClusterStateChanged("PASSIVE", "its first answer says so"))
    assert [refusal.kind for refusal in judge(cluster).refusals] == ["state"]


def test_a_member_leads_only_a_list_on_which_it_is_the_first() -> None:
    cluster = formed()
    cluster.happen("cyrene", MasterChanged(cluster.address("cyrene"), "the older ones are suspected"))
    assert [master.label for master in judge(cluster).masters] == ["athens"]
