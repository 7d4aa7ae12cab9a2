"""What waits in a simulated run comes in order, whether few days wait, which are opened at once, or many."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from quarterdeck.backend.simulation.virtual_time.calendar_queue import CalendarQueue

MOST_WAITING = 300


def arrivals(random_source: random.Random, now_us: int, orders: Iterable[int], most_us: int) -> list[Any]:
    return sorted((now_us + random_source.randint(0, most_us), order, None, None, None, None) for order in orders)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most_us", [100, 5_000, 400_000])
def test_what_is_put_in_comes_in_order_also_while_it_is_gone_through(seed: int, most_us: int) -> None:
    random_source, queue, order = random.Random(seed), CalendarQueue(), 0
    expected, seen = [], []
    for until_us in range(0, 8 * most_us, most_us // 3):
        orders = range(order + 1, order + 1 + random_source.randint(1, 20))
        order = orders[-1]
        batch = arrivals(random_source, until_us, orders, most_us)
        queue.put_all(batch)
        expected += batch
        while (opened := queue.open_days(until_us)) is not None:
            for arrival in opened:
                if arrival[0] > until_us:
                    queue.leave_days(arrival[0], arrival[1])
                    break
                seen.append(arrival)
                if order < MOST_WAITING and random_source.random() < 0.7:
                    (follower,) = arrivals(random_source, arrival[0], [order := order + 1], most_us)
                    queue.put(follower)
                    expected.append(follower)
            else:
                queue.close_days()
                continue
            break
        due = sorted(arrival for arrival in expected if arrival[0] <= until_us)
        assert seen == due
        assert list(queue) == sorted(arrival for arrival in expected if arrival[0] > until_us)
        assert len(queue) == len(expected) - len(seen)
