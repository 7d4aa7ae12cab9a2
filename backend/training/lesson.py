"""A lesson: a tutor and the cluster that it works on. The commands of the tutor go to the cluster, their ends come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Protocol

from quarterdeck.backend.core.commands import Command, CommandRefused
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.training.tutor import Tutor

JOIN_TIMEOUT_US = 3_000_000
"""How long each member may take to join before the lesson begins without it."""


class LessonCluster(Protocol):
    """The cluster as a lesson uses it."""

    def now_us(self) -> int:
        """Return the time on the clock of the run."""

    def execute(self, command: Command) -> Future[None]:
        """Do `command`; the future ends when it was done or refused."""


class Lesson:
    """Drives a tutor on a cluster. It never waits, and belongs to one thread; its caller hands the records in."""

    def __init__(self, tutor: Tutor, cluster: LessonCluster, starting: Future[None] | None = None) -> None:
        """Prepare a lesson.

        `starting` is done when the members have been started; without it, they are waited for until they have joined.
        """
        self.tutor = tutor
        self.problem = ""
        """Why the lesson has no cluster; empty while it has one."""
        self._cluster = cluster
        self._starting = starting
        self._ended: deque[tuple[int, str]] = deque()
        """Numbers of commands that have ended, and why they were refused. Filled by any thread."""

    def advance(self, records: Iterable[Record] = ()) -> None:
        """Take in `records`, and go on as far as that and the time allow. Call it often."""
        tutor, now_us = self.tutor, self._cluster.now_us()
        tutor.receive(records)
        if tutor.phase == "starting" and self._has_started(now_us):
            tutor.begin(now_us)
            self._carry_out()
        while self._ended:
            tutor.ended(*self._ended.popleft(), now_us)
            self._carry_out()
        tutor.tick(now_us)
        self._carry_out()

    def go_on(self) -> None:
        self.tutor.go_on(self._cluster.now_us())
        self._carry_out()

    def answer(self, text: str) -> None:
        self.tutor.answer(text, self._cluster.now_us())
        self._carry_out()

    def play_freely(self, *, free: bool) -> None:
        """Leave the trainee alone with the cluster, or go back to the step."""
        self.tutor.play_freely(self._cluster.now_us(), free=free)

    def _has_started(self, now_us: int) -> bool:
        if self._starting is None:
            return self.tutor.has_everybody or now_us >= JOIN_TIMEOUT_US * len(self.tutor.scenario.members)
        if not self._starting.done():
            return False
        if self._starting.cancelled():
            self.problem = "the members were not started"
        elif (failure := self._starting.exception()) is not None:
            self.problem = f"the members cannot be started: {failure}"
        return not self.problem

    def _carry_out(self) -> None:
        for number, command in self.tutor.drain_commands():
            self._cluster.execute(command).add_done_callback(partial(self._command_ended, number))

    def _command_ended(self, number: int, future: Future[None]) -> None:
        if not number:
            return
        try:
            failure = future.exception()
        except CancelledError:
            self._ended.append((number, "it was cancelled"))
            return
        if failure is None:
            self._ended.append((number, ""))
        elif isinstance(failure, CommandRefused):
            self._ended.append((number, str(failure)))
        else:
            self._ended.append((number, f"{type(failure).__name__}: {failure}"))
