"""Traffic on a map of a running cluster, at a chosen rate, so that migrations move entries and faults can lose some.

The operations are those of a workload in a scenario (`backend.scenarios.workload`), drawn from a seed. The caller that makes
the traffic calls `step` every now and then: what is due is asked for then, the puts of one member together. What a cluster does
not answer in time is not piled up: so many operations may be open, and the rest is left out and counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial

from pydantic import ValidationError

from quarterdeck.backend.clusters.cluster import Cluster, ConnectionStatusSource
from quarterdeck.backend.core.operations import Answer, Operation, Put, PutAll
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.documents.validation import message_of
from quarterdeck.backend.picture.text.formatting import counted
from quarterdeck.backend.scenarios.format.actions import LoadAction
from quarterdeck.backend.scenarios.workload import Workloads

MOST_OPEN = 5_000
"""Operations that are asked for and not answered."""

MOST_OPEN_REMOTE = 200
"""The same where each read is a request over HTTP."""

MOST_AT_ONCE = 2_000
"""Operations that one step asks for."""

LAST_ANSWERS_US = 5 * SECOND_US
"""How long answers are waited for when nothing more is asked."""


class Traffic:
    """The traffic that `load` describes, on `cluster`, from `now_us` on. Call `step` some times a second."""

    def __init__(self, cluster: Cluster, load: LoadAction, now_us: int, *, seed: int = 1) -> None:
        self._cluster, self.load = cluster, load
        self.began_us = now_us
        self._workloads = Workloads(seed)
        self._workloads.begin(load, now_us)
        self._until_us = now_us + load.lasting_us
        self._ended: deque[tuple[int, str]] = deque()
        """The number of operations that ended at once, and their problem; written in whatever thread they end in."""
        self._asked = 0
        self._most_open = MOST_OPEN_REMOTE if isinstance(cluster, ConnectionStatusSource) else MOST_OPEN
        self.over = False
        """Whether nothing more is asked and no answer is waited for."""
        self.done = self.failed = self.left_out = self.unanswered = 0
        self.problem = ""
        """The last one."""

    def step(self, now_us: int, running: Sequence[str]) -> None:
        """Ask the `running` members, one after the other, for the due operations, as far as they keep up."""
        self._count_ended()
        puts: dict[str, list[tuple[str, bytes]]] = {}
        taken = 0
        while taken < MOST_AT_ONCE and (planned := self._workloads.due(min(now_us, self._until_us))) is not None:
            taken += 1
            operation = planned[1].operation
            if self.unanswered >= self._most_open:
                self.left_out += 1
                continue
            if not running:
                self.failed += 1
                self.problem = NONE_TO_ASK
                continue
            self.unanswered += 1
            self._asked += 1
            member = running[self._asked % len(running)]
            if isinstance(operation, Put):
                puts.setdefault(member, []).append((operation.key, operation.value))
            else:
                self._ask(member, operation, 1)
        for member, entries in puts.items():
            self._ask(member, PutAll(self.load.map, tuple(entries)), len(entries))
        self._count_ended()
        waits = (taken == MOST_AT_ONCE or self.unanswered) and now_us < self._until_us + LAST_ANSWERS_US
        self.over = now_us >= self._until_us and not waits

    def finish(self, now_us: int) -> None:
        """Ask for no operation that is due later than now. The traffic is over when all requests have been answered."""
        self._until_us = min(self._until_us, now_us)

    @property
    def text(self) -> str:
        """The load and its progress, in a few words."""
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
        silent = f", {counted(self.unanswered, 'operation')} without an answer" if self.unanswered else ""
        return f"the load is over: {counted(self.done, 'operation')} done{failed}{silent}{late}"

    def _ask(self, member: str, operation: Operation, count: int) -> None:
        self._cluster.call(member, operation).add_done_callback(partial(self._end, count))

    def _end(self, count: int, future: Future[Answer]) -> None:
        failure = future.exception() if not future.cancelled() else None
        problem = str(failure) if failure is not None else "" if future.cancelled() else future.result().problem
        self._ended.append((count, problem))

    def _count_ended(self) -> None:
        while self._ended:
            count, problem = self._ended.popleft()
            self.unanswered -= count
            if problem:
                self.failed += count
                self.problem = problem
            else:
                self.done += count


WORDS = ("rate", "keys", "bytes", "skew", "reads", "map", "for")
"""The words of a load. The first may be given without its name."""

FIELDS = {"bytes": "value-bytes"}
"""The name of a word in a scenario, where it differs."""

NONE_TO_ASK = "no member runs that could be asked"

UNTIL_STOPPED = "24h"
MOST_KEYS = 10_000


def load_of(text: str, members: Sequence[str]) -> LoadAction:
    """Read a load such as ``500 keys=1000 bytes=200 skew=3 reads=0.2 map=orders for=30s``, through `members`.

    Raises `ValueError` when the text is none; the message is a sentence for people.
    """
    said: dict[str, object] = {"rate": "100", "keys": str(MOST_KEYS), "bytes": "100"}
    for place, part in enumerate(text.split()):
        word, equals, value = part.partition("=")
        if not equals and place == 0:
            word, value = "rate", part
        if word not in WORDS or not value:
            raise ValueError(f"{part!r} is not understood; write {WORDS_USAGE}, or off")
        said[word] = value
    return load_from(said, members)


def load_from(said: Mapping[str, object], members: Sequence[str]) -> LoadAction:
    """Return the load of which these `WORDS` are said, through `members`; for a day unless it says how long.

    Raises `ValueError` when a word is wrong; the message is a sentence for people.
    """
    if not members:
        raise ValueError(NONE_TO_ASK)
    words = {FIELDS.get(word, word): value for word, value in said.items()}
    try:
        return LoadAction.model_validate({"at": list(members), "for": UNTIL_STOPPED, **words})
    except ValidationError as problem:
        first = problem.errors()[0]
        named = next((word for word, name in FIELDS.items() if name in first["loc"]), str(first["loc"][0]))
        raise ValueError(f"{named}: {message_of(first)}") from None


WORDS_USAGE = "RATE [keys=N] [bytes=N] [skew=N] [reads=0.5] [map=NAME] [for=30s]"
