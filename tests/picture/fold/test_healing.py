"""The fold of healing: partial disconnections, merges, the join list, the state of the cluster."""

from __future__ import annotations

import time

from quarterdeck.backend.boards.belief_matrix import cells, observer_facts, summarize_beliefs
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.picture.fold.belief import Resolved, VerdictOn, WaitsForLinks
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FIVE, FakeCluster, fold


def formed() -> tuple[FakeCluster, Picture]:
    cluster = FakeCluster(FIVE)
    cluster.form()
    return cluster, fold(cluster)


def split() -> tuple[FakeCluster, Picture]:
    cluster, picture = formed()
    cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
    return cluster, fold(cluster, picture)


def test_reports_stand_until_they_are_withdrawn_or_settled() -> None:
    cluster, picture = formed()
    n2, n3, n4 = (cluster.address(label) for label in ("n2", "n3", "n4"))
    cluster.happen("n1", events.DisconnectionReported(n2, (n3, n4)))
    cluster.happen("n1", events.DisconnectionReported(n3, (n2,)))
    cluster.happen("n1", events.DisconnectionReported(n3, ()))
    belief = fold(cluster, picture).members["n1"]
    assert belief.reports == {n2: (n3, n4)}
    cluster.happen("n1", events.DisconnectionResolved((n3, n4), (n2,), True, "they reach one another"))
    fold(cluster, picture)
    assert not belief.reports
    assert belief.resolution == Resolved((n3, n4), (n2,), True, "they reach one another", picture.at)
    assert belief.held_back == {n2: ()}


def test_a_report_goes_with_its_reporter() -> None:
    cluster, picture = formed()
    cluster.happen("n1", events.DisconnectionReported(cluster.address("n5"), (cluster.address("n2"),)))
    cluster.install("n1", 6, ["n1", "n2", "n3", "n4"])
    assert not fold(cluster, picture).members["n1"].reports


def test_who_left_is_not_reported_any_more() -> None:
    cluster, picture = formed()
    n2, n3, n5 = (cluster.address(label) for label in ("n2", "n3", "n5"))
    cluster.happen("n1", events.DisconnectionReported(n2, (n5,)))
    cluster.happen("n1", events.DisconnectionReported(n3, (n2, n5)))
    cluster.install("n1", 6, ["n1", "n2", "n3", "n4"])
    assert fold(cluster, picture).members["n1"].reports == {n3: (n2,)}


def test_held_until_on_the_list_again() -> None:
    cluster, picture = formed()
    n2, n3 = cluster.address("n2"), cluster.address("n3")
    cluster.install("n1", 6, ["n1", "n3", "n4", "n5"])
    cluster.happen("n1", events.MemberHeldBack(n2, (n3,)))
    fold(cluster, picture)
    assert picture.members["n1"].held_back == {n2: (n3,)}
    assert seen(picture, "n1", "n2") == "⊘ held"
    assert seen(picture, "n3", "n2") == "● member"
    cluster.install("n1", 7, FIVE)
    fold(cluster, picture)
    assert not picture.members["n1"].held_back and seen(picture, "n1", "n2") == "● member"


def test_a_joiner_that_waits_knows_for_whom_and_until_when() -> None:
    cluster, picture = formed()
    n1, n3 = cluster.address("n1"), cluster.address("n3")
    cluster.start("n2", life=2)
    cluster.happen("n2", events.JoinDelayed(n1, (n3,), 2_000_000), life=2)
    fold(cluster, picture)
    assert picture.members["n2"].delay == WaitsForLinks(n1, (n3,), picture.at + 2_000_000)
    assert observer_facts(picture, "n2").list_version == "held back"
    cluster.install("n2", 7, FIVE, life=2)
    assert fold(cluster, picture).members["n2"].delay is None


def test_verdicts_and_the_reason_for_not_merging() -> None:
    cluster, picture = split()
    n4 = cluster.address("n4")
    why = f"{cluster.address('n1')} has 3 and {n4} has 2, so {n4} merges"
    cluster.happen("n1", events.MergeVerdict(n4, "remote-merges", "data-members", why))
    cluster.happen("n1", events.NotMerging(why, n4))
    fold(cluster, picture)
    belief = picture.members["n1"]
    found = belief.verdicts[n4]
    assert found == VerdictOn(n4, "remote-merges", "data-members", why, found.since_us)
    assert belief.not_merging == why
    assert summarize_beliefs(ListAgreement(picture)).apart == (
        "n1 is not merging: n1 has 3 and n4 has 2, so n4 merges",
    )
    cluster.install("n1", 9, ["n1", "n2", "n3", "n4"])
    assert not fold(cluster, picture).members["n1"].not_merging, "the other cluster has merged"
    cluster.happen("n1", events.NotMerging("nobody answers"))
    cluster.install("n1", 10, ["n2", "n1", "n3"])
    assert not fold(cluster, picture).members["n1"].not_merging, "it is master no more"


