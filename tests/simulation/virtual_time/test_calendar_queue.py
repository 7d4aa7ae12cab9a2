"""The queue of a simulated run gives out what a sorted list would, with days of either length."""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.simulation.virtual_time.calendar_queue import FEW_SENDERS, CalendarQueue
from quarterdeck.backend.simulation.virtual_time.node import Arrival


def arrival(at_us: int, order: int) -> Arrival:
    return cast(Arrival, (at_us, order))


@given(
    st.sampled_from([1, FEW_SENDERS + 1]),
    st.lists(st.lists(st.integers(0, 100_000), min_size=1, max_size=5), min_size=1, max_size=20),
    st.lists(st.integers(0, 200_000)),
)
def test_it_is_gone_through_in_order_with_what_comes_meanwhile(
    senders: int, delays_us: list[list[int]], stops_us: list[int]
) -> None:
    """Each arrival that happens sends the next few, some of them for the same day; now and then the run stops within one."""
    queue = CalendarQueue(senders)
    sent, happened, expected = 1, list[Arrival](), [arrival(0, 0)]
    queue.put(expected[0])
    for until_us in (*sorted(stops_us), 10_000_000):
        while (day := queue.open_day(until_us)) is not None:
            for at_us, order, *_ in day:
                if at_us > until_us:
                    queue.leave_day(at_us, order)
                    break
                happened.append(arrival(at_us, order))
                if delays_us:
                    sending = [
                        arrival(at_us + delay, sent + place) for place, delay in enumerate(sorted(delays_us.pop()))
                    ]
                    sent += len(sending)
                    expected += sending
                    if len(sending) == 1:
                        queue.put(sending[0])
                    else:
                        queue.put_all(sending)
            else:
                queue.close_day()
                continue
            break
        assert [*happened, *queue] == sorted(expected) and len(queue) == len(expected) - len(happened)
    assert happened == sorted(expected)
