"""Invariants of installed lists, each checked against the lists alone (Cluster Service Consistency Improvements, Theory)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.invariants.incarnations import IncarnationHistory
from quarterdeck.backend.invariants.invariant import Invariant, PendingObligation, Violation

View = tuple[str, int]
"""Lineage and version, which identify a list."""


class ViewIntegrity(Invariant):
    """Every list that a member installs contains this very incarnation of it (M3)."""

    name = "view integrity"

    def _install(self, record: Record, event: ListInstalled) -> Violation | None:
        if any(member.uuid == record.uuid for member in event.members):
            return None
        return self.violated(f"{record.member} installed v{event.version}, which does not contain it", record)


class VersionMonotone(Invariant):
    """Within one incarnation the version only grows, also from one lineage to another (M1')."""

    name = "version"

    def _install(self, record: Record, event: ListInstalled) -> Violation | None:
        incarnation = self._incarnations.of(record)
        was = incarnation.before
        if was is None or event.version > was.version:
            return None
        now = f"v{event.version} of {event.lineage}"
        text = f"{record.member} installed {now} after v{was.version} of {was.lineage}"
        return self.violated(text, incarnation.before_record, record)


@dataclass(eq=False)
class UniqueContent(Invariant):
    """One version of a lineage has one content, order included (M4)."""

    name = "unique content"

    _first: dict[View, tuple[ListInstalled, Record]] = field(default_factory=dict)

    def _install(self, record: Record, event: ListInstalled) -> Violation | None:
        first, witness = self._first.setdefault((event.lineage, event.version), (event, record))
        if first.members is event.members or first.members == event.members:
            return None
        members = f"one content at {witness.member} and another at {record.member}"
        return self.violated(f"v{event.version} of {event.lineage} has {members}", witness, record)


@dataclass(eq=False)
class OneMaster(Invariant):
    """All who install one version of a lineage follow one master, and it is the oldest on the list."""

    name = "one master"

    _first: dict[View, tuple[str, Record]] = field(default_factory=dict)

    def _install(self, record: Record, event: ListInstalled) -> Violation | None:
        master, witness = self._first.setdefault((event.lineage, event.version), (event.master, record))
        if event.master != master:
            followed = f"{witness.member} follows {master} and {record.member} {event.master}"
            return self.violated(f"with v{event.version} of {event.lineage}, {followed}", witness, record)
        if event.members and event.members[0].address != master:
            view = f"v{event.version}, whose oldest member is {event.members[0].address}"
            return self.violated(f"{record.member} follows {master} with {view}", record)
        return None


@dataclass(eq=False)
class ViewOrder(Invariant):
    """Two views installed in one order by one incarnation are never installed in the other order by another (M1).

    Within a lineage versions settle the order, so only incarnations that went from one lineage to another can contradict each
    other. Their journeys are compared only when another one went the opposite way before.
    """

    name = "view order"

    _journeys: dict[str, dict[View, Record]] = field(default_factory=dict)
    _lineages: dict[str, dict[str, None]] = field(default_factory=dict)
    _crossings: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    def _install(self, record: Record, event: ListInstalled) -> Violation | None:
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
        """Return the violation if `other` holds `view` before a view that this incarnation installed before it."""
        places = {one: place for place, one in enumerate(other)}
        for earlier, own in self._journeys[record.uuid].items():
            if places.get(view, len(places)) < places.get(earlier, -1):
                order = f"v{earlier[1]} of {earlier[0]} before v{view[1]} of {view[0]}"
                text = f"{record.member} installed {order}, {other[view].member} the other way round"
                return self.violated(text, own, record, other[view], other[earlier])
        return None


@dataclass(eq=False)
class AgeOrder(Invariant):
    """From one list of an incarnation to its next, those on both keep order, and newcomers of a lineage stand at its end (M7).

    A joiner that was removed before it heard that it is in may be let in again under the same uuid. It is a newcomer then:
    its join version is greater than the list before.

    A claim may found a lineage on another list than the last one of each who follows it. There those come back whom the other
    master had left out, at the places of their age; and one that two masters let in at about the same time has a join version
    in the lineage of each, so that nothing can be said of its place.
    """

    name = "age order"

    _sound: dict[tuple[View, View], tuple[tuple[Member, ...], tuple[Member, ...]]] = field(default_factory=dict)
    """Steps from view to view already found in order, with their contents: all members take the same ones."""

    def _install(self, record: Record, event: ListInstalled) -> Violation | None:
        incarnation = self._incarnations.of(record)
        was = incarnation.before
        if was is None:
            return None
        step = ((was.lineage, was.version), (event.lineage, event.version))
        contents = (was.members, event.members)
        if self._sound.get(step) == contents:
            return None
        if (_in_place if event.lineage == was.lineage else _in_order)(was, event):
            self._sound[step] = contents
            return None
        step_text = f"{record.member} went from v{was.version} to v{event.version}"
        text = f"{step_text}, in which the members of both do not stand first and in the same order"
        return self.violated(text, incarnation.before_record, record)


@dataclass(eq=False)
class OneAuthor(Invariant):
    """Only the master of a lineage changes its list (M5, M8): each comes from the master it names, one for a lineage."""

    name = "one author"

    _first: dict[str, tuple[Address, str, Record]] = field(default_factory=dict)

    def _install(self, record: Record, event: ListInstalled) -> Violation | None:
        master_uuid = event.members[0].uuid if event.members else ""
        author, uuid, witness = self._first.setdefault(event.lineage, (event.author, master_uuid, record))
        if event.author != author:
            return self.violated(f"{event.lineage} was changed by {author} and by {event.author}", witness, record)
        if master_uuid != uuid:
            text = f"{event.lineage} was changed by two incarnations of {author}: {uuid} and {master_uuid}"
            return self.violated(text, witness, record)
        if event.author != event.master:
            source = f"{event.author}, while its master is {event.master}"
            return self.violated(f"{record.member} installed v{event.version} from {source}", record)
        return None


def _in_place(was: ListInstalled, now: ListInstalled) -> bool:
    """Return whether the members that stayed stand first, in their former order; any of them may have changed its data role."""
    stayed = {member.uuid for member in now.members if member.join_version <= was.version}
    kept = tuple(member for member in was.members if member.uuid in stayed)
    first = now.members[: len(kept)]
    return first == kept or (
        len(first) == len(kept)
        and all(after == replace(before, lite=after.lite) for before, after in zip(kept, first, strict=True))
    )


def _in_order(was: ListInstalled, now: ListInstalled) -> bool:
    """Return whether the members that are on both lists by the same admission stand in one order."""
    on_both = set(was.members) & set(now.members)
    before, after = ([member for member in installed.members if member in on_both] for installed in (was, now))
    return before == after


class ViewAgreement(Invariant):
    """If one incarnation installs a list, then each other one on it installs that one or a later one of its lineage.

    It is excused when a later list of the first does not hold it, or when either of the two ends or merges. As whole lists
    heal the member that missed some, only the present list of each incarnation is owed; so nothing is to be done meanwhile.
    """

    name = "view agreement"

    def pending_obligations(self) -> Iterator[PendingObligation]:
        for incarnation in self._incarnations.by_uuid.values():
            if incarnation.view is not None and incarnation.view_record is not None and not incarnation.ended:
                yield from self._owed_to(incarnation, incarnation.view, incarnation.view_record)

    def _owed_to(
        self, incarnation: IncarnationHistory, view: ListInstalled, record: Record
    ) -> Iterator[PendingObligation]:
        for member in view.members:
            other = self._incarnations.by_uuid.get(member.uuid)
            if other is None or other.ended or other.reached.get(view.lineage, 0) >= view.version:
                continue
            here = f"{incarnation.label} stands at v{view.version} of {view.lineage}"
            missed = self.violated(f"{here}, {other.label} on it never came there", record, other.view_record)
            master = self._incarnations.by_address.get(view.master, incarnation)
            yield PendingObligation(missed, record.at, (incarnation, other, master))
