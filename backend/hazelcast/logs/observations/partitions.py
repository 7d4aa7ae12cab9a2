"""Partitions that are lost, and migrations that are planned again and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from quarterdeck.backend.core.events import MemberRemoved
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    EvidenceLines,
    LogEnds,
    Observation,
    lasted,
    listed,
    records_of_kind,
)
from quarterdeck.backend.hazelcast.logs.parsed_messages import (
    LoggedMigrationPlan,
    LoggedMigrationsDone,
    LoggedPartitionLoss,
)
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage

TOGETHER_US = 60 * SECOND_US
"""What happens within such a time belongs together."""
ROUNDS_OF_STORM = 3
MIGRATIONS_OF_STORM = 500


class MigrationRound(Struct, frozen=True):
    """Migrations that a master planned at one time. Times are on the run's clock; `end_us` is None where no end is logged."""

    run: str
    master: str
    start_us: int
    end_us: int | None
    planned: int
    completed: int | None
    """None where it does not say how many."""
    file: str
    line: int


class LoggedRounds:
    """Pairs what a master plans with the message that all is done."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._open: dict[str, ToldMessage] = {}
        self.rounds: list[MigrationRound] = []
        self._lines: list[ToldMessage] = []

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        master = told.place.member
        match told.parsed:
            case LoggedMigrationPlan():
                self._close(master, None)
                self._open[master] = told
            case LoggedMigrationsDone():
                self._close(master, told)
            case _:
                pass

    def _close(self, master: str, done: ToldMessage | None) -> None:
        began = self._open.pop(master, None)
        if began is None or not isinstance(began.parsed, LoggedMigrationPlan):
            return
        completed = None
        if done is not None and isinstance(done.parsed, LoggedMigrationsDone):
            completed = done.parsed.completed or None
        end = done.at if done else None
        place = began.place
        planned = began.parsed.planned
        self.rounds.append(MigrationRound(self._run, master, began.at, end, planned, completed, place.file, place.line))
        self._lines.append(began)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Times with many rounds of many migrations."""
        for master in list(self._open):
            self._close(master, None)
        for storm in _together(self._lines):
            planned = [one.parsed.planned for one in storm if isinstance(one.parsed, LoggedMigrationPlan)]
            if len(storm) >= ROUNDS_OF_STORM and sum(planned) >= MIGRATIONS_OF_STORM:
                yield self._storm(storm, planned)

    def _storm(self, storm: list[ToldMessage], planned: list[int]) -> Observation:
        first, last = storm[0], storm[-1]
        masters = sorted({one.place.member for one in storm})
        lines = EvidenceLines(storm)
        counts = listed([str(count) for count in planned])
        return Observation(
            kind="migration-storm",
            run=self._run,
            start_us=first.at,
            end_us=last.at,
            is_open=False,
            members=tuple(masters),
            headline=f"{sum(planned)} migrations in {len(storm)} rounds within {lasted(last.at - first.at)}",
            detail=f"{listed(masters)} planned {counts} migrations, each time because the members had changed.",
            cause="Members come and go in quick succession, so replicas are moved that will soon be moved back.",
            remedy="Let the cluster become safe between two restarts. For planned work set the cluster state to NO_MIGRATION; "
            "a greater hazelcast.wait.seconds.before.join gathers those who join together.",
            evidence=lines.kept,
            evidence_lines=lines.count,
            start_utc=first.place.utc,
            end_utc=last.place.utc,
        )


class PartitionsLost:
    """Collects lost partitions, and who was removed just before."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._lost: list[ToldMessage] = []
        self._removed: list[tuple[int, str]] = []

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        if isinstance(told.parsed, LoggedPartitionLoss):
            self._lost.append(told)
        for _, removed in records_of_kind(told, MemberRemoved):
            self._removed.append((told.at, str(removed.address)))

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """The losses that belong together."""
        for group in _together(self._lost):
            first, last = group[0], group[-1]
            ids = sorted({one.parsed.partition for one in group if isinstance(one.parsed, LoggedPartitionLoss)})
            since = first.at - TOGETHER_US
            gone = sorted({address for at, address in self._removed if since <= at <= last.at})
            lines = EvidenceLines(group)
            many = "partition" if len(ids) == 1 else "partitions"
            after = f" after {listed(gone)} had left" if gone else ""
            yield Observation(
                kind="partition-lost",
                run=self._run,
                start_us=first.at,
                end_us=last.at,
                is_open=False,
                members=(*sorted({one.place.member for one in group}), *gone),
                headline=f"{len(ids)} {many} lost with all replicas{after}",
                detail=f"Lost: {listed([str(one) for one in ids], 20)}. They go on, empty.",
                cause="More members left at once than there are backups, or all replicas were on one host; a lone half of a "
                "split loses what it has no replica of.",
                remedy="Load the data again from its source. More backups, and partition groups by host or zone, keep "
                "replicas apart.",
                evidence=lines.kept,
                evidence_lines=lines.count,
                start_utc=first.place.utc,
                end_utc=last.place.utc,
            )


def _together(lines: list[ToldMessage]) -> Iterator[list[ToldMessage]]:
    """The lines in order, parted where a long time lies between two."""
    group: list[ToldMessage] = []
    for one in sorted(lines, key=lambda line: line.at):
        if group and one.at - group[-1].at > TOGETHER_US:
            yield group
            group = []
        group.append(one)
    if group:
        yield group
