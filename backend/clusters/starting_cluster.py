"""A cluster on this machine that is made beside the console: that is on the screen before its members are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from quarterdeck.backend.clusters.cluster import Source
from quarterdeck.backend.core.commands import Command, CommandRefused
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.operations import Answer, Operation

if TYPE_CHECKING:
    from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
    from quarterdeck.backend.live.cluster.live_cluster import LiveCluster

Result = TypeVar("Result")


class StartingCluster:
    """Its members are made and started when it is looked at first, in a thread of its own.

    `started` is done when they have been started; it fails with what the making failed with. What is asked before waits.
    """

    source: Source = "live"

    def __init__(
        self, labels: Sequence[str], make: Callable[[], LiveCluster], *, name: str, writable: bool = True
    ) -> None:
        """`make` makes the cluster of these labels; its modules may be imported by then."""
        self.labels, self.name, self.writable = tuple(labels), name, writable
        self.started: Future[None] = Future()
        self._make = make
        self._executor = ThreadPoolExecutor(1, f"starting {name}")
        self._made: Future[LiveCluster] | None = None
        """Once it was looked at."""

    @property
    def journal_path(self) -> Path | None:
        """Where the run is recorded; None when it is not, or not yet."""
        return self._cluster.journal_path if self._cluster is not None else None

    def now_us(self) -> int:
        return self._cluster.now_us() if self._cluster is not None else 0

    def drain(self) -> list[Record]:
        self._begun()
        return self._cluster.drain() if self._cluster is not None else []

    def execute(self, command: Command) -> Future[None]:
        return self._ask(lambda cluster: cluster.execute(command))

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        return self._ask(lambda cluster: cluster.call(member, operation, watched=watched))

    def snapshot(self) -> Future[ClusterSnapshot]:
        return self._ask(lambda cluster: cluster.snapshot())

    def close(self) -> None:
        self._executor.shutdown()
        if (cluster := self._cluster) is not None:
            cluster.close()

    @property
    def _cluster(self) -> LiveCluster | None:
        made = self._made
        return made.result() if made is not None and made.done() and not made.exception() else None

    def _begun(self) -> Future[LiveCluster]:
        if self._made is None:
            self._made = self._executor.submit(self._make)
            self._made.add_done_callback(self._is_made)
        return self._made

    def _is_made(self, made: Future[LiveCluster]) -> None:
        if (problem := made.exception()) is None:
            _pass_on(made.result().started, self.started)
        else:
            self.started.set_exception(problem)

    def _ask(self, ask: Callable[[LiveCluster], Future[Result]]) -> Future[Result]:
        answer: Future[Result] = Future()

        def asked(made: Future[LiveCluster]) -> None:
            if made.exception() is None:
                _pass_on(ask(made.result()), answer)
            else:
                answer.set_exception(CommandRefused(f"the members could not be started: {made.exception()}"))

        self._begun().add_done_callback(asked)
        return answer


def _pass_on(source: Future[Result], target: Future[Result]) -> None:

    def ended(source: Future[Result]) -> None:
        if source.cancelled():
            target.cancel()
        elif (problem := source.exception()) is not None:
            target.set_exception(problem)
        else:
            target.set_result(source.result())

    source.add_done_callback(ended)
