"""Clusters that are founded anew after what a picture tells."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.commands import Command, CutLink, Heal, KillMember, Partition, PauseMember
from quarterdeck.backend.judgement.what_if.prediction import FaultPrediction, with_present_table
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.simulation.prediction.future import NotFounded, foundation_of, founded, predictions
from tests.picture.simulated_picture import SimulatedPicture


def predicted(cluster: SimulatedPicture, *commands: Command) -> FaultPrediction:
    *_, last = predictions(founded(foundation_of(cluster.picture)), commands)
    return with_present_table(last, cluster.picture)


def test_it_is_predicted_what_comes_of_clusters_like_these() -> None:
    cluster = SimulatedPicture(5, lite=["E"])
    cluster.arrange()
    found = predicted(cluster, Partition((("A", "B"), ("C", "D", "E"))))
    assert found.lists == {"A": ("A", "B"), "C": ("C", "D", "E")}
    a, c = found.clusters
    assert a.partitions == c.partitions == 271 and 0 < a.lost < 271 and 0 < c.lost < 271
    cluster.do(Partition((("A", "B"), ("C", "D", "E"))))
    cluster.pass_seconds(12)
    assert len(cluster.lists()) == 2
    assert predicted(cluster, Heal()).lists.keys() == {"C"}, "as many data members, more members"


def test_members_that_stand_still_or_are_gone_do_so_in_the_likeness() -> None:
    cluster = SimulatedPicture(5)
    cluster.do(PauseMember("D"), KillMember("B"), CutLink(("C",), ("E",)))
    foundation = foundation_of(cluster.picture)
    assert foundation.paused == {"D"} and foundation.gone == {"B"}
    assert {(link.source, link.target) for link in foundation.links} == {("C", "E"), ("E", "C")}
    assert predicted(cluster).lists["A"] == ("A", "C")


def test_what_was_not_told_is_said() -> None:
    cluster = SimulatedPicture(2)
    assert not any("documented" in sentence for sentence in foundation_of(cluster.picture).assumed)
    cluster.picture.members["A"].settings = None
    assert any("documented" in sentence for sentence in foundation_of(cluster.picture).assumed)


def test_of_nobody_there_is_nothing_to_predict() -> None:
    with pytest.raises(NotFounded, match="no member leads"):
        founded(foundation_of(Picture()))
