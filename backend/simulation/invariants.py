"""Invariants of member lists, checked record by record while a run goes on (design section 7; seed 000, Theory).

Each checker looks at installed lists only and remembers what it needs; what it returns names the records that
contradict each other. Two installations are compared only within a life (a uuid) or within a lineage: after a split
both halves rightly publish the same version with different content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from backend.core.events import ListInstalled, Record

View = tuple[str, int]
"""Lineage and version: what identifies a list."""


class Violation(Struct, frozen=True):
    """An invariant that does not hold, in words, and the records that show it."""

    invariant: str
    text: str
    witnesses: tuple[Record, ...]


class Checker(Protocol):
    """One invariant. `observe` is shown every installed list, in the order of the run."""

    def observe(self, record: Record, event: ListInstalled) -> Violation | None: ...


class Watch:
    """All invariants at once. Records that are no installed list cost one look at their type."""

    def __init__(self, checkers: Sequence[Checker] | None = None) -> None:
        self.checkers = tuple(checkers) if checkers is not None else all_checkers()
        self.violations: list[Violation] = []

    def observe(self, record: Record) -> None:
        event = record.event
        if type(event) is ListInstalled:
            for checker in self.checkers:
                if found := checker.observe(record, event):
                    self.violations.append(found)


def all_checkers() -> tuple[Checker, ...]:
    return (
        ViewIntegrity(),
        VersionMonotone(),
        UniqueContent(),
        OneMaster(),
        ViewOrder(),
        AgeOrder(),
        OneAuthor(),
    )


class ViewIntegrity:
    """Every list that a member installs contains this very life of it (M3)."""

    def observe(self, record: Record, event: ListInstalled) -> Violation | None:
        if any(member.uuid == record.uuid for member in event.members):
            return None
        return Violation(
            "view integrity", f"{record.member} installed v{event.version}, which does not contain it", (record,)
        )


class VersionMonotone:
    """Within one life and one lineage the version only grows."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], tuple[int, Record]] = {}

    def observe(self, record: Record, event: ListInstalled) -> Violation | None:
        life = (record.uuid, event.lineage)
        version, witness = self._latest.get(life, (-1, record))
        if event.version > version:
            self._latest[life] = (event.version, record)
            return None
        return Violation(
            "version",
            f"{record.member} installed v{event.version} of {event.lineage} after v{version}",
            (witness, record),
        )


class UniqueContent:
    """One version of a lineage has one content, order included (M4)."""

    def __init__(self) -> None:
        self._first: dict[View, tuple[ListInstalled, Record]] = {}

    def observe(self, record: Record, event: ListInstalled) -> Violation | None:
        first, witness = self._first.setdefault((event.lineage, event.version), (event, record))
        if first.members is event.members or first.members == event.members:
            return None
        return Violation(
            "unique content",
            f"v{event.version} of {event.lineage} has one content at {witness.member} and another at {record.member}",
            (witness, record),
        )


class OneMaster:
    """All who install one version of a lineage follow one master, and it is the oldest on the list."""

    def __init__(self) -> None:
        self._first: dict[View, tuple[str, Record]] = {}

    def observe(self, record: Record, event: ListInstalled) -> Violation | None:
        master, witness = self._first.setdefault((event.lineage, event.version), (event.master, record))
        if event.master != master:
            return Violation(
                "one master",
                f"with v{event.version} of {event.lineage}, {witness.member} follows {master} "
                f"and {record.member} {event.master}",
                (witness, record),
            )
        if event.members and event.members[0].address != master:
            return Violation(
                "one master",
                f"{record.member} follows {master} with v{event.version}, "
                f"whose oldest member is {event.members[0].address}",
                (record,),
            )
        return None


class ViewOrder:
    """Two views installed in one order by one life are never installed in the other order by another (M1).

    Within a lineage versions settle the order, so only lives that went from one lineage to another can contradict each
    other. Their journeys are compared only when somebody went the opposite way before.
    """

    def __init__(self) -> None:
        self._journeys: dict[str, dict[View, Record]] = {}
        self._lineages: dict[str, dict[str, None]] = {}
        self._crossings: dict[tuple[str, str], dict[str, None]] = {}

    def observe(self, record: Record, event: ListInstalled) -> Violation | None:
        view = (event.lineage, event.version)
        journey = self._journeys.setdefault(record.uuid, {})
        lineages = self._lineages.setdefault(record.uuid, {})
        found = None
        for lineage in lineages:
            if lineage != event.lineage:
                for other in self._crossings.get((event.lineage, lineage), ()):
                    if other != record.uuid:
                        found = found or self._opposite(record, view, self._journeys[other])
                self._crossings.setdefault((lineage, event.lineage), {})[record.uuid] = None
        lineages[event.lineage] = None
        journey.setdefault(view, record)
        return found

    def _opposite(self, record: Record, view: View, other: dict[View, Record]) -> Violation | None:
        """The violation if the journey `other` holds `view` before a view that this life installed before it."""
        places = {one: place for place, one in enumerate(other)}
        for earlier, own in self._journeys[record.uuid].items():
            if places.get(view, len(places)) < places.get(earlier, -1):
                return Violation(
                    "view order",
                    f"{record.member} installed v{earlier[1]} of {earlier[0]} before v{view[1]} of {view[0]}, "
                    f"{other[view].member} the other way round",
                    (own, record, other[view], other[earlier]),
                )
        return None


class AgeOrder:
    """From one list of a life to its next, those on both keep their order and newcomers stand at the end (M7)."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[ListInstalled, Record]] = {}
        self._sound: set[tuple[View, View]] = set()
        """Steps from view to view already found in order: all members take the same ones."""

    def observe(self, record: Record, event: ListInstalled) -> Violation | None:
        before = self._latest.get(record.uuid)
        self._latest[record.uuid] = (event, record)
        if before is None:
            return None
        was, witness = before
        step = ((was.lineage, was.version), (event.lineage, event.version))
        if step in self._sound:
            return None
        old = [member.uuid for member in was.members]
        new = [member.uuid for member in event.members]
        present = set(new)
        kept = [uuid for uuid in old if uuid in present]
        if new[: len(kept)] == kept:
            self._sound.add(step)
            return None
        return Violation(
            "age order",
            f"{record.member} went from v{was.version} to v{event.version}, in which the members of both do not stand "
            "first and in the same order",
            (witness, record),
        )


class OneAuthor:
    """Only the master of a lineage changes its list: each comes from the master it names, one author for a lineage."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, Record]] = {}

    def observe(self, record: Record, event: ListInstalled) -> Violation | None:
        author, witness = self._first.setdefault(event.lineage, (event.author, record))
        if event.author != author:
            return Violation(
                "one author", f"{event.lineage} was changed by {author} and by {event.author}", (witness, record)
            )
        if event.author != event.master:
            return Violation(
                "one author",
                f"{record.member} installed v{event.version} from {event.author}, while its master is {event.master}",
                (record,),
            )
        return None
