"""The partition table: versions, digests, and rows as they cross the wire (Avoid Data Loss on Migration, 1)."""

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.address import make_address
from quarterdeck.backend.core.partitions.table.partition_table import (
    Replica,
    VersionedRow,
    empty_table,
    index_of,
    packed,
    unpacked,
)
from tests.core.stepped_partitions import table_of

PARTITIONS, WIDTH = 6, 3
LIVES = [Replica(make_address("10.0.0.1", port), f"life {port}") for port in range(5701, 5706)]

replicas = st.tuples(*[st.sampled_from([None, *LIVES])] * WIDTH)
rows = st.builds(VersionedRow, st.integers(0, PARTITIONS - 1), st.integers(1, 9), replicas)


def test_a_new_table_has_nobody_anywhere_at_version_0() -> None:
    table = empty_table(PARTITIONS, WIDTH)
    assert (table.version, table.digest, len(table)) == (0, 0, PARTITIONS)
    assert table.rows == [(None,) * WIDTH] * PARTITIONS
    assert not list(table.all_rows()) and not table.holders()


@given(st.lists(rows))
def test_the_version_of_the_table_is_the_sum_of_those_of_its_partitions(changes: list[VersionedRow]) -> None:
    table = table_of(changes, PARTITIONS, WIDTH)
    assert table.version == sum(table.versions)


@given(st.lists(rows), st.randoms(use_true_random=False))
def test_the_digest_tells_what_a_table_is_and_not_how_it_came_about(changes: list[VersionedRow], order: object) -> None:
    table = table_of(changes, PARTITIONS, WIDTH)
    again = list(table.all_rows())
    order.shuffle(again)  # type: ignore[attr-defined]
    assert table_of(again, PARTITIONS, WIDTH).digest == table.digest


@given(st.lists(rows, min_size=1), st.integers(0, PARTITIONS - 1))
def test_a_row_that_differs_or_has_another_version_changes_the_digest(changes: list[VersionedRow], one: int) -> None:
    table = table_of(changes, PARTITIONS, WIDTH)
    row, digest = table.row(one), table.digest
    table.put(VersionedRow(one, row.version + 1, row.replicas))
    assert table.digest != digest
    digest = table.digest
    table.put(VersionedRow(one, row.version + 1, (*row.replicas[:-1], LIVES[0] if row.replicas[-1] is None else None)))
    assert table.digest != digest


@given(st.lists(rows))
def test_rows_come_out_of_their_package_as_they_went_in(changes: list[VersionedRow]) -> None:
    assert unpacked(packed(changes)) == changes
    assert len(packed(changes).holders) == len({replica for row in changes for replica in row.replicas} - {None})


def test_another_life_at_the_same_address_holds_nothing() -> None:
    row = (LIVES[0], None, LIVES[1])
    assert index_of(LIVES[1].uuid, row) == 2
    assert index_of("a later incarnation at that address", row) == -1
