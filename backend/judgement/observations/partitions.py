"""Partitions that are lost, and migrations that are planned again and again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from quarterdeck.backend.core.membership.events import MemberRemoved
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost, lost_partitions_text
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedMigrationPlan, LoggedMigrationsDone
from quarterdeck.backend.judgement.losses.loss import Loss
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
                remedy="Let the cluster become safe between two restarts; a greater hazelcast.wait.seconds.before.join gathers "
                "those who join together. NO_MIGRATION ends the copying at a price: until the cluster is ACTIVE again no backup "
                "is made anew, so each further member that goes takes data with it.",
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
        """Return the losses that the ledger knows; where only logs are read, lost partitions that belong together as one."""
        lost = sorted(self._lost, key=lambda message: message.at)
        if ends.losses is None:
            groups = consecutive_groups(lost, lambda group, message: message.at - group[-1].at <= TOGETHER_US)
            yield from map(self._logged, groups)
            return
        left = lost
        for loss in sorted(
            ends.losses, key=lambda loss: -loss.at_us
        ):  # a partition that is lost again belongs to the later loss
            shown = [message for message in left if message.at >= loss.at_us and _partition(message) in loss.lost]
            left = [message for message in left if message not in shown]
            if shown and loss.state != "refuted":
                yield _observed(loss, shown)

    def _logged(self, group: list[InterpretedMessage]) -> Observation:
        losses = [message.parsed for message in group if isinstance(message.parsed, PartitionLost)]
        ids = {loss.partition for loss in losses}
        backups = max(loss.lost_backups for loss in losses)
        from_us = group[0].at - TOGETHER_US
        gone = sorted({address for at, address in self._removed if from_us <= at <= group[-1].at})
        everything = " with all replicas" if backups >= ALL_LOST else ""
        after = f" after {listed(gone)} had been removed" if gone else ""
        members = (*sorted({message.member for message in group}), *gone)
        return _lost(members, f"{lost_partitions_text(len(ids), backups, ())} lost{everything}{after}", ids, group)


def _partition(message: InterpretedMessage) -> int:
    return message.parsed.partition if isinstance(message.parsed, PartitionLost) else -1


def _observed(loss: Loss, shown: list[InterpretedMessage]) -> Observation:
    headline = " ".join(filter(None, (loss.side, loss.verb, loss.what, loss.why)))
    return _lost((loss.side, *loss.because_of), f"{headline}: {loss.outlook}", loss.lost, shown)


def _lost(
    members: Sequence[str], headline: str, partitions: Collection[int], shown: list[InterpretedMessage]
) -> Observation:
    return observation(
        "partition-lost",
        members,
        headline,
        detail=f"Lost: {listed([str(partition) for partition in sorted(partitions)], 20)}. They go on, empty for the maps with "
        "too few backups; maps with more backups lost nothing.",
        cause="More members left at once than there are backups, or all replicas were on one host; a lone half of a "
        "split loses what it has no replica of.",
        remedy="Where those that went run on under another master, heal that first: they merge what they hold. Else load "
        "the data again from its source. More backups, and partition groups by host or zone, keep replicas apart.",
        evidence=shown,
    )
