"""The fold of partition tables: whatever changes come, counts and rows are those of the whole table."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.partitions.events import Holder, TableChanged
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import TableBelief
from tests.app.fakes.fake_cluster import formed

HOLDERS = [Holder(Address(f"10.0.0.{place}:5701"), f"u{place}") for place in range(5)]
PARTITIONS = 6

ROW = st.lists(st.sampled_from([None, *HOLDERS]), min_size=3, max_size=3)
CHANGES = st.lists(st.dictionaries(st.integers(0, PARTITIONS - 1), ROW, min_size=1), max_size=8)


def change(version: int, rows: dict[int, list[Holder | None]]) -> TableChanged:
    holders = tuple(dict.fromkeys(holder for row in rows.values() for holder in row if holder))
    places = {None: -1, **{holder: place for place, holder in enumerate(holders)}}
    changed = tuple((partition, version, *(places[holder] for holder in row)) for partition, row in rows.items())
    return TableChanged(version, str(version), PARTITIONS, holders, changed, "u0", "published")


@given(CHANGES, st.sets(st.sampled_from(HOLDERS)), st.sets(st.sampled_from(HOLDERS)))
def test_rows_counts_and_losses_are_those_of_the_whole_table(
    changes: list[dict[int, list[Holder | None]]], ending: set[Holder], living: set[Holder]
) -> None:
    table = TableBelief()
    whole: dict[int, list[Holder | None]] = {}
    for version, rows in enumerate(changes, 1):
        table.take(change(version, rows), version)
        whole.update(rows)
    owned = Counter(row[0] for row in whole.values())
    backed_up = Counter(holder for row in whole.values() for holder in row[1:])
    for holder in HOLDERS:
        assert table.owned_by(holder.uuid) == owned[holder]
        assert table.backed_up_by(holder.uuid) == backed_up[holder]
    assert {partition: list(table.row(partition)) for partition in whole} == whole and len(table) == len(whole)
    left = living - ending
    hit = {partition: row for partition, row in whole.items() if ending & {*row}}
    loss = table.loss_without({holder.uuid for holder in ending}, {holder.uuid for holder in living})
    copies = {partition: sum(holder in left for holder in row) for partition, row in hit.items()}
    assert loss.lost == tuple(sorted(partition for partition, count in copies.items() if count == 0))
    assert loss.bared == tuple(sorted(partition for partition, count in copies.items() if count == 1))
    heirs = Counter(
        next(holder for holder in row if holder in left).uuid
        for partition, row in hit.items()
        if row[0] in ending and copies[partition]
    )
    assert loss.heirs == heirs


def test_a_change_costs_what_it_changes() -> None:
    table = TableBelief()
    first = tuple((partition, 1, partition % 3, 3) for partition in range(50_021))
    table.take(TableChanged(50_021, "d", 50_021, tuple(HOLDERS), first, "u0", "arranged"), 0)

    class Watched(dict[int, tuple[int, ...]]):
        touched = 0

        def __setitem__(self, key: int, value: tuple[int, ...]) -> None:
            Watched.touched += 1
            super().__setitem__(key, value)

    table._rows = Watched(table._rows)
    table.take(change(2, {17: [HOLDERS[4], None, HOLDERS[0]]}), 1)
    assert Watched.touched == 1 and table.row(17)[0] == HOLDERS[4] and table.owned_by("u4") == 1


def test_what_was_never_told_of_is_nobodys() -> None:
    table = TableBelief()
    assert table.row(3) == () and table.owned_by("u0") == 0


def test_a_new_life_has_no_table_and_stragglers_of_the_old_one_do_not_give_it_one() -> None:
    cluster = formed(("n1", "n2"))
    cluster.change_table("n2", 3, {0: ["n1", "n2"]})
    picture = Picture()
    for record in cluster.drain():
        picture.apply(record)
    table = picture.members["n2"].table
    assert table is not None and (table.version, table.cause, table.since_us) == (3, "published", picture.at)
    cluster.start("n2", life=2)
    cluster.change_table("n2", 4, {0: ["n2", "n1"]})  # of life 1, late
    for record in cluster.drain():
        picture.apply(record)
    assert picture.members["n2"].table is None
