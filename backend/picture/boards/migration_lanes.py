"""What every member gives away and takes in by migrations, as lanes over the last seconds.

A lane is counted from records, not from a picture: a picture only remembers the latest migrations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions.events import (
    MigrationCopied,
    MigrationDecided,
    MigrationStarted,
    TableRecovered,
)
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ReplicaMigrated
from quarterdeck.backend.picture.boards.migration_board import waiting_text
from quarterdeck.backend.picture.fold.migrations import BEGUN_KEPT
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Tone
from quarterdeck.backend.picture.text.formatting import age_text, bars, bytes_text, one_line

SLOT_US = SECOND_US // 2
"""What one bar stands for."""
SLOTS = 12
WINDOW_S = SLOTS * SLOT_US / SECOND_US


COUNTED = frozenset((MigrationStarted, MigrationCopied, MigrationDecided, TableRecovered, ReplicaMigrated))


class Ends(NamedTuple):
    """Whose copy of a partition goes to whom."""

    giver: Address
    taker: Address


class Slot(Struct):
    """What happened in one stretch of time, by member."""

    number: int
    given: dict[Address, int] = {}
    taken: dict[Address, int] = {}
    given_bytes: dict[Address, int] = {}
    taken_bytes: dict[Address, int] = {}


class MigrationLane(Struct, frozen=True):
    """What one member gave away, or took in, in the window; texts are empty when that is nothing."""

    count: int
    lane: str
    rate: str
    """Migrations a second."""
    copied: str
    """Bytes a second."""


class LaneRow(Struct, frozen=True):
    """The two lanes of one member."""

    label: str
    given: MigrationLane
    taken: MigrationLane

    @property
    def busy(self) -> bool:
        """Whether anything moved in the window."""
        return bool(self.given.count or self.taken.count)


class MigrationLanes:
    """Counts the migrations that were committed, by half seconds."""

    def __init__(self) -> None:
        self._begun: dict[str, Ends] = {}
        self._slots: deque[Slot] = deque(maxlen=SLOTS + 1)
        """The latest last; stretches in which nothing happened have none."""
        self._given_ever: dict[Address, int] = {}
        self._taken_ever: dict[Address, int] = {}
        """What witnessed members gave and took since the watching began: they report ends alone, and no queue."""

    def restart(self, records: Iterable[Record]) -> None:
        self._begun.clear()
        self._slots.clear()
        self._given_ever.clear()
        self._taken_ever.clear()
        self.take(records)

    def take(self, records: Iterable[Record]) -> None:
        """Count these too; in order of time."""
        for record in records:
            if type(record.event) not in COUNTED:
                continue
            match record.event:
                case MigrationStarted() as begun:
                    self._begin(begun)
                case MigrationCopied(migration_id, _, _, size, _):
                    ends = self._begun.get(migration_id)
                    if ends is not None:
                        slot = self._slot(record.at)
                        slot.given_bytes[ends.giver] = slot.given_bytes.get(ends.giver, 0) + size
                        slot.taken_bytes[ends.taker] = slot.taken_bytes.get(ends.taker, 0) + size
                case MigrationDecided(migration_id, _, committed):
                    self._end(migration_id, record.at, committed)
                case TableRecovered(_, _, committed_ids, rolled_back_ids):
                    for migration_id in (*committed_ids, *rolled_back_ids):
                        self._end(migration_id, record.at, migration_id in committed_ids)
                case ReplicaMigrated() as migrated if migrated.succeeded and migrated.source != migrated.destination:
                    self._count(migrated.source, migrated.destination, record.at)
                    for ever, address in (
                        (self._given_ever, migrated.source),
                        (self._taken_ever, migrated.destination),
                    ):
                        if address is not None:
                            ever[address] = ever.get(address, 0) + 1

    def rows(self, picture: Picture, now_us: int) -> Callable[[str], LaneRow]:
        """Return what makes the row of a member: of a large cluster few are in sight."""
        now = now_us // SLOT_US
        seen = [slot for slot in self._slots if now - SLOTS < slot.number <= now]
        highest = max(
            (count for slot in seen for side in (slot.given, slot.taken) for count in side.values()), default=0
        )

        def row(label: str) -> LaneRow:
            address = picture.address_of(label) or Address(label)
            given, taken = [0] * SLOTS, [0] * SLOTS
            given_bytes = taken_bytes = 0
            for slot in seen:
                place = slot.number - now + SLOTS - 1
                given[place], taken[place] = slot.given.get(address, 0), slot.taken.get(address, 0)
                given_bytes += slot.given_bytes.get(address, 0)
                taken_bytes += slot.taken_bytes.get(address, 0)
            return LaneRow(
                one_line(label),
                _lane(given, given_bytes, highest, self._given_ever.get(address, 0)),
                _lane(taken, taken_bytes, highest, self._taken_ever.get(address, 0)),
            )

        return row

    def _begin(self, begun: MigrationStarted) -> None:
        self._begun[begun.migration_id] = Ends(begun.owner, begun.destination)
        if len(self._begun) > BEGUN_KEPT:
            del self._begun[next(iter(self._begun))]

    def _end(self, migration_id: str, at_us: int, committed: bool) -> None:
        ends = self._begun.pop(migration_id, None)
        if ends is not None and committed:
            self._count(ends.giver, ends.taker, at_us)

    def _count(self, giver: Address | None, taker: Address | None, at_us: int) -> None:
        slot = self._slot(at_us)
        if giver is not None:
            slot.given[giver] = slot.given.get(giver, 0) + 1
        if taker is not None:
            slot.taken[taker] = slot.taken.get(taker, 0) + 1

    def _slot(self, at_us: int) -> Slot:
        """Return the slot of this moment; what comes late counts for the latest."""
        number = at_us // SLOT_US
        if not self._slots or self._slots[-1].number < number:
            self._slots.append(Slot(number))
        return self._slots[-1]


def queue_figure(picture: Picture, now_us: int) -> tuple[str, Tone]:
    """Return what the masters have still to migrate, how fast it goes and for how long, in a few words."""
    leading = [picture.members[label].leading for label in picture.masters()]
    if any(led.recovering for led in leading):
        return "searching the latest table", "warning"
    running, waiting = sum(len(led.running) for led in leading), sum(led.waiting for led in leading)
    if picture.without("migration-queue") is not None:
        ended = "ends too" if picture.without("migration-ends") is not None else f"{picture.history.done_count} done"
        waiting_now = waiting_text(picture, idle="none waits")
        return f"{waiting_now or f'queue {NOT_REPORTED}'}, {ended}", "strong" if waiting_text(
            picture, idle=""
        ) else "faint"
    if not running and not waiting:
        failed = picture.history.failed_count
        if failed:
            return f"none, {picture.history.done_count} done, {failed} failed", "plain"
        return (f"none, {picture.history.done_count} done" if picture.history.done_count else "none"), "faint"
    planned = max(sum(led.planned_count for led in leading), running + waiting)
    said = [f"{planned - running - waiting} of {planned}", f"{running} running"]
    rate = picture.history.rates.at(now_us).migrations
    if rate:
        left = age_text(max(SECOND_US, round((running + waiting) / rate * SECOND_US)))
        said[1:1] = [f"about {left} left"]
        said.append(f"{rate:.3g}/s")
    return ", ".join(said), "strong"


def _lane(counts: Sequence[int], size: int, highest: int, ever: int) -> MigrationLane:
    """Rates are averages over the window. Where nothing moves now, say how many of `ever` moved before."""
    count = sum(counts)
    if not count:
        return MigrationLane(0, f"{ever} before" if ever else "", "", "")
    return MigrationLane(
        count, bars(counts, highest), f"{count / WINDOW_S:.2g}", bytes_text(round(size / WINDOW_S)) if size else ""
    )
