"""Whose loss it is: each side of a split answers for what it lost itself."""

from __future__ import annotations

from quarterdeck.backend.boards.overview_rows import TableRows
from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.judgement.health.data_loss import data_losses
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FIVE, FakeCluster, fold, formed

OLDER, YOUNGER = FIVE[:3], FIVE[3:]


def split() -> FakeCluster:
    """Return a cluster whose first three have removed the last two, and lost a partition with them."""
    cluster = formed()
    for label in OLDER:
        cluster.install(label, 6, OLDER)
    cluster.happen("n1", PartitionLost(3, ALL_LOST))
    return cluster


def lost(cluster: FakeCluster) -> dict[str, frozenset[int]]:
    return {loss.side: loss.lost for loss in data_losses(fold(cluster), cluster.now_us())}


def test_a_side_that_was_removed_before_has_not_lost_what_the_other_one_lost() -> None:
    cluster = split()
    for label in YOUNGER:
        cluster.install(label, 6, YOUNGER, lineage="L2")
    cluster.happen("n4", PartitionLost(5, ALL_LOST))
    assert lost(cluster) == {"n1": {3}, "n4": {5}}


def test_a_member_that_goes_on_under_a_new_master_lives_with_the_loss() -> None:
    cluster = split()
    for label in OLDER[1:]:
        cluster.install(label, 7, OLDER[1:], lineage="L3")
    assert lost(cluster)["n2"] == {3}


def test_a_table_with_all_its_copies_is_not_called_safe_while_its_side_lives_with_a_loss() -> None:
    cluster = split()
    cluster.change_table("n1", 1, dict.fromkeys(range(271), ("n1", "n2")))
    picture = fold(cluster)
    row = TableRows().row(picture, "n1", cluster.now_us() // 1_000_000)
    assert (row.state, row.tone) == ("∅ 1 lost", "bad")


def test_while_those_that_went_merge_their_entries_it_is_not_known_what_is_gone() -> None:
    cluster = split()
    picture = Picture()

    def outlook() -> tuple[bool, str]:
        fold(cluster, picture)
        (loss,) = data_losses(picture, cluster.now_us())
        return loss.certain, loss.outlook

    for label in YOUNGER:
        cluster.install(label, 6, YOUNGER, lineage="L2")
    assert not outlook()[0], "they run elsewhere"
    for label in YOUNGER:
        cluster.happen(label, events.MemberMerging(cluster.address("n1"), f"{label}-life-2", True))
        started = events.MemberStarted(cluster.address(label), False, (), merged_from=f"{label}-life-1")
        cluster.happen(label, started, life=2)
    assert outlook() == (False, "n4, n5 merge their entries: how many are gone is not known yet")
    for label in YOUNGER:
        cluster.install(label, 7, FIVE, life=2)
        cluster.happen(label, EntriesMerged("put-if-absent", 5, 0, "it stopped"), life=2)
    assert outlook()[0], "their entries did not come"
