"""What every member gives away and takes in by migrations, as lanes over the last seconds.

A lane is counted from records, not from a picture: a picture only remembers the latest migrations.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from quarterdeck.backend.boards.migration_board import waiting_text
from quarterdeck.backend.boards.overview_rows import NO_TABLE
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
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.picture.fold.migrations import BEGUN_KEPT
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Tone
from quarterdeck.backend.picture.text.formatting import age_text, bars, bytes_text, one_line

SLOT_US = SECOND_US // 2
"""What one bar stands for."""
SLOTS = 12
WINDOW_S = SLOTS * SLOT_US / SECOND_US


COUNTED = frozenset((MigrationStarted, MigrationCopied, MigrationDecided, TableRecovered, ReplicaMigrated))


Counts = Counter[Address | None]
"""By member; what comes from no member, or goes to none, is counted under None."""


class Slot(Struct):
    """What happened in one stretch of time."""

    number: int
    given: Counts = field(default_factory=Counter)
    taken: Counts = field(default_factory=Counter)
    given_bytes: Counts = field(default_factory=Counter)
    taken_bytes: Counts = field(default_factory=Counter)


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
        self._begun: dict[str, tuple[Address | None, Address | None]] = {}
        """Whose copy of a partition goes to whom, by migration."""
        self._slots: deque[Slot] = deque(maxlen=SLOTS + 1)
        """The latest last; stretches in which nothing happened have none."""
        self._given_ever: Counts = Counter()
        self._taken_ever: Counts = Counter()
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
                    self._begun[begun.migration_id] = begun.owner, begun.destination
                    if len(self._begun) > BEGUN_KEPT:
                        del self._begun[next(iter(self._begun))]
                case MigrationCopied(migration_id, _, _, size, _):
                    ends = self._begun.get(migration_id)
                    if ends is not None:
                        slot, (giver, taker) = self._slot(record.at), ends
                        slot.given_bytes[giver] += size
                        slot.taken_bytes[taker] += size
                case MigrationDecided(migration_id, _, committed):
                    self._end(migration_id, record.at, committed)
                case TableRecovered(_, _, committed_ids, rolled_back_ids):
                    for migration_id in (*committed_ids, *rolled_back_ids):
                        self._end(migration_id, record.at, migration_id in committed_ids)
                case ReplicaMigrated() as migrated if migrated.succeeded and migrated.source != migrated.destination:
                    self._count(migrated.source, migrated.destination, record.at)
                    self._given_ever[migrated.source] += 1
                    self._taken_ever[migrated.destination] += 1

    @property
    def moved(self) -> bool:
        """Whether any migration was seen to move a copy."""
        return bool(self._slots or self._given_ever)

    def rows(self, picture: Picture, now_us: int) -> Callable[[str], LaneRow]:
        """Return what makes the row of a member: of a large cluster few are in sight."""
        now = now_us // SLOT_US
        seen = [slot for slot in self._slots if now - SLOTS < slot.number <= now]
        sides = (side for slot in seen for side in (slot.given, slot.taken))
        highest = max((count for side in sides for address, count in side.items() if address is not None), default=0)

        def row(label: str) -> LaneRow:
            address = picture.address_of(label) or Address(label)
            given, taken = [0] * SLOTS, [0] * SLOTS
            given_bytes = taken_bytes = 0
            for slot in seen:
                place = slot.number - now + SLOTS - 1
                given[place], taken[place] = slot.given[address], slot.taken[address]
                given_bytes += slot.given_bytes[address]
                taken_bytes += slot.taken_bytes[address]
            return LaneRow(
                one_line(label),
                _lane(given, given_bytes, highest, self._given_ever[address]),
                _lane(taken, taken_bytes, highest, self._taken_ever[address]),
            )

        return row

    def _end(self, migration_id: str, at_us: int, committed: bool) -> None:
        ends = self._begun.pop(migration_id, None)
        if ends is not None and committed:
            self._count(*ends, at_us)

    def _count(self, giver: Address | None, taker: Address | None, at_us: int) -> None:
        slot = self._slot(at_us)
        slot.given[giver] += 1
        slot.taken[taker] += 1

    def _slot(self, at_us: int) -> Slot:
        """Return the slot of this moment; what comes late counts for the latest."""
        number = at_us // SLOT_US
        if not self._slots or self._slots[-1].number < number:
            self._slots.append(Slot(number))
        return self._slots[-1]


def nothing_moved(picture: Picture) -> str:
    """Return why no member has given or taken a partition yet."""
    if picture.without("migration-ends") is not None:
        return f"migrations are {NOT_REPORTED}"
    if any(belief.table is not None for belief in picture.members.values()):
        return "nothing has moved yet: partitions move when a member stops, ends or joins"
    return NO_TABLE


def queue_figure(judge: Judge) -> tuple[str, Tone]:
    """Return what the masters have still to migrate, how fast it goes and for how long, in a few words."""
    picture, now_us, leading = judge.picture, judge.now_us, [master.leading for master in judge.masters]
    if any(led.recovering for led in leading):
        return "searching the latest table", "warning"
    running, waiting = sum(len(led.running) for led in leading), sum(led.waiting for led in leading)
    if picture.without("migration-queue") is not None:
        waiting_now = waiting_text(judge.masters, idle="none waits")
        if picture.without("migration-ends") is not None:
            said = f"{waiting_now}, ends {NOT_REPORTED}" if waiting_now else NOT_REPORTED
        else:
            said = f"{waiting_now or f'queue {NOT_REPORTED}'}, {picture.history.done_count} done"
        return said, "strong" if waiting_text(judge.masters, idle="") else "faint"
    if not running and not waiting:
        done, failed = picture.history.done_count, picture.history.failed_count
        if failed:
            return f"none, {done} done, {failed} failed", "plain"
        return (f"none, {done} done" if done else "none"), "faint"
    planned = max(sum(led.planned_count for led in leading), running + waiting)
    parts = [f"{planned - running - waiting} of {planned}", f"{running} running"]
    rate = picture.history.rates.at(now_us).migrations
    if rate:
        left = age_text(max(SECOND_US, round((running + waiting) / rate * SECOND_US)))
        parts[1:1] = [f"about {left} left"]
        parts.append(f"{rate:.3g}/s")
    return ", ".join(parts), "strong"


def _lane(counts: Sequence[int], size: int, highest: int, ever: int) -> MigrationLane:
    """Rates are averages over the window. Where nothing moves now, say how many of `ever` moved before."""
    count = sum(counts)
    if not count:
        return MigrationLane(0, f"{ever} before" if ever else "", "", "")
    copied = bytes_text(round(size / WINDOW_S)) if size else ""
    return MigrationLane(count, bars(counts, highest), f"{count / WINDOW_S:.2g}", copied)
