"""Traffic on a map of a running cluster, as much as somebody wants, so that there is something to move and to lose.

The operations are those of a workload in a scenario (`backend.simulation.scenarios.workload`), drawn from a seed. Whoever makes
the traffic calls `step` every now and then: what is due is asked for then, the puts of one member together. What a cluster does
not answer in time is not piled up: so many operations may be open, and the rest is left out and counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

from pydantic import ValidationError

from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.core.data.calls.operations import Answer, Operation, Put, PutAll
from quarterdeck.backend.picture.text.formatting import counted
from quarterdeck.backend.simulation.scenarios.actions import Load
from quarterdeck.backend.simulation.scenarios.workload import Workloads

MOST_OPEN = 5_000
"""Operations that are asked for and not answered."""

MOST_AT_ONCE = 2_000
"""Operations that one look asks for."""


class Traffic:
    """What `load` describes, on `cluster`, from `now_us` on. Call `step` some times a second."""

    def __init__(self, cluster: Cluster, load: Load, now_us: int, *, seed: int = 1) -> None:
        self._cluster, self.load = cluster, load
        self._workloads = Workloads(seed)
        self._workloads.begin(load, now_us)
        self._until_us = now_us + load.lasting_us
        self._ended: deque[tuple[int, str]] = deque()
        """How many operations ended at once, and their problem; written in whatever thread they end in."""
        self._open = 0
        self.done = 0
        self.failed = 0
        self.left_out = 0
        self.problem = ""
        """The last one."""

    def step(self, now_us: int) -> bool:
        """Ask for what is due, as far as the cluster keeps up; whether there is more to come."""
        self._count_ended()
        now_us = min(now_us, self._until_us)
        puts: dict[str, list[tuple[str, bytes]]] = {}
        taken = 0
        while taken < MOST_AT_ONCE and (planned := self._workloads.due(now_us)) is not None:
            taken += 1
            _, call = planned
            if self._open >= MOST_OPEN:
                self.left_out += 1
            elif isinstance(call.operation, Put):
                self._open += 1
                puts.setdefault(call.member, []).append((call.operation.key, call.operation.value))
            else:
                self._open += 1
                self._ask(call.member, call.operation, 1)
        for member, entries in puts.items():
            self._ask(member, PutAll(self.load.map, tuple(entries)), len(entries))
        return now_us < self._until_us

    @property
    def text(self) -> str:
        """What it is, and how it goes, in a few words."""
        load = self.load
        failed = f", {self.failed} failed" if self.failed else ""
        late = f", {self.left_out} left out" if self.left_out else ""
        return f"load {load.rate:g}/s{failed}{late}"

    @property
    def ending(self) -> str:
        """How it went, once it is over."""
        why = f" ({self.problem})" if self.problem else ""
        failed = f", {self.failed} failed{why}" if self.failed else ""
        late = f", {self.left_out} left out: the cluster did not keep up" if self.left_out else ""
        return f"the load is over: {counted(self.done, 'operation')} done{failed}{late}"

    def _ask(self, member: str, operation: Operation, count: int) -> None:
        self._cluster.call(member, operation).add_done_callback(partial(self._end, count))

    def _end(self, count: int, future: Future[Answer]) -> None:
        failure = future.exception() if not future.cancelled() else None
        problem = str(failure) if failure is not None else "" if future.cancelled() else future.result().problem
        self._ended.append((count, problem))

    def _count_ended(self) -> None:
        while self._ended:
            count, problem = self._ended.popleft()
            self._open -= count
            if problem:
                self.failed += count
                self.problem = problem
            else:
                self.done += count


WORDS = ("rate", "keys", "bytes", "skew", "reads", "map", "for")
"""What may be said of a load. The first may be given without its name."""

FIELDS = {"bytes": "value-bytes"}
"""What a word is called in a scenario, where that is something else."""

UNTIL_STOPPED = "24h"
MOST_KEYS = 10_000


def load_of(text: str, members: Sequence[str]) -> Load:
    """The load that `text` describes: ``500 keys=1000 bytes=200 skew=3 reads=0.2 map=orders for=30s``, through `members`.

    Raises ValueError, with a sentence for people.
    """
    said: dict[str, object] = {"rate": "100", "keys": str(MOST_KEYS), "bytes": "100", "for": UNTIL_STOPPED}
    for place, part in enumerate(text.split()):
        word, equals, value = part.partition("=")
        if not equals and place == 0:
            word, value = "rate", part
        if word not in WORDS or not value:
            raise ValueError(f"{part!r} is not understood; write {WORDS_USAGE}, or off")
        said[word] = value
    if not members:
        raise ValueError("no member runs that could be asked")
    try:
        return Load.model_validate({"at": list(members), **{FIELDS.get(word, word): one for word, one in said.items()}})
    except ValidationError as problem:
        first = problem.errors()[0]
        named = next((word for word, name in FIELDS.items() if name in first["loc"]), str(first["loc"][0]))
        raise ValueError(f"{named}: {first['msg'].removeprefix('Value error, ')}") from None


WORDS_USAGE = "RATE [keys=N] [bytes=N] [skew=N] [reads=0.5] [map=NAME] [for=30s]"
