"""Records that come a moment late are put where they belong."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.picture.replay.tape import ReorderBuffer


def record(at: int, seq: int) -> Record:
    return Record("run", "n1", "life", seq, at, at, ProcessKilled("n1"))


@given(st.lists(st.lists(st.integers(0, 50))))
def test_nothing_is_lost_and_a_turn_is_waited_for(batches: list[list[int]]) -> None:
    order = ReorderBuffer(1_000)
    shown: list[Record] = []
    seq = 0
    for batch in batches:
        fresh = []
        for at in batch:
            seq += 1
            fresh.append(record(at, seq))
        order.take(fresh)
        turned = list(order.release())
        assert turned == sorted(turned, key=lambda one: one.at)
        shown += turned
    shown += order.release()
    shown += order.release()
    assert sorted(record.seq for record in shown) == list(range(1, seq + 1))


def test_one_that_was_overtaken_by_the_batch_before_comes_first() -> None:
    order = ReorderBuffer(10)
    order.take([record(10, 1)])
    assert not order.release()
    order.take([record(9, 2), record(11, 3)])
    assert [record.seq for record in order.release()] == [2, 1]
    assert [record.seq for record in order.release()] == [3]


def test_what_nobody_asks_for_is_dropped_from_its_beginning() -> None:
    order = ReorderBuffer(10)
    for seq in range(100):
        order.take([record(seq, seq)])
    order.release()
    kept = [record.seq for record in order.release()]
    assert len(kept) <= 20 and kept[-1] == 99
