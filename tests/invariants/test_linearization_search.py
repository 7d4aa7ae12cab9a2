"""The search for an order of the operations on one key, against all orders tried one after another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from quarterdeck.backend.invariants.data.linearization_search import (
    EMPTY,
    UNKNOWN,
    KnownOperation,
    RegisterState,
    SearchGivenUp,
    UncertainWrite,
    states_after,
)

VALUES = st.sampled_from([None, "one", "two"])


def is_linearizable_by_all_orders(
    operations: Sequence[KnownOperation], uncertain: Sequence[UncertainWrite], first: str | None
) -> bool:
    """Try every order of the operations and of every choice of the uncertain writes."""
    every = [*operations, *uncertain]
    for chosen in range(1 << len(uncertain)):
        done = [*range(len(operations)), *(len(operations) + n for n in range(len(uncertain)) if chosen >> n & 1)]
        if any(_fits([every[place] for place in order], first) for order in permutations(done)):
            return True
    return False


def _fits(order: Sequence[KnownOperation | UncertainWrite], value: str | None) -> bool:
    for place, one in enumerate(order):
        later = [other for other in order[place + 1 :] if isinstance(other, KnownOperation)]
        if any(other.ended < one.began for other in later):
            return False
        if isinstance(one, UncertainWrite):
            value = one.value
        elif one.found != value:
            return False
        elif one.writes:
            value = one.value
    return True


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[KnownOperation], list[UncertainWrite]]:
    """Draw up to four operations and two uncertain writes, with times that are all different."""
    known, unknown = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    times = draw(st.permutations(range(2 * known + unknown)))
    operations = []
    for number in range(known):
        began, ended = sorted(times[2 * number : 2 * number + 2])
        writes = draw(st.booleans())
        operations.append(KnownOperation(began, ended, draw(VALUES), writes, draw(VALUES) if writes else None))
    return operations, [UncertainWrite(times[2 * known + number], draw(VALUES)) for number in range(unknown)]


@settings(max_examples=300, deadline=None)
@given(history=histories(), first=VALUES)
def test_it_finds_an_order_where_there_is_one(
    history: tuple[list[KnownOperation], list[UncertainWrite]], first: str | None
) -> None:
    found = bool(states_after(*history, {RegisterState(first)}))
    assert found == is_linearizable_by_all_orders(*history, first)


@settings(max_examples=100, deadline=None)
@given(history=histories())
def test_a_register_of_which_nothing_is_known_may_hold_any_one_value(
    history: tuple[list[KnownOperation], list[UncertainWrite]],
) -> None:
    found = bool(states_after(*history, UNKNOWN))
    assert found == any(is_linearizable_by_all_orders(*history, first) for first in (None, "one", "two"))


@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(histories(), min_size=2, max_size=2))
def test_a_history_judged_in_pieces_is_judged_as_a_whole(
    pieces: list[tuple[list[KnownOperation], list[UncertainWrite]]],
) -> None:
    """Operations of one piece end before those of the next begin; an uncertain write may be done in a later piece."""
    (first, loose), (second, looser) = pieces[0], pieces[1]
    second = [structs.replace(known, began=known.began + 100, ended=known.ended + 100) for known in second]
    looser = [*loose, *(structs.replace(write, began=write.began + 100) for write in looser)]
    after = states_after(second, looser, states_after(first, loose, EMPTY))
    assert bool(after) == bool(states_after([*first, *second], looser, EMPTY))


def test_a_write_is_seen_once_it_was_answered_and_never_undone() -> None:
    put = KnownOperation(1, 2, None, True, "one")
    assert states_after([put, KnownOperation(3, 4, "one", False)], (), EMPTY) == {RegisterState("one")}
    assert not states_after([put, KnownOperation(3, 4, None, False)], (), EMPTY)
    assert states_after([put, KnownOperation(1.5, 4, None, False)], (), EMPTY)


def test_an_uncertain_write_is_done_once_at_most() -> None:
    uncertain = (UncertainWrite(1, "one"),)
    over = KnownOperation(2, 3, "one", True, "two")
    assert states_after([over], uncertain, EMPTY) == {RegisterState("two", 1)}
    again = KnownOperation(4, 5, "one", False)
    assert not states_after([again], uncertain, states_after([over], uncertain, EMPTY))


def test_a_search_that_grows_too_far_is_given_up() -> None:
    """Puts that overlap and write back what others found can be done in many orders."""
    overlapping = [
        KnownOperation(number, 100 + number, "one" if number % 2 else None, True, None if number % 2 else "one")
        for number in range(20)
    ]
    with pytest.raises(SearchGivenUp):
        states_after(overlapping, (), EMPTY, most=100)


def test_writes_of_the_same_value_are_not_told_apart() -> None:
    """Forty evictions that may have been done, each found by the put after it: one state, not one for each choice of them."""
    uncertain = [UncertainWrite(float(number), None) for number in range(40)]
    states = EMPTY
    for number in range(40):
        began = 100.0 + 2 * number
        states = states_after([KnownOperation(began, began + 1, None, True, f"v{number}")], uncertain, states)
        assert len(states) == 1
    assert not states_after([KnownOperation(300.0, 301.0, None, True, "more")], uncertain[:39], states)