def test_a_merge_ends_one_life_and_begins_the_next() -> None:
    cluster, picture = split()
    n1, n4 = cluster.address("n1"), cluster.address("n4")
    edited = (n1, n4)
    cluster.happen("n4", events.JoinListChanged(edited, 3, cluster.address("n5")))
    cluster.happen("n4", events.NotMerging("nobody answers"))
    cluster.happen("n4", events.MergeStarted(n1, (n4, cluster.address("n5"))))
    cluster.happen("n4", events.ClusterStateChanged("FROZEN", "the master decided it"))
    fold(cluster, picture)
    belief = picture.members["n4"]
    assert (belief.merging, belief.not_merging, belief.cluster_state) == (n1, "", "FROZEN")
    assert observer_facts(picture, "n4").list_version == "merging v6"
    assert summarize_beliefs(ListAgreement(picture)).apart == ("n4 is merging into the cluster of n1",)
    cluster.happen("n4", events.MemberMerging(n1, "n4-life-2"))
    fold(cluster, picture)
    assert belief.status == "joining" and observer_facts(picture, "n4").list_version == "merging v6"
    cluster.happen("n4", events.MemberStarted(n4, False, edited, "n4-life-1"), life=2)
    belief = fold(cluster, picture).members["n4"]
    assert (belief.status, belief.cluster_state, belief.merging) == ("joining", "ACTIVE", None)
    assert (belief.join_list, belief.join_list_edition, belief.merged_from) == (edited, 3, "n4-life-1")
    assert belief.runs_since_us < belief.started_us, "its process went on"
    cluster.install("n4", 9, FIVE, life=2)
    cluster.install("n4", 7, ["n4", "n5"])  # of the life before, late
    assert fold(cluster, picture).members["n4"].version == 9


def test_a_restart_knows_nothing_of_edits() -> None:
    cluster, picture = formed()
    cluster.happen("n2", events.JoinListChanged((cluster.address("n1"),), 1, cluster.address("n2")))
    cluster.start("n2", life=2)
    belief = fold(cluster, picture).members["n2"]
    assert (len(belief.join_list), belief.join_list_edition, belief.join_list_author) == (5, 0, None)


def test_an_abandoned_merge_leaves_its_reason() -> None:
    cluster, picture = split()
    n1 = cluster.address("n1")
    cluster.happen("n4", events.MergeStarted(n1, (cluster.address("n4"),)))
    cluster.happen("n4", events.MergeAbandoned(n1, "the other cluster does not answer any more"))
    belief = fold(cluster, picture).members["n4"]
    assert belief.merging is None and belief.not_merging == "the other cluster does not answer any more"


def test_states_other_than_active_are_said_with_the_list() -> None:
    cluster, picture = formed()
    for label in FIVE:
        cluster.happen(label, events.ClusterStateChanged("FROZEN", "the master decided it"))
    assert (
        summarize_beliefs(ListAgreement(fold(cluster, picture))).sentence
        == "1 list: v5 of 5 members (master n1, FROZEN)"
    )
    cluster.happen("n1", events.ClusterStateChanged("ACTIVE", "the master decided it"))
    cluster.happen("n2", events.ClusterStateChanged("PASSIVE", "the master decided it"))
    said = summarize_beliefs(ListAgreement(fold(cluster, picture))).sentence
    assert said == "1 list: v5 of 5 members (master n1, PASSIVE at n2, FROZEN at n3,n4,n5)"
    assert not summarize_beliefs(ListAgreement(picture)).apart, (
        "nobody is asked why it does not merge while there is one cluster"
    )


def test_operations_are_refused_and_served_again() -> None:
    cluster, picture = formed()
    assert picture.members["n1"].operating
    cluster.happen("n1", events.ProtectionChanged(2, 3, False))
    belief = fold(cluster, picture).members["n1"]
    assert (belief.operating, belief.needed) == (False, 3)


def test_the_fold_stays_cheap() -> None:
    """Counted in processor time, and generously: this guards against work that grows with the cluster."""
    _, picture = formed()
    suspect = Address("10.9.9.9:5701")
    records = [
        Record("run-1", FIVE[place % 5], f"{FIVE[place % 5]}-life-1", 100 + place, place, place, event)
        for place, event in enumerate(
            [events.NotMerging("nobody"), events.SuspicionRaised(suspect, "u", "no")] * 10_000
        )
    ]
    begun = time.process_time()
    for record in records:
        picture.apply(record)
    assert time.process_time() - begun < 1.0


def seen(picture: Picture, observer: str, member: str) -> str:
    """How the observer sees the member."""
    return next(cells(picture, observer, [member])).text
