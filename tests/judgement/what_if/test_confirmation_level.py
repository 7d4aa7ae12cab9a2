"""What is asked before commands are done, and what has to be typed first."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.commands import (
    ChangeState,
    Command,
    CutLink,
    Heal,
    KillAt,
    KillMember,
    Partition,
    PauseMember,
    ResumeMember,
    SearchClusters,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.judgement.what_if.blast_radius import blast_radius
from quarterdeck.backend.judgement.what_if.prediction import ConfirmationLevel, confirmation_level
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import fold, formed

FIVE = ("a", "b", "c", "d", "e")


def stops(*labels: str) -> list[Command]:
    return [StopMember(label) for label in labels]


@pytest.mark.parametrize(
    ("commands", "here", "remote"),
    [
        ([StartMember("a")], "none", "none"),
        ([ResumeMember("a")], "none", "none"),
        ([Heal()], "none", "none"),
        (stops("a"), "none", "confirm"),
        (stops("a", "b"), "none", "confirm"),
        (stops("a", "b", "c"), "none", "type-name"),
        (stops(*FIVE), "confirm", "type-name"),
        ([KillMember("a")], "confirm", "confirm"),
        ([KillMember("a"), KillMember("b"), KillMember("c")], "confirm", "type-name"),
        ([KillAt("a", "list-installed")], "confirm", "confirm"),
        ([PauseMember("a")], "none", "confirm"),
        ([PauseMember(label) for label in FIVE], "none", "type-name"),
        ([ChangeState("a", "FROZEN")], "confirm", "confirm"),
        ([SearchClusters("a")], "confirm", "confirm"),
        ([CutLink(("a",), ("b",))], "none", "confirm"),
        ([Partition((("a",), ("b", "c", "d", "e")))], "none", "confirm"),
        ([Partition((("a", "b"), ("c", "d", "e")))], "none", "type-name"),
        ([Partition((("a",), ("b",), ("c", "d", "e")))], "none", "type-name"),
        ([CutLink(("a", "b"), ("c", "d", "e"))], "none", "type-name"),
        ([CutLink(("a", "b"), ("c", "d", "e"), one_way=True)], "none", "type-name"),
        ([CutLink(("a", "b"), ("c", "d"))], "none", "confirm"),
    ],
    ids=str,
)
def test_what_is_asked(commands: list[Command], here: ConfirmationLevel, remote: ConfirmationLevel) -> None:
    picture = fold(formed(FIVE))
    assert confirmation_level(picture, commands, remote=False) == here
    assert confirmation_level(picture, commands, remote=True) == remote


def test_only_what_a_cut_adds_counts() -> None:
    cluster = formed(FIVE)
    for source, target in (("a", "c"), ("a", "d"), ("a", "e"), ("b", "c"), ("b", "d"), ("b", "e")):
        cluster.happen(source, LinkChanged(source, target, blocked=True))
    picture = fold(cluster)
    assert confirmation_level(picture, [CutLink(("a",), ("b",))], remote=True) == "confirm"
    assert confirmation_level(picture, [Partition((("a", "b"), ("c", "d", "e")))], remote=True) == "confirm"
    # Its links to e alone are whole, so e holds the two halves together until it is cut from one of them.
    assert (
        confirmation_level(picture, [Partition((("c", "d", "e"), ("a", "b"))), *[KillMember("a")]], remote=True)
        == "confirm"
    )


def test_a_cluster_that_is_split_is_judged_side_by_side() -> None:
    cluster = formed(FIVE)
    cluster.split(("a", "b"), ("c", "d", "e"))
    picture = fold(cluster)
    assert confirmation_level(picture, stops("a"), remote=True) == "type-name"
    assert confirmation_level(picture, stops("c"), remote=True) == "confirm"


def test_the_last_replica_of_a_partition_takes_the_name() -> None:
    cluster = formed(FIVE)
    cluster.change_table("a", 3, {0: ("d", "e"), 1: ("c",), 2: ("a", "b")})
    picture = fold(cluster)
    assert confirmation_level(picture, [KillMember("d")], remote=True) == "confirm"
    assert confirmation_level(picture, [KillMember("c")], remote=True) == "type-name"
    assert confirmation_level(picture, [KillMember("d"), KillMember("e")], remote=True) == "type-name"
    assert confirmation_level(picture, [KillMember("c")], remote=False) == "confirm"


def test_where_the_master_has_no_table_that_of_the_member_tells() -> None:
    cluster = formed(FIVE)
    cluster.change_table("c", 3, {0: ("c",), 1: ("d", "e")})
    picture = fold(cluster)
    assert "1 partition would be lost" in blast_radius(picture, [KillMember("c")])
    assert confirmation_level(picture, [KillMember("c")], remote=True) == "type-name"


def test_nothing_known_is_no_reason_to_crash() -> None:
    assert confirmation_level(Picture(), [KillMember("nobody")], remote=True) == "confirm"
    assert confirmation_level(Picture(), [], remote=True) == "none"
