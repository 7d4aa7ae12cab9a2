"""The faults in force: who made the network or the processes worse, folded back from what became of each link.

The records are about single one-way links. Those that got worse at one time in one way are one fault, shown as the command
that made it would be: a partition, a cut, a slow link.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from quarterdeck.backend.core.commands import Command, HealLink, ResumeMember, StartMember
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import vertices_of
from quarterdeck.backend.picture.events.faults import (
    GLYPHS,
    Impairment,
    ImpairmentKind,
    commands_for,
    heading_of,
    impairments_of,
    neutral,
)
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.network.fault_shapes import (
    LinkRows,
    Shape,
    difference,
    intersection,
    links_in,
    shapes_of,
    sources_by_targets,
    transposed,
    union,
)
from quarterdeck.backend.picture.text.formatting import Refusal, age_text, counted, one_line

BURST_US = 100_000
"""The time within which impairments count as of one command."""

NAMES_SHOWN = 6
"""The number of members of a side that a text names; it counts the rest."""

ImpairmentWord = ImpairmentKind | Literal["one-way"]
"""The worst impairment of a link. It is "one-way" when the link is cut and the way back is not."""

StopKind = Literal["paused", "killed"]

FaultKind = Literal["partition", "cut", "one-way", "slow", "lossy", "doubling", "dropping", "paused", "killed"]

STOP_GLYPHS: dict[StopKind, str] = {"paused": "‖", "killed": "†"}


@dataclass(frozen=True, slots=True)
class ActiveFault:
    """One fault on purpose, and the command that ends it."""

    key: str
    """The same as long as the fault is the same."""
    kind: FaultKind
    glyph: str
    text: str
    """The fault in one line, much as one would command it."""
    members: tuple[str, ...]
    links: int
    """How many one-way links it is made of."""
    since_us: int | None
    """When it was made, on the run's clock; None when that was before the first record at hand."""
    undo: tuple[Command, ...]
    """The commands that end this fault and leave all others as they are."""

    def age(self, now_us: int) -> str:
        return "?" if self.since_us is None else age_text(now_us - self.since_us)


