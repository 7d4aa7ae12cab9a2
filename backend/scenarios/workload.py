"""A workload on a map: the requests, their members and times, drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import chain, tee
from random import Random

from quarterdeck.backend.core.commands import CallMap
from quarterdeck.backend.core.operations import Get, Put, Remove
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.scenarios.format.actions import LoadAction

PlannedCall = tuple[int, CallMap]
"""When a call is due on the run's clock, in microseconds, and the call."""


def planned_calls(load: LoadAction, began_us: int, name: str, seed: int) -> Iterator[PlannedCall]:
    """Yield the calls of a workload that began at `began_us`, in order of time. `name` stands in every value that is put."""
    calls, again = tee(_drawn_calls(load, began_us, name, seed))
    return merge(calls, _read_back(load, again), key=_when) if load.read_back_us else calls


def _read_back(load: LoadAction, calls: Iterator[PlannedCall]) -> Iterator[PlannedCall]:
    for at_us, call in calls:
        operation = call.operation
        if isinstance(operation, Put | Remove):
            yield at_us + load.read_back_us, CallMap(call.member, Get(load.map, operation.key))


def _drawn_calls(load: LoadAction, began_us: int, name: str, seed: int) -> Iterator[PlannedCall]:
    draws = Random(f"{seed}/load {name}")
    interval_us = SECOND_US / load.rate
    for number in range(int(load.lasting_us / interval_us)):
        key = f"k{draws.randrange(load.keys) if not load.skew else int(load.keys * draws.random() ** (1 + load.skew))}"
        member = draws.choice(load.at)
        kind = draws.random()
        if kind < load.reads:
            yield began_us + int(number * interval_us), CallMap(member, Get(load.map, key))
        elif kind < load.reads + load.removes:
            yield began_us + int(number * interval_us), CallMap(member, Remove(load.map, key))
        else:
            value = f"{name}.{number}".ljust(load.value_bytes, ".").encode()
            yield began_us + int(number * interval_us), CallMap(member, Put(load.map, key, value))


class Workloads:
    """The calls of all workloads that go on beside the steps of a scenario."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._planned: Iterator[PlannedCall] = iter(())
        self._next: PlannedCall | None = None
        self._begun = 0

    def begin(self, load: LoadAction, now_us: int) -> None:
        self._begun += 1
        calls = planned_calls(load, now_us, f"w{self._begun}", self._seed)
        going_on = self._planned if self._next is None else chain((self._next,), self._planned)
        self._planned = merge(going_on, calls, key=_when)
        self._next = next(self._planned, None)

    def due(self, until_us: int) -> PlannedCall | None:
        """Remove and return the next call if it is due by `until_us`."""
        found = self._next
        if found is None or found[0] > until_us:
            return None
        self._next = next(self._planned, None)
        return found


def _when(planned: PlannedCall) -> int:
    return planned[0]
