"""What the overview shows beside the matrix of beliefs: a row for each table, and how much happens.

Of a table a row says which one it is, how many copies are left, and whether that is safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.backend.boards.belief_matrix import DIGEST_SHOWN, DISSENT_GLYPH, state_word, table_text
from quarterdeck.backend.boards.member_board import replicas_held
from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import HeartbeatLate
from quarterdeck.backend.core.partitions.events import MigrationDecided
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import Aspect, ReplicaMigrated
from quarterdeck.backend.judgement.health.copy_counts import CopyCounts, TableCount
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.table_agreement import differs_from_master, table_digests
from quarterdeck.backend.picture.fold.belief import MemberBelief, unsafety_of
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Tone
from quarterdeck.backend.picture.text.formatting import bars, counted, one_line

BUSY_WORDS = {
    "recovering": "searching the latest",
    "migrating": "migrating",
    "draining": "a member waits to leave",
    "out-of-step": "a backup out of step",
}


class TableRow(Struct, frozen=True):
    """What is known of the table of one member, each text one line."""

    label: str
    version: str = ""
    digest: str = ""
    strip: str = ""
    owned: int | None = 0
    backups: int | None = 0
    state: str = "not up"
    tone: Tone = "faint"
    differs: bool = False
    """Whether it is not the table of its master."""
    greyed: bool = True


class TableRows:
    """Makes the rows."""

    def __init__(self) -> None:
        self._counts = CopyCounts()

    def row(self, judge: Judge, label: str) -> TableRow:
        """Return what is known of the table of the member called `label`."""
        picture, now_us = judge.picture, judge.now_us
        belief = picture.members.get(label)
        if belief is None:
            return TableRow(one_line(label))
        gone = belief.status in ("stopped", "killed", "paused") or not belief.reached
        if belief.table is None:
            missing = differs_from_master(picture, belief, now_us)
            state = NOT_REPORTED if not belief.shows("owners") else "none yet"
            state = f"{DISSENT_GLYPH} none" if missing else state_word(belief) if gone else state
            tone: Tone = "warning" if missing else "faint"
            return TableRow(one_line(label), state=state, tone=tone, differs=missing, greyed=gone)
        table = belief.table
        census = self._counts.census(picture, belief, table, now_us // SECOND_US)
        differs = differs_from_master(picture, belief, now_us)
        state, tone = _state(belief, census, differs)
        master = picture.master_of(label) if tone == "good" else None
        lost = 0 if master is None else judge.lost_partitions.get(master.label, 0)
        if lost:
            state, tone = f"∅ {lost} lost", "bad"  # all copies are there, and some are of nothing
        return TableRow(
            one_line(label), table_text(belief, "v"), table.digest[:DIGEST_SHOWN], census.strip,
            *replicas_held(picture, belief), state_word(belief) if gone else state,
            "faint" if gone else tone, differs, gone,
        )  # fmt: skip


NO_TABLE = "no table yet: the first put or load arranges the partitions"


def no_table_yet(picture: Picture, labels: Iterable[str]) -> bool:
    """Return whether every member of `labels` reports that it has no partition table."""
    beliefs = map(picture.members.get, labels)
    return all(belief is not None and belief.table is None and belief.shows("owners") for belief in beliefs)


def table_figure(picture: Picture, labels: Sequence[str], now_us: int) -> tuple[str, Tone]:
    """How many tables there are among the running members, in a word or two."""
    digests = table_digests(picture, iter(labels), now_us)
    known = filter(None, map(picture.members.get, labels))
    without = [belief for belief in known if belief.running and belief.table is None]
    if not digests:
        return (NOT_REPORTED if any(not belief.shows("owners") for belief in without) else "none yet"), "faint"
    missing = any(belief.shows("owners") and differs_from_master(picture, belief, now_us) for belief in without)
    if len(digests) > 1 or missing:
        return f"{DISSENT_GLYPH} {counted(len(digests), 'table')}{' and none' if missing else ''}", "warning"
    return "all equal", "plain"


def _state(belief: MemberBelief, census: TableCount, differs: bool) -> tuple[str, Tone]:
    if census.lost:
        return f"∅ {census.lost} without {'a copy' if belief.shows('backups') else 'an owner'}", "bad"
    if census.single:
        return f"! {census.single} with one copy", "warning"
    unsafety = unsafety_of(belief)
    if unsafety == "migrating":
        return "migrating", "strong"
    if unsafety is not None:
        return BUSY_WORDS.get(unsafety, unsafety), "warning"
    if differs:
        return f"{DISSENT_GLYPH} not its master's", "warning"
    if census.fewer:
        return f"{census.fewer} with fewer copies", "warning"
    if not belief.shows("backups"):
        return f"backups {NOT_REPORTED}", "faint"
    return "✓ safe", "good"


SECONDS = 20
"""As far as it is shown; the second that is not over yet is not."""

READS, WRITES = 3, 4
"""Places in a row of `DataMeasured.rows`."""


class Series(NamedTuple):
    """One thing that is counted."""

    title: str
    kinds: tuple[type, ...]
    aspect: Aspect
    tone: Tone
    """What a second in which it happened is painted in."""
    lag_seconds: int = 0
    """How long members take to report it."""


SERIES = (
    Series("late heartbeats", (HeartbeatLate,), "heartbeats", "warning"),
    Series("operations", (DataMeasured,), "data", "plain", lag_seconds=2),
    Series("migrations", (MigrationDecided, ReplicaMigrated), "migration-ends", "strong"),
)


class Pulse(Struct, frozen=True):
    """One thing over the last seconds."""

    title: str
    bars: str
    rate: str
    """How often it happened in the last second that is over, or that this is not known."""
    tone: Tone


class Activity:
    """Counts the records of each of `SERIES` by seconds."""

    def __init__(self) -> None:
        self._place = {kind: place for place, series in enumerate(SERIES) for kind in series.kinds}
        self._counts: tuple[dict[int, float], ...] = tuple({} for _ in SERIES)

    def restart(self, records: Iterable[Record]) -> None:
        """Count `records` instead of all that was counted."""
        for counts in self._counts:
            counts.clear()
        self.take(records)

    def take(self, records: Iterable[Record]) -> None:
        place_of = self._place
        for record in records:
            event = record.event
            place = place_of.get(type(event))
            if place is None or (isinstance(event, HeartbeatLate) and event.over):
                continue
            last, times, seconds = record.at // SECOND_US, 1, 1
            if isinstance(event, DataMeasured):
                times = sum(row[READS] + row[WRITES] for row in event.rows if len(row) > WRITES)
                seconds = max(1, round(event.span / SECOND_US))
            counts = self._counts[place]
            for second in range(last - seconds + 1, last + 1):
                counts[second] = counts.get(second, 0) + times / seconds
            if len(counts) > 3 * SECONDS:
                for old in sorted(counts)[:SECONDS]:
                    del counts[old]

    def pulses(self, picture: Picture, now_us: int) -> tuple[Pulse, ...]:
        """All series up to the last second that is over."""
        last = now_us // SECOND_US - 1
        found = []
        for series, counts in zip(SERIES, self._counts, strict=True):
            end = last - series.lag_seconds + 1
            numbers = [round(counts.get(second, 0)) for second in range(end - SECONDS, end)]
            if picture.without(series.aspect) is not None:
                found.append(Pulse(series.title, "", NOT_REPORTED, "faint"))
                continue
            tone: Tone = series.tone if any(numbers) else "faint"
            found.append(Pulse(series.title, bars(numbers, max(numbers)), f"{numbers[-1]}/s", tone))
        return tuple(found)
