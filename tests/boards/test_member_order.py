"""Members stand in the order of age, wherever they are listed."""

from __future__ import annotations

from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import fold, formed

FOUR = ("n1", "n2", "n3", "n4")


def test_the_oldest_is_first_however_the_labels_come() -> None:
    cluster = formed(FOUR)
    assert ListAgreement(fold(cluster)).by_age(("n3", "unheard", "n1", "n4", "n2")) == (*FOUR, "unheard")


def test_two_clusters_stand_below_each_other_and_the_dead_come_last() -> None:
    cluster = formed(FOUR)
    cluster.split(["n2", "n4", "n3"], ["n1"])
    cluster.happen("dev", ProcessKilled("n1"))
    assert ListAgreement(fold(cluster)).by_age(FOUR) == ("n2", "n4", "n3", "n1")


def test_without_any_record_labels_stay_as_they_come() -> None:
    assert ListAgreement(Picture()).by_age(("b", "a")) == ("b", "a")
