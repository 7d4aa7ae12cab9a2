"""What a migration costs does not depend on how many partitions there are (Avoid Data Loss on Migration, 1.1: only the master
changes the table).

Counts stand for time here, which no test can rely on; ``tests/bench/migration_cost.py`` measures it.
"""

import pytest

from tests.bench.migration_cost import MigrationCost, rebalance

FEW, MANY = 271, 1_000
ROWS_A_MIGRATION = 6
"""Two followers and the newcomer, which gets the whole table first: two rows for each partition that is moved."""
ROWS_IF_LOST = 8
"""A follower whose acknowledgements are lost is told everything a few times more, each time after twice as long."""


@pytest.fixture(scope="module", params=[False, True], ids=["all arrive", "acknowledgements lost"])
def costs(request: pytest.FixtureRequest) -> tuple[bool, MigrationCost, MigrationCost]:
    lost = bool(request.param)
    return lost, rebalance(FEW, loses_acknowledgements=lost), rebalance(MANY, loses_acknowledgements=lost)


def test_publications_grow_with_what_is_moved_and_with_nothing_else(
    costs: tuple[bool, MigrationCost, MigrationCost],
) -> None:
    lost, few, many = costs
    assert few.migrations >= FEW // 3 and many.migrations >= MANY // 3
    for cost in (few, many):
        assert cost.rows <= (ROWS_IF_LOST if lost else ROWS_A_MIGRATION) * cost.migrations
    assert many.publication_bytes / MANY <= 1.1 * few.publication_bytes / FEW


def test_without_losses_no_publication_grows_with_the_table(costs: tuple[bool, MigrationCost, MigrationCost]) -> None:
    lost, few, many = costs
    if not lost:
        assert many.largest_bytes <= 1.5 * few.largest_bytes
