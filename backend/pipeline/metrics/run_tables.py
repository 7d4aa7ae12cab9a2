"""What metrics and reports are made of: the tables of one run, and spans of time derived from them, each made once.

A span goes from its first moment to its second, excluded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import pyarrow.compute as pc
from pyspark.sql.types import StructType

from quarterdeck.backend.core.properties import DOCUMENTED, PROPERTIES, SCALES
from quarterdeck.backend.pipeline.tables.batches import TABLES
from quarterdeck.backend.pipeline.tables.run_events import Row, RunEvents, RunLines, followed


class Incarnation(NamedTuple):
    """A span in which an incarnation ran, even frozen."""

    uuid: str
    member: str
    address: str | None
    settings: dict[str, str] | None
    joined_at: int | None
    from_at: int
    to_at: int


class HeldView(NamedTuple):
    """A span in which an incarnation held one list."""

    uuid: str
    member: str
    lineage: str
    version: int
    listed: tuple[str, ...]
    """The incarnations on the list."""
    leads: bool
    """Whether it is itself the master."""
    from_at: int
    to_at: int


class Leadership(NamedTuple):
    """A span in which an incarnation led a cluster and was not paused."""

    uuid: str
    member: str
    lineage: str
    from_at: int
    to_at: int


class RunTables:
    """The tables of one run by name, and spans derived from them."""

    def __init__(self, run: str, events: RunEvents) -> None:
        self.run, self.events = run, events
        self._made: dict[str, list[Row]] = {}

    @classmethod
    def of_lines(cls, run: str, lines: RunLines) -> RunTables:
        """Return the tables of the events among these lines."""
        return cls(run, RunEvents(lines.events(run)[1]))

    def table(self, name: str) -> list[Row]:
        """Return one of `TABLES`. The wall clock is in microseconds here."""
        if name not in self._made:
            made, names = TABLES[name].make(self.events), TABLES[name].schema.names
            rows = made if isinstance(made, list) else made.to_pylist()
            self._made[name] = [{column: row.get(column) for column in names} for row in rows]
        return self._made[name]

    def made(self, name: str, make: Callable[[RunTables], list[Row]]) -> list[Row]:
        """Return what `make` makes of this, and the same again for every later request for `name`."""
        if name not in self._made:
            self._made[name] = make(self)
        return self._made[name]

    @cached_property
    def span(self) -> Span:
        """The times of the first and the last record of the run."""
        ends = pc.min_max(self.events.column("at")).as_py()
        return ends["min"], ends["max"]

    @cached_property
    def running(self) -> dict[str, Incarnation]:
        """Spans in which incarnations ran, by uuid. One that goes on runs to the end of the journal."""
        return {
            row["uuid"]: Incarnation(
                row["uuid"],
                row["member"],
                row["address"],
                None if row["settings"] is None else dict(row["settings"]),
                row["joined_at"],
                row["started_at"],
                self.span[1] if row["ended_at"] is None else row["ended_at"],
            )
            for row in self.table("incarnations")
        }

    @cached_property
    def frozen(self) -> dict[str, list[Span]]:
        """Spans in which incarnations were paused, by uuid."""
        spans = defaultdict(list)
        for pause in self.table("faults"):
            for incarnation in self.running.values() if pause["fault"] == "pause" else ():
                if (
                    incarnation.member == pause["member"]
                    and incarnation.from_at <= pause["from_at"] < incarnation.to_at
                ):
                    to_at = incarnation.to_at if pause["to_at"] is None else min(pause["to_at"], incarnation.to_at)
                    spans[incarnation.uuid].append((pause["from_at"], to_at))
        return spans

    @cached_property
    def views(self) -> list[HeldView]:
        """Spans in which incarnations held one list."""
        of_incarnation = defaultdict(list)
        for row in sorted(self.table("views"), key=itemgetter("seq")):
            of_incarnation[row["uuid"]].append(row)
        spans = []
        for uuid, rows in of_incarnation.items():
            for row, following in followed(rows):
                one = self.running[uuid]
                listed = tuple(member["uuid"] for member in row["members"])
                leads = row["master"] is not None and row["master"] == one.address
                to_at = one.to_at if following is None else following["at"]
                spans.append(
                    HeldView(uuid, row["member"], row["lineage"], row["version"], listed, leads, row["at"], to_at)
                )
        return spans

    @cached_property
    def masters(self) -> list[Leadership]:
        """Spans in which incarnations led a cluster and were not paused."""
        leading = defaultdict(list)
        for view in self.views:
            if view.leads and view.from_at < view.to_at:
                leading[view.uuid, view.member, view.lineage].append((view.from_at, view.to_at))
        return [
            Leadership(*key, *span) for key, spans in leading.items() for span in subtracted(spans, self.frozen[key[0]])
        ]

    @cached_property
    def fault_ends(self) -> list[tuple[int, str]]:
        """When faults ended, and how: `mended` for a link and `resumed` for a member.

        A fault that only became another one has not ended.
        """
        by_target = defaultdict(list)
        for fault in sorted(self.table("faults"), key=itemgetter("from_at")):
            by_target[fault["member"] or (fault["source"], fault["target"])].append(fault)
        return [
            (fault["to_at"], "resumed" if fault["fault"] == "pause" else "mended")
            for of_target in by_target.values()
            for fault, following in followed(of_target)
            if fault["fault"] != "kill" and fault["to_at"] is not None
            if following is None or fault["to_at"] < following["from_at"]
        ]

    def setting(self, uuid: str, name: str) -> str | None:
        """Return the text of a property of an incarnation, or the documented default; None where they are unknown."""
        one = self.running.get(uuid)
        return None if one is None or one.settings is None else one.settings.get(name, str(DOCUMENTED[name]))

    def setting_us(self, uuid: str, name: str) -> int | None:
        """Return a duration in microseconds; None where the settings are unknown."""
        text = self.setting(uuid, name)
        return None if text is None else round(float(text) * SCALES[PROPERTIES[name][1].unit])

    def setting_count(self, uuid: str, name: str) -> int | None:
        """Return a number; None where the settings are unknown."""
        text = self.setting(uuid, name)
        return None if text is None else int(text)


@dataclass(frozen=True)
class MetricTable:
    """A table of metrics: its columns, and how it is made of the tables of a run."""

    name: str
    schema: StructType
    make: Callable[[RunTables], list[Row]]
    meaning: str

    def rows(self, tables: RunTables) -> list[Row]:
        """Return its rows for a run, with just its columns."""
        names = self.schema.names
        made = tables.made(self.name, self.make)
        return [{name: tables.run if name == "run" else row.get(name) for name in names} for row in made]


def metric(name: str, columns: StructType, meaning: str) -> Callable[[Callable[[RunTables], list[Row]]], MetricTable]:
    """Declare the table of metrics that the decorated function makes."""
    return lambda make: MetricTable(name, columns, make, meaning)


Span = tuple[int, int]
"""The moments at which it begins and ends."""

Stretch = tuple[int, int, tuple[int, ...]]
"""A span with the sums of the weights in it."""


def concurrent_sums(spans: Iterable[Stretch]) -> Iterator[Stretch]:
    """Sum the weights of the spans that overlap: one stretch for each time in which nothing changes.

    Stretches without spans are left out only at both ends. Spans without length do not count.
    """
    changes: dict[int, list[int]] = {}
    for from_at, to_at, weights in spans:
        for at, sign in ((from_at, 1), (to_at, -1)):
            change = changes.setdefault(at, [0] * len(weights))
            for place, weight in enumerate(weights):
                change[place] += sign * weight
    sums: list[int] = []
    for (from_at, change), (to_at, _) in pairwise(sorted(changes.items())):
        sums = [before + new for before, new in zip(sums or [0] * len(change), change, strict=True)]
        yield from_at, to_at, tuple(sums)


def counted(spans: Iterable[Span]) -> Iterator[tuple[int, int, int]]:
    """Count the spans that overlap, in stretches as `concurrent_sums` yields them."""
    return ((from_at, to_at, count) for from_at, to_at, (count,) in concurrent_sums((*span, (1,)) for span in spans))


def merged(stretches: Iterable[Span]) -> list[Span]:
    """Return the longest spans of stretches that follow each other in time."""
    spans: list[Span] = []
    for from_at, to_at in stretches:
        if spans and spans[-1][1] == from_at:
            spans[-1] = spans[-1][0], to_at
        else:
            spans.append((from_at, to_at))
    return spans


def subtracted(spans: Iterable[Span], holes: Iterable[Span]) -> list[Span]:
    """Return what is left of `spans` where no hole covers them; spans that touch are one."""
    weighed = [*((*span, (1, 0)) for span in spans), *((*hole, (0, 1)) for hole in holes)]
    left = concurrent_sums(weighed)
    return merged((from_at, to_at) for from_at, to_at, (there, covered) in left if there > 0 and covered == 0)