class FaultLedger:
    """Takes in records, and knows since when each link has been as it is."""

    def __init__(self, labels: Iterable[str] = ()) -> None:
        """Texts name members in the order of `labels`, strangers behind."""
        self._labels = list(labels)
        self._place_of = {label: place for place, label in enumerate(self._labels)}
        self._runs: dict[Impairment, dict[int | None, LinkRows]] = {}
        """The links, by impairment and its beginning (None: before the first record)."""
        self._stopped: dict[str, tuple[StopKind, int | None]] = {}
        self._burst_us: int | None = None
        self._latest_us = 0
        self._found: tuple[ActiveFault, ...] | None = ()
        self.revision = 0
        """Grows with each change."""

    @classmethod
    def of(cls, picture: Picture, records: Iterable[Record], labels: Iterable[str] = ()) -> FaultLedger:
        """Return the faults in `picture`; their age comes from `records`, the latest of its records."""
        known = cls()
        for record in records:
            known.take(record)
        ledger = cls(labels)
        for link in picture.links.values():
            for impairment in impairments_of(link):
                ledger._add(impairment, known._since(impairment, link.source, link.target), link.source, link.target)
        for label, belief in picture.members.items():
            if belief.status == "paused" or belief.status == "killed":
                kind, since_us = known._stopped.get(label, (belief.status, None))
                ledger._stopped[label] = (belief.status, since_us if kind == belief.status else None)
        ledger._burst_us, ledger._latest_us = known._burst_us, known._latest_us
        ledger._found = None
        return ledger

    def take(self, record: Record) -> None:
        """Take in one record; most are none of its business."""
        match record.event:
            case LinkChanged():
                self._change_link(record.event, record.at)
            case ProcessKilled(target):
                self._stopped[target] = ("killed", record.at)
            case ProcessPaused(target):
                self._stopped.setdefault(target, ("paused", record.at))
            case ProcessResumed(target):
                self._stopped.pop(target, None)
            case events.MemberStarted():
                if self._stopped.pop(record.member, None) is None:
                    return
            case _:
                return
        self._found = None
        self.revision += 1

    def faults(self) -> tuple[ActiveFault, ...]:
        """Everything in force, the latest first."""
        if self._found is None:
            found = [*self._link_faults(), *self._stop_faults()]
            found.sort(key=lambda fault: (-(fault.since_us if fault.since_us is not None else -1), fault.key))
            self._found = tuple(found)
        return self._found

    def link_counts(self) -> Mapping[ImpairmentWord, int]:
        """Return the number of one-way links in each condition, each counted once, by its worst impairment."""
        seen: LinkRows = {}
        counts: dict[ImpairmentWord, int] = {}
        for kind in GLYPHS:
            rows: LinkRows = {}
            for impairment, runs in self._runs.items():
                for links in runs.values() if impairment.kind == kind else ():
                    rows = union(rows, links)
            rows, seen = difference(rows, seen), union(seen, rows)
            both = intersection(rows, transposed(rows)) if kind == "cut" else rows
            words: tuple[tuple[ImpairmentWord, LinkRows], ...] = ((kind, both), ("one-way", difference(rows, both)))
            counts |= {word: links_in(found) for word, found in words if found}
        return counts

    def wrong_among(self, labels: Iterable[str]) -> int:
        """How many one-way links between `labels` are not as plain as can be."""
        among = sum(1 << place for label in labels if (place := self._place_of.get(label)) is not None)
        wrong: LinkRows = {}
        for runs in self._runs.values():
            for rows in runs.values():
                wrong = union(wrong, rows)
        return sum((targets & among).bit_count() for source, targets in wrong.items() if among >> source & 1)

    # Taking in

    def _change_link(self, link: LinkChanged, at_us: int) -> None:
        if self._burst_us is None or at_us - self._latest_us > BURST_US:
            self._burst_us = at_us
        self._latest_us = at_us
        wanted = set(impairments_of(link))
        source, target = self._place(link.source), self._place(link.target)
        for impairment in list(self._runs):
            for since_us, rows in list(self._runs[impairment].items()):
                if rows.get(source, 0) >> target & 1 and impairment not in wanted:
                    self._remove(impairment, since_us, source, target)
                elif rows.get(source, 0) >> target & 1:
                    wanted.discard(impairment)
        for impairment in wanted:
            self._add(impairment, self._burst_us, link.source, link.target)

    def _add(self, impairment: Impairment, since_us: int | None, source: str, target: str) -> None:
        rows = self._runs.setdefault(impairment, {}).setdefault(since_us, {})
        place = self._place(source)
        rows[place] = rows.get(place, 0) | 1 << self._place(target)

    def _remove(self, impairment: Impairment, since_us: int | None, source: int, target: int) -> None:
        runs = self._runs[impairment]
        rows = runs[since_us]
        rows[source] &= ~(1 << target)
        if not rows[source]:
            del rows[source]
        if not rows:
            del runs[since_us]
        if not runs:
            del self._runs[impairment]

    def _since(self, impairment: Impairment, source: str, target: str) -> int | None:
        one, other = self._place(source), self._place(target)
        runs = self._runs.get(impairment, {}).items()
        return next((since_us for since_us, rows in runs if rows.get(one, 0) >> other & 1), None)

    def _place(self, label: str) -> int:
        place = self._place_of.get(label)
        if place is None:
            place = self._place_of[label] = len(self._labels)
            self._labels.append(label)
        return place

    # Putting together

    def _stop_faults(self) -> Iterator[ActiveFault]:
        for label, (kind, since_us) in self._stopped.items():
            undo = ResumeMember(label) if kind == "paused" else StartMember(label)
            text = one_line(f"{'pause' if kind == 'paused' else 'kill'} {label}")
            yield ActiveFault(f"{kind} {label}", kind, STOP_GLYPHS[kind], text, (label,), 0, since_us, (undo,))

    def _link_faults(self) -> Iterator[ActiveFault]:
        for impairment, runs in self._runs.items():
            every: LinkRows = {}
            for rows in runs.values():
                every = union(every, rows)
            for since_us in sorted(runs, key=lambda at_us: -1 if at_us is None else at_us, reverse=True):
                begun = intersection(runs[since_us], every)
                shapes, left = shapes_of(begun, every, many_sides=impairment.kind == "cut")
                for shape in shapes:
                    every = difference(every, shape.rows())
                    yield self._fault(impairment, shape, since_us)
                if left:
                    every = difference(every, left)
                    yield self._rest(impairment, left, since_us)

    def _fault(self, impairment: Impairment, shape: Shape, since_us: int | None) -> ActiveFault:
        kind: FaultKind = impairment.kind
        if impairment.kind == "cut":
            single = all(side.bit_count() == 1 for side in shape.sides) and len(shape.sides) == 2
            kind = "one-way" if shape.one_way else "cut" if single else "partition"
        key, glyph = f"{impairment} {since_us} {shape.sides} {shape.one_way}", GLYPHS[impairment.kind]
        text, undo = one_line(self._text(impairment, shape, kind)), self._undo(impairment, shape)
        members, links = self._names(sum(shape.sides)), links_in(shape.rows())
        return ActiveFault(key, kind, glyph, text, members, links, since_us, undo)

    def _text(self, impairment: Impairment, shape: Shape, kind: FaultKind) -> str:
        sides = [self._shortened(side) for side in shape.sides]
        how = "" if impairment.value == "blackhole" else f" ({impairment.value})"
        if impairment.kind != "cut":
            return f"{heading_of(impairment)}: {(' → ' if shape.one_way else ' ↔ ').join(sides)}"
        if kind == "partition":
            return f"partition {'|'.join(sides)}{how}"
        return f"cut {' '.join(sides)}{' one-way' if shape.one_way else ''}{how}"

    def _undo(self, impairment: Impairment, shape: Shape) -> tuple[Command, ...]:
        if impairment.kind != "cut":
            sources, targets = (self._names(side) for side in shape.sides)
            return commands_for(neutral(impairment), sources, targets, one_way=shape.one_way)
        heal = [
            HealLink(self._names(side), self._names(sum(shape.sides[place + 1 :])))
            for place, side in enumerate(shape.sides[:-1])
        ]
        touched = union(shape.rows(), transposed(shape.rows()))
        return (*heal, *self._restoring(impairment, touched))

    def _restoring(self, healed: Impairment, touched: LinkRows) -> Iterator[Command]:
        """Healing makes links plain: other impairments have to be commanded again."""
        for impairment, runs in self._runs.items():
            for rows in runs.values() if impairment != healed else ():
                for targets, sources in sources_by_targets(intersection(rows, touched)).items():
                    yield from commands_for(impairment, self._names(sources), self._names(targets), one_way=True)

    def _rest(self, impairment: Impairment, rows: LinkRows, since_us: int | None) -> ActiveFault:
        links = links_in(rows)
        undo: list[Command] = []
        touched = union(rows, transposed(rows))
        for source, targets in rows.items():
            ends = ((self._labels[source],), self._names(targets))
            if impairment.kind == "cut":
                undo.append(HealLink(*ends))
            else:
                undo += commands_for(neutral(impairment), *ends, one_way=True)
        if impairment.kind == "cut":
            undo += self._restoring(impairment, touched)
        kind, key = impairment.kind, f"{impairment} {since_us} rest"
        text = one_line(f"{heading_of(impairment)}: {counted(links, 'one-way link')} more")
        members = self._names(sum(1 << place for place in touched))
        return ActiveFault(key, kind, GLYPHS[kind], text, members, links, since_us, tuple(undo))

    def _names(self, members: int) -> tuple[str, ...]:
        return tuple(self._labels[place] for place in vertices_of(members))

    def _shortened(self, members: int) -> str:
        names = self._names(members)
        more = len(names) - NAMES_SHOWN
        return ",".join(names[:NAMES_SHOWN]) + (f",… {more} more" if more > 0 else "")


class NothingToUndo(Refusal):
    """The fault does not exist; the message names the present faults."""


def undo_commands(faults: Sequence[ActiveFault], text: str, chosen: ActiveFault | None = None) -> Sequence[Command]:
    """Return what undoes a fault: that of the number in `text`, else the `chosen` one, else the latest.

    Raises:
        NothingToUndo: There is no such fault.
    """
    if not faults:
        raise NothingToUndo("no fault is in force")
    if not text:
        return (chosen or faults[0]).undo
    if not text.isdecimal() or not 1 <= int(text) <= len(faults):
        raise NothingToUndo(f"there is no fault {text!r}; there are {len(faults)}, the latest has number 1")
    return faults[int(text) - 1].undo
