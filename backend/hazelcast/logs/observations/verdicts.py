"""What masters said about merging with each other: which of two clusters should merge into the other, how often, and why."""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedMergeVerdict
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage


class VerdictCount(Struct):
    """So many lines in which a member said the same of a remote master. Times are on the run's clock."""

    run: str
    member: str
    remote: str
    decision: str
    """local-merges, remote-merges or cannot-merge."""
    rule: str
    times: int
    first_us: int
    last_us: int
    why: str
    """Its last words."""
    file: str
    line: int
    """Where the last ones stand."""


class VerdictCounts:
    """Counts every line; the events of a journal tell a verdict only when it changes."""

    def __init__(self, run: str) -> None:
        self._run = run
        self.counts: dict[tuple[str, str, str, str], VerdictCount] = {}

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        if not isinstance(told.parsed, LoggedMergeVerdict):
            return
        place, verdict = told.place, told.parsed
        key = (place.member, str(verdict.remote), verdict.decision, verdict.rule)
        count = self.counts.setdefault(
            key, VerdictCount(self._run, *key, 0, told.at, told.at, verdict.why, place.file, place.line)
        )
        count.times += 1
        count.last_us, count.why, count.file, count.line = told.at, verdict.why, place.file, place.line
