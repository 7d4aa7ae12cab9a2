"""A run that can only be looked at, whatever it is read from: a journal, or the logs of members."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import ClassVar

from quarterdeck.backend.clusters.cluster import Source, refused
from quarterdeck.backend.core.commands.commands import Command
from quarterdeck.backend.core.operations import Answer, Operation


class PastRun:
    """Its name and its members. Nothing is done to it: `refusal` says so."""

    source: Source = "recorded"
    writable = False
    refusal: ClassVar[str]

    def __init__(self, run: str) -> None:
        self.run = run
        self._labels: dict[str, None] = {}
        """In the order in which they were seen first."""

    @property
    def name(self) -> str:
        return self.run

    @property
    def labels(self) -> Sequence[str]:
        """Those that were seen in what was read so far."""
        return tuple(self._labels)

    def execute(self, command: Command) -> Future[None]:
        return refused(self.refusal)

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        return refused(self.refusal)
