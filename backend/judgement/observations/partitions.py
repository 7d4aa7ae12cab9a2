"""Partitions that are lost, and migrations that are planned again and again."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from quarterdeck.backend.core.membership.events import MemberRemoved
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost, lost_partitions_text
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedMigrationPlan, LoggedMigrationsDone
from quarterdeck.backend.judgement.observations.observation import (
    LogEnds,
    Observation,
    consecutive_groups,
    observation,
)
from quarterdeck.backend.judgement.observations.wording import lasted, listed

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

    def __init__(self) -> None:
        self._open: dict[str, tuple[InterpretedMessage, int]] = {}
        """By master, the plan and its number of migrations."""
        self._rounds: list[MigrationRound] = []
        self._plans: list[tuple[InterpretedMessage, int]] = []

    def add(self, message: InterpretedMessage) -> None:
        match message.parsed:
            case LoggedMigrationPlan(planned=planned):
                self._close(message.member, None, None)
                self._open[message.member] = message, planned
            case LoggedMigrationsDone(completed=completed):
                self._close(message.member, message.at, completed or None)

    def _close(self, master: str, end_us: int | None, completed: int | None) -> None:
        if (plan := self._open.pop(master, None)) is not None:
            self._rounds.append(_round(plan, end_us, completed))
            self._plans.append(plan)

    @property
    def all_rounds(self) -> list[MigrationRound]:
        """All rounds, those last whose end is not logged yet."""
        return [*self._rounds, *(_round(plan, None, None) for plan in self._open.values())]

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return the times with many rounds of many migrations."""
        plans = sorted((*self._plans, *self._open.values()), key=lambda plan: plan[0].at)
        for storm in consecutive_groups(plans, lambda group, plan: plan[0].at - group[-1][0].at <= TOGETHER_US):
            messages, planned = [plan[0] for plan in storm], [plan[1] for plan in storm]
            if len(storm) < ROUNDS_OF_STORM or sum(planned) < MIGRATIONS_OF_STORM:
                continue
            first, last = messages[0], messages[-1]
            masters = sorted({message.member for message in messages})
            counts = listed([str(count) for count in planned])
            yield observation(
                "migration-storm",
                masters,
                f"{sum(planned)} migrations in {len(storm)} rounds within {lasted(last.at - first.at)}",
                detail=f"{listed(masters)} planned {counts} migrations, each time because the members had changed.",
                cause="Members come and go in quick succession, so replicas are moved that will soon be moved back.",
                remedy="Let the cluster become safe between two restarts. For planned work set the cluster state to "
                "NO_MIGRATION; a greater hazelcast.wait.seconds.before.join gathers those who join together.",
                evidence=messages,
            )


def _round(plan: tuple[InterpretedMessage, int], end_us: int | None, completed: int | None) -> MigrationRound:
    began, planned = plan
    place = began.place
    return MigrationRound(place.run, place.member, began.at, end_us, planned, completed, place.file, place.line)


class PartitionsLost:
    """Collects lost partitions, and the members that were removed just before."""

    def __init__(self) -> None:
        self._lost: list[InterpretedMessage] = []
        self._removed: list[tuple[int, str]] = []

    def add(self, message: InterpretedMessage) -> None:
        if isinstance(message.parsed, PartitionLost) and message.parsed.loses_data:
            self._lost.append(message)
        self._removed += [(message.at, str(removed.address)) for removed in message.events(MemberRemoved)]

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return the losses, those that belong together as one."""
        lost = sorted(self._lost, key=lambda message: message.at)
        for group in consecutive_groups(lost, lambda group, message: message.at - group[-1].at <= TOGETHER_US):
            first, last = group[0], group[-1]
            losses = [message.parsed for message in group if isinstance(message.parsed, PartitionLost)]
            ids = sorted({loss.partition for loss in losses})
            backups = max(loss.lost_backups for loss in losses)
            maps = sorted({name for loss in losses for name in loss.lost_maps})
            everything = backups >= ALL_LOST and not maps
            gone = sorted({address for at, address in self._removed if first.at - TOGETHER_US <= at <= last.at})
            after = f" after {listed(gone)} had been removed" if gone else ""
            yield observation(
                "partition-lost",
                (*sorted({message.member for message in group}), *gone),
                f"{lost_partitions_text(len(ids), backups, maps)} lost{' with all replicas' if everything else ''}{after}",
                detail=f"Lost: {listed([str(partition) for partition in ids], 20)}. "
                + (
                    "They go on, empty."
                    if everything
                    else "They go on, empty for these maps; maps with more backups lost nothing."
                ),
                cause="More members left at once than there are backups, or all replicas were on one host; a lone half of a "
                "split loses what it has no replica of.",
                remedy="Where those that went run on under another master, heal that first: they merge what they hold. Else load "
                "the data again from its source. More backups, and partition groups by host or zone, keep "
                "replicas apart.",
                evidence=group,
            )
