"""The section of one run: what Spark handed over, in order, with labels for addresses and letters for lineages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from quarterdeck.backend.pipeline.report.limits import BINS_PER_DECADE, ReportLimits
from quarterdeck.backend.pipeline.report.model import (
    Bin,
    Claim,
    Cut,
    Fault,
    KindCount,
    Lane,
    Life,
    Lineage,
    Merge,
    Metric,
    Migration,
    Outcome,
    SizeStep,
    Split,
    Suspicion,
    View,
)
from quarterdeck.backend.pipeline.report.rows import FaultRow, Part, ReportRow, ReportRows, RunRow

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class RunSections:
    """What `rows` tell of one run."""

    def __init__(self, run: RunRow, rows: ReportRows, limits: ReportLimits) -> None:
        self._run, self._rows, self._limits = run, rows, limits
        lives = sorted(self._of(rows.lives), key=lambda row: (row.part.start_us, row.part.uuid))
        came_us = {row.member: row.part.start_us for row in reversed(lives)}
        self._lives = sorted(lives, key=lambda row: (came_us[row.member], row.member))
        self._views = sorted(self._of(rows.views), key=lambda row: (row.part.start_us, row.part.version, row.part.uuid))
        self._labels = {row.part.address: row.member for row in self._lives if row.part.address}

    def _of(self, rows: Iterable[ReportRow[Part]]) -> list[ReportRow[Part]]:
        return [row for row in rows if row.run == self._run.run]

    def _parts(self, rows: Iterable[ReportRow[Part]]) -> Iterator[Part]:
        return (row.part for row in self._of(rows))

    def cut(self, rows: Sequence[ReportRow[Any]]) -> Cut:
        """How many rows of this run came, and how many there were."""
        own = self._of(rows)
        return Cut(len(own), own[0].of if own else 0)

    def _label(self, address: str) -> str:
        """The member's label where the journal tells it, else the address."""
        return self._labels.get(address, address)

    def _names(self, addresses: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(self._label, addresses[: self._limits.names]))

    @cached_property
    def _letters(self) -> dict[str, str]:
        """A letter for each lineage, in the order in which they came."""
        names = dict.fromkeys(row.part.lineage for row in self._views)
        return {name: _letter(place) for place, name in enumerate(names)}

    def _letter(self, lineage: str) -> str:
        return self._letters.get(lineage, lineage)

    @property
    def lineages(self) -> tuple[Lineage, ...]:
        """The lineages of the run's lists."""
        told = []
        for name, letter in self._letters.items():
            views = [row.part for row in self._views if row.part.lineage == name]
            versions = [view.version for view in views]
            master = self._label(views[0].master)
            told.append(Lineage(letter, name, master, min(versions), max(versions), views[0].start_us))
        return tuple(told[: self._limits.rows])

    @cached_property
    def lanes(self) -> tuple[Lane, ...]:
        """A lane for each member, in the order in which they came."""
        return tuple(self._lane(member) for member in dict.fromkeys(row.member for row in self._lives))

    @property
    def lanes_cut(self) -> Cut:
        """How many lanes are shown, and how many members there were."""
        return Cut(len(self.lanes), self._lives[0].lanes if self._lives else 0)

    def _lane(self, member: str) -> Lane:
        lives = [row for row in self._lives if row.member == member]
        views = [row for row in self._views if row.member == member]
        spans = (span for life in lives for span in self._spans(life.part, [row.part for row in views]))
        shown = tuple(life.part for life in lives)
        return Lane(member, shown, Cut(len(lives), lives[0].of), tuple(spans), views[0].of if views else 0)

    def _spans(self, life: Life, of_member: Sequence[View]) -> Iterator[View]:
        """Each list lasts until the next one of its incarnation, the last one as long as the incarnation."""
        views = [view for view in of_member if view.uuid == life.uuid]
        ends = [view.start_us for view in views[1:]] + [self._run.end_us if life.end_us is None else life.end_us]
        for view, end_us in zip(views, ends, strict=False):
            yield replace(
                view,
                end_us=max(end_us, view.start_us),
                lineage=self._letters[view.lineage],
                master=self._label(view.master),
                members=self._names(view.members),
            )

    @cached_property
    def sizes(self) -> tuple[SizeStep, ...]:
        """How many members each list had, from when it was first installed."""
        first: dict[tuple[str, int], SizeStep] = {}
        for row in self._views:
            view, letter = row.part, self._letters[row.part.lineage]
            first.setdefault((letter, view.version), SizeStep(view.start_us, letter, view.version, view.size))
        return tuple(first.values())

    @property
    def splits(self) -> tuple[Split, ...]:
        """The splits in the order of time, numbered from 1."""
        splits = sorted(self._parts(self._rows.splits), key=lambda split: split.start_us)
        return tuple(self._split(number, split) for number, split in enumerate(splits, start=1))

    def _split(self, number: int, split: Split) -> Split:
        most = self._limits.names
        sides = (
            replace(side, lineage=self._letter(side.lineage), members=side.members[:most])
            for side in split.sides[:most]
        )
        return replace(split, number=number, sides=tuple(sides))

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults in the order of time, in words."""
        faults = (
            Fault(row.fault, row.from_at, row.to_at, _fault_text(row), row.member or "")
            for row in self._parts(self._rows.faults)
        )
        return tuple(sorted(faults, key=lambda fault: (fault.start_us, fault.fault, fault.what)))

    @property
    def suspicions(self) -> tuple[Suspicion, ...]:
        """Who suspected whom."""
        rows = sorted(self._parts(self._rows.suspicions), key=lambda one: (one.observer, one.suspect))
        return tuple(replace(one, suspect=self._label(one.suspect)) for one in rows)

    @property
    def migrations(self) -> tuple[Migration, ...]:
        """The migrations in the order of time."""
        told = (
            replace(one, source=self._label(one.source), destination=self._label(one.destination))
            for one in self._parts(self._rows.migrations)
        )
        return tuple(sorted(told, key=lambda one: (one.start_us, one.migration_id)))

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """How migrations ended."""
        return tuple(sorted(self._parts(self._rows.outcomes), key=lambda one: (one.type, one.outcome)))

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of a mastership in the order of time."""
        rows = sorted(self._parts(self._rows.claims), key=lambda one: (one.start_us, one.member))
        return tuple(replace(one, left_out=self._names(one.left_out)) for one in rows)

    @property
    def merges(self) -> tuple[Merge, ...]:
        """The merges of members in the order of time."""
        rows = sorted(self._parts(self._rows.merges), key=lambda one: (one.start_us, one.member))
        return tuple(
            replace(
                one,
                target=self._label(one.target),
                from_lineage=self._letter(one.from_lineage),
                to_lineage=self._letter(one.to_lineage),
            )
            for one in rows
        )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics with their histograms."""
        rows = sorted(self._parts(self._rows.metrics), key=lambda one: (one.metric, one.kind))
        return tuple(replace(one, bins=self._bins(one.metric, one.kind)) for one in rows)

    def _bins(self, metric: str, kind: str) -> tuple[Bin, ...]:
        """All bins from the first to the last one that is not empty."""
        bins = self._parts(self._rows.bins)
        times = {one.bin: one.times for one in bins if (one.metric, one.kind) == (metric, kind)}
        if not times:
            return ()
        return tuple(
            Bin(_bin_start_us(place), _bin_start_us(place + 1), times.get(place, 0))
            for place in range(min(times), max(times) + 1)
        )

    @property
    def kinds(self) -> tuple[KindCount, ...]:
        """The kinds of events, the most frequent first."""
        return tuple(sorted(self._parts(self._rows.kinds), key=lambda one: (-one.times, one.kind)))


def _letter(place: int) -> str:
    """A … Z, A2 … Z2 and so on."""
    round_number, letter = divmod(place, len(LETTERS))
    return LETTERS[letter] + (str(round_number + 1) if round_number else "")


def _bin_start_us(place: int) -> int:
    return round(10 ** (place / BINS_PER_DECADE))


def _fault_text(row: FaultRow) -> str:
    if row.fault != "link":
        return f"{row.fault} of {row.member}"
    effects = [
        row.blocked or "",
        f"{row.delay / 1000:g} ms delay" if row.delay else "",
        f"{row.loss:.0%} loss" if row.loss else "",
        f"{row.duplicate:.0%} duplicates" if row.duplicate else "",
        f"drops {', '.join(row.dropped_kinds)}" if row.dropped_kinds else "",
        f"worse for {', '.join(kind or 'all' for kind in row.worse_kinds)}" if row.worse_kinds else "",
    ]
    return f"{row.source} to {row.target}: {', '.join(filter(None, effects))}"
