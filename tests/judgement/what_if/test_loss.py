"""What would be lost if some members died now, in words."""

from __future__ import annotations

from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.judgement.what_if.blast_radius import loss_facts, loss_of
from tests.app.fakes.fake_cluster import FakeCluster, fold, formed

FOUR = ("n1", "n2", "n3", "n4")


def holding() -> FakeCluster:
    cluster = formed(FOUR)
    cluster.change_table("n1", 4, {0: ["n1", "n2"], 1: ["n2", "n3"], 2: ["n3", "n4"], 3: ["n2", "n4"]})
    return cluster


def told(cluster: FakeCluster, *labels: str) -> list[tuple[str, str, str]]:
    picture = fold(cluster)
    table = picture.members["n1"].table
    assert table is not None
    return [
        (fact.heading, fact.text, fact.tone) for fact in loss_facts(picture, loss_of(picture, table, labels), labels)
    ]


def test_nobody_is_selected() -> None:
    assert told(holding()) == []


def test_one_member_goes_and_others_take_over() -> None:
    assert told(holding(), "n2") == [
        ("if now died", "n2", "strong"),
        ("✓ nothing lost", "of every partition a replica would be left", "good"),
        ("! one copy", "3 partitions (p0, p1, p3)", "warning"),
        ("→ taken over", "2 partitions, by n3 1, n4 1", "plain"),
    ]


def test_two_members_go_with_all_replicas_of_a_partition() -> None:
    facts = told(holding(), "n2", "n4")
    assert facts[0] == ("if now died", "n2, n4", "strong")
    assert facts[1] == ("✕ lost", "1 partition (p3): no other member holds a replica", "bad")
    assert facts[2] == ("! one copy", "3 partitions (p0, p1, p2)", "warning")


def test_the_dead_take_nothing_with_them_and_save_nothing() -> None:
    cluster = holding()
    cluster.happen("dev", ProcessKilled("n4"))
    assert told(cluster, "n4") == [("if now died", "n4", "strong"), ("✓ nothing", "they hold no replica", "good")]
    cluster = holding()
    cluster.happen("dev", ProcessKilled("n4"))
    assert ("✕ lost", "1 partition (p3): no other member holds a replica", "bad") in told(cluster, "n2")


def test_long_lists_are_cut_short() -> None:
    cluster = formed(FOUR)
    cluster.change_table("n1", 4, {partition: ["n1", ""] for partition in range(100)})
    ((_, _, _), (_, text, _)) = told(cluster, "n1")
    assert text.startswith("100 partitions (p0, p1,") and text.endswith(
        "p11 and 88 more): no other member holds a replica"
    )
