"""Whether operations on one key can have been done one by one, each between its beginning and its end, as their answers say.

It is the search of Wing and Gong with Lowe's memory of the states that were tried, as in Porcupine, for a register: a write
answers what was there before. A write whose answer is not known may have been done once, at any time after it began, or never.
The search goes on from the states that earlier operations may have left, so a long history is judged piece by piece, wherever
nothing is under way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import cast

from msgspec import Struct

ANYTHING = object()
"""The value of a register of which nothing is known."""

MOST_STATES = 2_000
"""The number of states after which the search is given up."""


class KnownOperation(Struct, frozen=True, order=True):
    """An operation with its answer. Times only order the end of one operation before the beginning of another."""

    began: float
    ended: float
    found: str | None
    """The value that the operation read or replaced; None where the register was empty."""
    writes: bool
    value: str | None = None
    """The value that a write leaves; None for a remove."""


class UncertainWrite(Struct, frozen=True):
    """A write that may have been done once since it began, or never."""

    began: float
    value: str | None


class RegisterState(Struct, frozen=True):
    """A possible value of a register, and the uncertain writes that were done for it: a bit for each write, by its place."""

    value: object
    """A text, None for nothing, or `ANYTHING`."""
    done: int = 0


UNKNOWN = frozenset((RegisterState(ANYTHING),))
EMPTY = frozenset((RegisterState(None),))


class SearchGivenUp(Exception):
    """Too many states would have to be tried."""


def states_after(
    operations: Sequence[KnownOperation],
    uncertain: Sequence[UncertainWrite],
    before: Collection[RegisterState],
    most: int = MOST_STATES,
) -> frozenset[RegisterState]:
    """Return the states that the register may have after all `operations`; none when they are not linearizable.

    Nothing else may be under way before the first of them and after the last. `uncertain` may grow between calls at its end.

    Raises:
        SearchGivenUp: After `most` states.
    """
    if len(operations) == 1:
        found = [_after(operations[0], operations[0].ended, state, uncertain) for state in before]
        return frozenset([after for after in found if after is not None])
    ordered = sorted(operations)
    everything = (1 << len(ordered)) - 1
    tried = {(0, state) for state in before}
    to_try = list(tried)
    ends: set[RegisterState] = set()
    while to_try:
        placed, state = to_try.pop()
        if placed == everything:
            ends.add(state)
            continue
        possible = list(_next_operations(ordered, placed))
        # What leaves the register as it is may come at once: nothing later gets harder by that.
        at_once = [place for place in possible if _changes_nothing(ordered[place], state)]
        until = min(ordered[place].ended for place in possible)
        for place in at_once[:1] or possible:
            after = _after(ordered[place], until, state, uncertain)
            if after is not None and (step := (placed | 1 << place, after)) not in tried:
                if len(tried) >= most:
                    raise SearchGivenUp
                tried.add(step)
                to_try.append(step)
    return frozenset(ends)


def _next_operations(ordered: Sequence[KnownOperation], placed: int) -> Iterator[int]:
    """Yield the places of the operations that may come next: they began before any other remaining operation ended."""
    place = (~placed & (placed + 1)).bit_length() - 1
    first_end = ordered[place].ended
    while place < len(ordered) and ordered[place].began < first_end:
        if not placed >> place & 1:
            first_end = min(first_end, ordered[place].ended)
            yield place
        place += 1


def _changes_nothing(operation: KnownOperation, state: RegisterState) -> bool:
    return operation.found == state.value and (not operation.writes or operation.value == operation.found)


def _after(
    operation: KnownOperation, until: float, state: RegisterState, uncertain: Sequence[UncertainWrite]
) -> RegisterState | None:
    """Return the state after the operation: at once if it found what is there, else after an uncertain write of what it found.

    None where it cannot be. Uncertain writes that nothing finds change nothing, so no others need be tried. `until`: when
    something has ended that is not done yet, before which such a write must have begun. It never gets less, so of those that
    wrote the same (removes and evictions do), one is as good as another, also later: the first is tried.
    """
    value = operation.value if operation.writes else operation.found
    if state.value is ANYTHING or state.value == operation.found:
        return RegisterState(value, state.done)
    for place, write in enumerate(uncertain):
        if write.value == operation.found and not state.done >> place & 1 and write.began < until:
            return RegisterState(value, state.done | 1 << place)
    return None


def values_of(states: Collection[RegisterState]) -> list[str | None]:
    """Return the possible values of the register, in a stable order; no value when any value is possible."""
    known = {cast("str | None", state.value) for state in states if state.value is not ANYTHING}
    return sorted(known, key=lambda value: (value is not None, value or ""))
