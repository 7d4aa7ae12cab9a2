"""What is said before something destructive is done."""

from __future__ import annotations

from quarterdeck.backend.core.commands import ChangeState, Heal, KillAt, KillMember, SearchClusters, StopMember
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused
from quarterdeck.backend.core.membership.events import ClusterStateChanged, MemberStopped, MergeVerdict
from quarterdeck.backend.judgement.what_if.blast_radius import blast_radius
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FIVE, FakeCluster, fold


def split() -> Picture:
    cluster = FakeCluster(FIVE)
    cluster.form()
    cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
    cluster.happen("n4", MergeVerdict(cluster.address("n1"), "local-merges", "data-members", "2 against 3"))
    return fold(cluster)


def formed() -> Picture:
    cluster = FakeCluster(FIVE)
    cluster.form()
    return fold(cluster)


def test_ending_names_the_orphans() -> None:
    told = blast_radius(formed(), [KillMember("n1")])
    assert told.startswith("1 of 5 running members would end; 4 would be left.")
    assert "n1 is master of n2, n3, n4, n5" in told
    everybody = [StopMember(label) for label in FIVE]
    assert blast_radius(formed(), everybody).endswith("Nothing of the cluster remains.")


def holding(*, backups: bool) -> FakeCluster:
    cluster = FakeCluster(FIVE)
    cluster.form()
    rows = {0: ["n1", "n2"], 1: ["n2", "n3"], 2: ["n3", "n1"], 3: ["n2", "n1"]}
    if not backups:
        rows[3] = ["n2", ""]
    for label in ("n1", "n2"):
        cluster.change_table(label, 4, rows)
    return cluster


def test_killing_tells_what_would_be_lost() -> None:
    lost = "✕ {} would be lost: no other member holds a replica."
    picture = fold(holding(backups=True))
    assert "No partition would be lost; 2 would go to their first backups." in blast_radius(picture, [KillMember("n2")])
    assert blast_radius(picture, [KillAt("n2", "claim-started")]) == blast_radius(picture, [KillMember("n2")])
    told = blast_radius(picture, [KillMember("n2"), KillMember("n1")])
    assert lost.format("2 partitions") in told
    assert lost.format("1 partition") in blast_radius(fold(holding(backups=False)), [KillMember("n2")])


def test_replicas_of_lives_that_are_over_save_nothing() -> None:
    cluster = holding(backups=True)
    cluster.happen("dev", ProcessKilled("n3"))
    assert "✕ 1 partition would be lost" in blast_radius(fold(cluster), [KillMember("n2")])
    cluster = holding(backups=True)
    cluster.start("n3", life=2)
    assert "✕ 1 partition would be lost" in blast_radius(fold(cluster), [KillMember("n2")])
    cluster = holding(backups=True)
    cluster.happen("dev", ProcessPaused("n3"))
    assert "No partition would be lost" in blast_radius(fold(cluster), [KillMember("n2")])


def test_stopping_loses_nothing_while_somebody_stays() -> None:
    picture = fold(holding(backups=False))
    assert "Their data moves to the others before they leave" in blast_radius(picture, [StopMember("n2")])
    assert "data" not in blast_radius(picture, [StopMember(label) for label in FIVE])
    assert "data" not in blast_radius(formed(), [StopMember("n2")])


def test_where_nothing_migrates_a_stop_loses_what_a_crash_loses() -> None:
    """So it is said before, when the members of a frozen cluster are restarted in turn."""
    cluster = holding(backups=True)
    for label in FIVE:
        cluster.happen(label, ClusterStateChanged("FROZEN", "to be restarted", "decided"))
    picture = fold(cluster)
    told = blast_radius(picture, [StopMember("n2")])
    assert "No partition would be lost; 2 would be served by none before the cluster is ACTIVE again." in told
    assert told.endswith("The cluster is FROZEN: data does not move to others before a member leaves.")
    cluster.happen("n2", MemberStopped("asked to stop", "asked"))
    fold(cluster, picture)
    told = blast_radius(picture, [StopMember("n1")])
    assert "✕ 2 partitions would be lost: no other member holds a replica." in told


def test_a_change_of_state_reaches_one_cluster() -> None:
    told = blast_radius(split(), [ChangeState("n5", "FROZEN")])
    assert told.startswith("It reaches 2 running members: n4, n5. Until it is ACTIVE again no newcomer joins")
    assert "Newcomers may join" in blast_radius(split(), [ChangeState("n5", "ACTIVE")])
    assert blast_radius(Picture(), [ChangeState("n5", "FROZEN")]).startswith("It reaches 0 running members: no member.")


def test_a_search_may_end_in_a_merge() -> None:
    told = blast_radius(split(), [SearchClusters("n4")])
    assert "all 2 (n4, n5) leave theirs and join that one under new uuids" in told
    assert told.endswith("It met that of n1 before: this one should merge into it.")


def test_what_destroys_nothing_has_no_radius() -> None:
    assert blast_radius(formed(), [Heal()]) == ""
