"""Members stand in the order of age, wherever they are listed."""

from __future__ import annotations

from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.picture.boards.member_board import members_by_age
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster

FOUR = ("n1", "n2", "n3", "n4")


def folded(cluster: FakeCluster) -> Picture:
    picture = Picture()
    for record in cluster.drain():
        picture.apply(record)
    return picture


def test_the_oldest_is_first_however_the_labels_come() -> None:
    cluster = FakeCluster(FOUR)
    cluster.form()
    assert members_by_age(folded(cluster), ("n3", "unheard", "n1", "n4", "n2")) == (*FOUR, "unheard")


def test_two_clusters_stand_below_each_other_and_the_dead_come_last() -> None:
    cluster = FakeCluster(FOUR)
    cluster.form()
    cluster.split(["n2", "n4", "n3"], ["n1"])
    cluster.happen("dev", ProcessKilled("n1"))
    assert members_by_age(folded(cluster), FOUR) == ("n2", "n4", "n3", "n1")


def test_without_any_record_labels_stay_as_they_come() -> None:
    assert members_by_age(Picture(), ("b", "a")) == ("b", "a")
