"""The replica map: letters and marks of every replica, what is wrong in the table, and which partitions a reader asks for."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.boards.replicas.replica_map import SIGNS, ReplicaMap, ReplicaState
from quarterdeck.backend.boards.replicas.replica_text import (
    COUNTED_A_TIME,
    FILTER_WORDS,
    BadFilter,
    ReplicaCensus,
    census_facts,
    holder_row,
    holders,
    map_facts,
    partition_sentence,
)
from quarterdeck.backend.core.data.events import BackupOutOfStep
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.partitions.events import PlannedMigration, TableChanged
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import letter_of
from tests.app.fakes.fake_cluster import FakeCluster, fold

FOUR = ("n1", "n2", "n3", "n4")


def formed() -> FakeCluster:
    cluster = FakeCluster(FOUR)
    cluster.form()
    rows = {0: ["n1", "n2", "n3"], 1: ["n2", "n3", "n4"], 2: ["n3", "n4", ""], 3: ["n4", "", ""], 4: ["", "", ""]}
    for label in ("n1", "n2"):
        cluster.change_table(label, 5, rows, "arranged")
    return cluster


def looks(shown: ReplicaMap, partition: int) -> str:
    return " ".join(f"{cell.letter}{SIGNS[cell.state].mark}" for cell in shown.column(partition))


def states_of(shown: ReplicaMap, partition: int) -> set[ReplicaState]:
    return {cell.state for cell in shown.column(partition)}


def follow(picture: Picture, observer: str = "") -> tuple[ReplicaMap, ReplicaCensus]:
    shown = ReplicaMap()
    census = ReplicaCensus(shown)
    shown.follow(picture, observer)
    census.count()
    return shown, census


def test_letters_never_run_out() -> None:
    assert [letter_of(place) for place in (0, 25, 26, 51, 52, 53, 52 + 52, 52 + 52 * 52)] == [
        *("A", "Z", "a", "z", "AA", "AB", "BA", "AAA"),
    ]
    assert len({letter_of(place) for place in range(5_000)}) == 5_000


def test_every_state_has_a_sign_of_its_own() -> None:
    assert SIGNS.keys() == set(get_args(ReplicaState)) == {"held", "vacant", *FILTER_WORDS.values()}
    assert len({sign.mark for sign in SIGNS.values()}) == len({sign.meaning for sign in SIGNS.values()}) == len(SIGNS)


def test_holders_gaps_and_single_copies() -> None:
    shown, census = follow(fold(formed()))
    assert (shown.observer, shown.master, shown.width, shown.partitions) == ("n1", "", 3, 271)
    assert [looks(shown, partition) for partition in range(5)] == ["A B C", "B C D", "C D ∅", "D! ∅ ∅", "∅ ∅ ∅"]
    assert census.partitions["single"] == {3} and {2, 3, 4} < census.partitions["gap"]
    assert not census.partitions["gone"]


def test_replicas_on_members_that_are_gone_suspected_or_frozen() -> None:
    cluster = formed()
    cluster.happen("dev", ProcessKilled("n3"))
    cluster.suspect("n2", "n4")
    cluster.happen("dev", ProcessPaused("n2"))  # suspicions of the frozen do not count, and nothing on it is sure
    shown, census = follow(fold(cluster))
    assert looks(shown, 0) == "A B? C✕" and looks(shown, 1) == "B? C✕ D"
    assert looks(shown, 2) == "C✕ D! ∅"  # one is left of two
    assert census.partitions["gone"] == {0, 1, 2} and census.partitions["single"] == {2, 3}
    cluster = formed()
    cluster.suspect("n3", "n4")
    cluster.start("n2", life=2)
    shown, _ = follow(fold(cluster))
    assert looks(shown, 1) == "B✕ C D?"  # another life of n2 holds nothing


def test_fewer_members_than_replicas_is_nobodys_fault() -> None:
    cluster = FakeCluster(("n1", "n2"))
    cluster.form()
    cluster.change_table("n1", 1, {0: ["n1", "n2", ""]})
    shown, census = follow(fold(cluster))
    assert looks(shown, 0) == "A B ·" and 0 not in census.partitions["gap"]


def test_what_migrates_stands_out_where_it_arrives() -> None:
    cluster = formed()
    cluster.begin("n1", "m1", 2, "", "n1", index=2)
    cluster.begin("n1", "m2", 0, "n1", "n4")
    picture = fold(cluster)
    shown, census = follow(picture)
    assert looks(shown, 2) == "C D A▶" and looks(shown, 0) == "A▶ B C" and census.partitions["migrating"] == {0, 2}
    cluster.happen("n1", partition_events.MigrationDecided("m1", 2, False, 5, "n1 refused"))
    shown.follow(fold(cluster, picture))
    census.count()
    assert looks(shown, 2) == "C D ∅" and census.partitions["migrating"] == {0}


def test_a_backup_out_of_step() -> None:
    cluster = formed()
    cluster.happen("n2", BackupOutOfStep(0, cluster.address("n1"), "a write is missing"))
    shown, census = follow(fold(cluster))
    assert looks(shown, 0) == "A B~ C" and census.partitions["behind"] == {0}


def test_a_table_that_is_not_the_masters() -> None:
    cluster = formed()
    cluster.change_table("n1", 6, {0: ["n2", "n1", "n3"]}, "migration")
    picture = fold(cluster)
    shown, census = follow(picture, "n2")
    assert (shown.observer, shown.master) == ("n2", "n1")
    assert looks(shown, 0) == "A≠ B≠ C" and looks(shown, 1) == "B C D" and census.partitions["differs"] == {0}
    assert partition_sentence(picture, shown, 0, 0, picture.at).endswith("; ≠ n1 has v1: n2, n1, n3")
    shown.follow(picture, "n1")
    census.count()
    assert not census.partitions["differs"]
    shown.follow(picture, "n3")
    assert (shown.partitions, shown.width) == (0, 0)
    census.count()
    assert [fact.text for fact in map_facts(picture, shown, 0)] == [
        "n3 has no table; they are arranged at the first use of data, or when asked for"
    ]


def test_the_same_table_with_other_numbers_for_its_holders_does_not_differ() -> None:
    cluster = formed()
    turned = TableChanged(
        7,
        "other",
        271,
        tuple(cluster.holder(label) for label in ("n4", "n3", "n2", "n1")),
        ((0, 1, 3, 2, 1),),
        "a",
        "published",
    )
    cluster.start("n3", life=1)
    cluster.happen("n3", turned)
    cluster.install("n3", 4, FOUR)
    shown, census = follow(fold(cluster), "n3")
    assert shown.other_rows is not None and looks(shown, 0) == "A B C" and 0 not in census.partitions["differs"]
    assert {1, 2, 3} <= census.partitions["differs"]


def test_columns_are_the_same_objects_until_they_change() -> None:
    cluster = formed()
    picture = fold(cluster)
    shown, _ = follow(picture)
    before, revision = [shown.column(number) for number in range(5)], shown.revision
    shown.follow(picture.copy())
    assert shown.revision == revision
    assert all(one is other for one, other in zip(before, map(shown.column, range(5)), strict=True))
    cluster.change_table("n1", 6, {1: ["n3", "n2", "n4"]}, "migration")
    shown.follow(fold(cluster, picture))
    assert shown.revision != revision
    assert [one is other for one, other in zip(before, map(shown.column, range(5)), strict=True)] == [
        *(True, False, True, True, True)
    ]


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("row"), st.integers(0, 5), st.lists(st.sampled_from(["", *FOUR]), min_size=3, max_size=3)),
        st.tuples(st.just("kill"), st.sampled_from(FOUR[1:]), st.none()),
        st.tuples(st.just("suspect"), st.sampled_from(FOUR[1:]), st.none()),
        st.tuples(st.just("pause"), st.sampled_from(FOUR[1:]), st.none()),
        st.tuples(st.just("other"), st.integers(0, 5), st.lists(st.sampled_from(["", *FOUR]), min_size=3, max_size=3)),
    ),
    max_size=12,
)


@given(CHANGES, st.sampled_from(["", "n1", "n2"]))
def test_what_is_counted_step_by_step_is_what_the_columns_show(
    changes: list[tuple[str, object, object]], who: str
) -> None:
    cluster = formed()
    picture = fold(cluster)
    shown, census = follow(picture, who)
    for version, (kind, one, row) in enumerate(changes, 10):
        match kind:
            case "row":
                cluster.change_table("n1", version, {one: row}, "migration")  # type: ignore[dict-item]
            case "other":
                cluster.change_table("n2", version, {one: row}, "migration")  # type: ignore[dict-item]
            case "kill":
                cluster.happen("dev", ProcessKilled(str(one)))
            case "pause":
                cluster.happen("dev", ProcessPaused(str(one)))
            case _:
                cluster.suspect("n1", str(one))
        shown.follow(fold(cluster, picture), who)
        census.count()
        assert not census.counting
        fresh, again = follow(picture, who)
        assert census.partitions == again.partitions
        for partition in range(8):
            assert shown.column(partition) == fresh.column(partition)
            states = states_of(shown, partition)
            for state in ("gap", "differs", "migrating"):
                assert (partition in census.partitions[state]) >= (state in states)  # a graver mark may hide one
            for state in ("gone", "single", "doubtful", "behind"):
                if state in states:
                    assert partition in census.partitions[state]


def test_a_great_table_is_counted_a_part_at_a_time() -> None:
    cluster = FakeCluster(FOUR)
    cluster.form()
    count = 2 * COUNTED_A_TIME + 7
    names = tuple(cluster.holder(label) for label in FOUR)
    rows = tuple(
        (partition, 1, partition % 4, -1 if partition % 1000 == 0 else (partition + 1) % 4)
        for partition in range(count)
    )
    cluster.happen("n1", TableChanged(count, "d", count, names, rows, "n1-life-1", "arranged"))
    _, census = follow(fold(cluster))
    steps = 1
    while census.counting:
        census.count()
        steps += 1
    assert steps == 3 and len(census.partitions["gap"]) == -(-count // 1000)


def test_what_a_reader_may_ask_for() -> None:
    cluster = formed()
    cluster.happen("dev", ProcessKilled("n3"))
    picture = fold(cluster)
    _, census = follow(picture)

    def found(text: str) -> list[int]:
        return list(census.found(picture, text))

    assert found("") == list(range(271)) and found(" gaps ")[:3] == [2, 3, 4] and found("gap")[:3] == [2, 3, 4]
    assert found("single") == [2, 3] and found("gone") == [0, 1, 2] and found("moving") == []
    assert (
        found("p12") == [12]
        and found("3") == [3]
        and found("p2-p4") == found("2..4") == [2, 3, 4]
        and found("p999") == []
    )
    assert found("member n3") == [0, 1, 2] and found("member N3") == [0, 1, 2]
    for bad, hint in (
        ("gapsy", "use gaps"),
        ("member", "use one of"),
        ("member n", "several members"),
        ("member x", "no member"),
    ):
        with pytest.raises(BadFilter, match=hint):
            census.found(picture, bad)


def test_a_partition_in_words() -> None:
    cluster = formed()
    move = PlannedMigration(2, "MOVE", cluster.address("n3"), cluster.address("n2"), 0)
    cluster.happen("n1", partition_events.MigrationsPlanned((move,), 1, 1, "n4 joined"))
    cluster.begin("n1", "m1", 0, "n1", "n4")
    picture = fold(cluster)
    shown, _ = follow(picture)
    assert partition_sentence(picture, shown, 2, 1, picture.at) == (
        "p2 v1: backup 1 n4, owner n3, backup 2 none (∅ empty, though a member could take it); 1 migration planned"
    )
    assert partition_sentence(picture, shown, 0, 0, picture.at + 2_000_000) == (
        "p0 v1: owner n1 (▶ a member gets it by a migration), backup 1 n2, backup 2 n3; "
        "▶ MOVE: n4 becomes owner in place of n1, copying for 2 s"
    )


def test_the_map_the_census_and_the_members_in_words() -> None:
    cluster = formed()
    cluster.change_table("n1", 6, {0: ["n2", "n1", "n3"]}, "migration")
    cluster.happen("dev", ProcessKilled("n4"))
    picture = fold(cluster)
    shown, census = follow(picture)
    assert [fact.text for fact in map_facts(picture, shown, picture.at)] == [
        *("table of n1 (master)", "v6, digest 00000000, 0 s old", "271 partitions, 3 replicas each"),
    ]
    assert [fact.text for fact in census_facts(census)] == ["∅ 269 gaps", "✕ 3 gone", "! 1 single"]
    assert list(holders(picture, shown)) == ["n1", "n2", "n3", "n4"]  # n4 is gone, but holds replicas
    row = holder_row(picture, shown, "n2", 1, picture.at)
    assert (row.letter, row.owned, row.backups, row.table, row.differs) == ("B", 2, 0, "≠ v5", True)
    assert holder_row(picture, shown, "n4", 3, picture.at).state == "killed"
    cluster = FakeCluster(FOUR)
    cluster.form()
    cluster.change_table("n1", 1, {partition: ["n1", "n2"] for partition in range(271)})
    _, census = follow(fold(cluster))
    assert [fact.text for fact in census_facts(census)] == ["✓ every replica is where it belongs"]


def test_nothing_steers_a_terminal() -> None:
    cluster = FakeCluster(("n\x1b[2J1", "n2"))
    cluster.form()
    cluster.change_table("n\x1b[2J1", 1, {0: ["n\x1b[2J1", "n2"]})
    cluster.happen("n\x1b[2J1", events.MasterChanged(cluster.address("n2"), "\x1b"))
    picture = fold(cluster)
    shown, _ = follow(picture, "n\x1b[2J1")
    assert partition_sentence(picture, shown, 0, 0, 0).isprintable()
    assert all(fact.text.isprintable() for fact in map_facts(picture, shown, 0))
    assert holder_row(picture, shown, "n\x1b[2J1", 0, 0).name.isprintable()
