"""The parts of one run: rows of Spark in, the model's parts out, with labels in place of addresses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Protocol, TypeVar

from quarterdeck.backend.pipeline.report.limits import BINS_PER_DECADE, Limits
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
    Side,
    Split,
    Suspicion,
    View,
)
from quarterdeck.backend.pipeline.report.rows import FaultRow, LifeRow, Rows, RunRow, ViewRow

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class OfRun(Protocol):
    @property
    def run(self) -> str: ...


class Counted(OfRun, Protocol):
    @property
    def of(self) -> int: ...


Row = TypeVar("Row", bound=OfRun)


class RunSections:
    """What `rows` tell of one run."""

    def __init__(self, run: RunRow, rows: Rows, limits: Limits) -> None:
        self._run, self._rows, self._limits = run, rows, limits
        self._lives = sorted(self._of(rows.lives), key=lambda life: (life.lane, life.started_at, life.uuid))
        self._views = sorted(self._of(rows.views), key=lambda view: (view.at, view.version, view.uuid))
        self._labels = {life.address: life.member for life in self._lives if life.address}

    def _of(self, rows: Iterable[Row]) -> list[Row]:
        return [row for row in rows if row.run == self._run.run]

    def cut(self, rows: Sequence[Counted]) -> Cut:
        """How many rows of this run came, and how many there were."""
        own = self._of(rows)
        return Cut(len(own), own[0].of if own else 0)

    def label(self, address: str | None) -> str:
        """The member's label where the journal tells it, else the address."""
        return self._labels.get(address or "", address or "")

    def names(self, addresses: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self.label, list(addresses)[: self._limits.names]))

    @cached_property
    def letters(self) -> dict[str, str]:
        """A letter for each lineage, in the order in which they came."""
        names = dict.fromkeys(view.lineage for view in self._views)
        return {name: _letter(place) for place, name in enumerate(names)}

    @cached_property
    def lineages(self) -> tuple[Lineage, ...]:
        told = []
        for name, letter in self.letters.items():
            views = [view for view in self._views if view.lineage == name]
            versions = [view.version for view in views]
            told.append(Lineage(letter, name, self.label(views[0].master), min(versions), max(versions), views[0].at))
        return tuple(told[: self._limits.rows])

    @cached_property
    def lanes(self) -> tuple[Lane, ...]:
        return tuple(self._lane(member) for member in dict.fromkeys(life.member for life in self._lives))

    @property
    def lanes_cut(self) -> Cut:
        return Cut(len(self.lanes), self._lives[0].lanes if self._lives else 0)

    def _lane(self, member: str) -> Lane:
        lives = [life for life in self._lives if life.member == member]
        views = [view for view in self._views if view.member == member]
        shown = tuple(
            Life(life.uuid, life.address or "", life.started_at, life.ended_at, life.end or "") for life in lives
        )
        spans = tuple(
            span for life in lives for span in self._spans(life, [view for view in views if view.uuid == life.uuid])
        )
        return Lane(member, shown, Cut(len(lives), lives[0].of), spans, views[0].of if views else 0)

    def _spans(self, life: LifeRow, views: Sequence[ViewRow]) -> Iterable[View]:
        """Each list lasts until the next one of its life, the last one as long as the life."""
        ends = [view.at for view in views[1:]] + [self._run.end_us if life.ended_at is None else life.ended_at]
        for view, end_us in zip(views, ends, strict=False):
            yield View(
                uuid=view.uuid,
                start_us=view.at,
                end_us=max(end_us, view.at),
                version=view.version,
                lineage=self.letters[view.lineage],
                master=self.label(view.master),
                members=self.names(view.addresses),
                size=view.size,
                installs=view.installs,
            )

    @property
    def splits(self) -> tuple[Split, ...]:
        rows = sorted(self._of(self._rows.splits), key=lambda split: split.from_at)
        return tuple(
            Split(
                number=number,
                start_us=row.from_at,
                end_us=row.to_at,
                lasted_us=row.lasted_us,
                healed_us=row.healed_at,
                sides=tuple(
                    Side(
                        self.letters.get(side.lineage, side.lineage),
                        side.master,
                        tuple(side.members[: self._limits.names]),
                    )
                    for side in row.sides[: self._limits.names]
                ),
            )
            for number, row in enumerate(rows, start=1)
        )

    @property
    def faults(self) -> tuple[Fault, ...]:
        rows = sorted(self._of(self._rows.faults), key=lambda fault: (fault.from_at, fault.fault, _fault_text(fault)))
        return tuple(Fault(row.fault, row.from_at, row.to_at, _fault_text(row), row.member or "") for row in rows)

    @property
    def suspicions(self) -> tuple[Suspicion, ...]:
        rows = sorted(self._of(self._rows.suspicions), key=lambda row: (row.member, row.suspect))
        return tuple(
            Suspicion(row.member, self.label(row.suspect), row.times, row.suspected_us, row.open) for row in rows
        )

    @property
    def migrations(self) -> tuple[Migration, ...]:
        told = [
            Migration(
                migration_id=row.migration_id,
                partition=row.partition,
                type=row.type or "unknown",
                source=self.label(row.source),
                destination=self.label(row.destination),
                start_us=row.started_at if row.started_at is not None else self._run.start_us,
                copied_us=row.copied_at,
                end_us=row.decided_at if row.decided_at is not None else row.finished_at,
                outcome=row.outcome,
                bytes=row.bytes,
                rejections=row.rejections,
                reason=row.reason or "",
            )
            for row in self._of(self._rows.migrations)
        ]
        return tuple(sorted(told, key=lambda one: (one.start_us, one.migration_id)))

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        rows = sorted(self._of(self._rows.outcomes), key=lambda row: (row.type, row.outcome))
        return tuple(Outcome(row.type, row.outcome, row.times) for row in rows)

    @property
    def claims(self) -> tuple[Claim, ...]:
        rows = self._of(self._rows.claims)
        return tuple(
            Claim(
                row.member,
                row.started_at if row.started_at is not None else self._run.start_us,
                row.ended_at,
                row.outcome,
                row.version,
                row.new_version,
                row.accepted,
                row.refused,
                row.retried,
                self.names(row.left_out),
                row.reason or "",
            )
            for row in sorted(rows, key=lambda row: (row.started_at or 0, row.member))
        )

    @property
    def merges(self) -> tuple[Merge, ...]:
        rows = sorted(self._of(self._rows.merges), key=lambda row: (row.left_at, row.member))
        return tuple(
            Merge(row.member, self.label(row.target), self._letter(row.from_lineage), self._letter(row.to_lineage),
                  row.left_at, row.joined_at)
            for row in rows
        )  # fmt: skip

    def _letter(self, lineage: str | None) -> str:
        return self.letters.get(lineage or "", lineage or "")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        rows = sorted(self._of(self._rows.metrics), key=lambda row: (row.metric, row.kind))
        return tuple(
            Metric(
                row.metric, row.kind, row.unit, row.count, row.missing, row.floor, row.least, row.mean, row.p50, row.p90,
                row.p99, row.most, self._bins(row.metric, row.kind),
            )
            for row in rows
        )  # fmt: skip

    def _bins(self, metric: str, kind: str) -> tuple[Bin, ...]:
        """All bins from the first to the last one that is not empty."""
        times = {row.bin: row.times for row in self._of(self._rows.bins) if (row.metric, row.kind) == (metric, kind)}
        if not times:
            return ()
        return tuple(
            Bin(_bin_start_us(place), _bin_start_us(place + 1), times.get(place, 0))
            for place in range(min(times), max(times) + 1)
        )

    @property
    def kinds(self) -> tuple[KindCount, ...]:
        rows = sorted(self._of(self._rows.kinds), key=lambda row: (-row.times, row.kind))
        return tuple(KindCount(row.kind, row.times) for row in rows)


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
    ]
    return f"{row.source} to {row.target}: {', '.join(filter(None, effects))}"
