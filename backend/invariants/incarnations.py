"""The facts of a run that all invariants need: the incarnations, their lists and suspicions, and the faults.

Everything comes from the records. It is kept once for all of them, and updated before any of them looks at the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import permutations

from quarterdeck.backend.commands.links import set_condition
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.invariants.event_rules import EventRules


@dataclass(slots=True, eq=False)
class IncarnationHistory:
    """The recorded facts of one uuid: its address, its present and its former belief, its suspicions."""

    label: str
    uuid: str
    address: Address | None = None
    """None until a record says it."""
    started: Record | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """The recorded properties that differ from the documented defaults."""
    merged_from: str = ""
    merge_target: str = ""
    """The winner that the incarnation merges into, once its last event has said so: the incarnation that led the winner then."""
    ended: bool = False
    paused: bool = False
    view: events.ListInstalled | None = None
    view_record: Record | None = None
    before: events.ListInstalled | None = None
    """The list before `view`."""
    before_record: Record | None = None
    reached: dict[str, int] = field(default_factory=dict)
    """The latest version it installed of each lineage."""
    suspected: dict[str, Record] = field(default_factory=dict)
    """The incarnations that it suspects, and since which record."""

    @property
    def members(self) -> tuple[Member, ...]:
        """The members on its list; none before its first one."""
        return self.view.members if self.view is not None else ()

    def is_author_of(self, event: events.ListInstalled) -> bool:
        """Return whether this incarnation made the list itself, as a master does."""
        return event.author == self.address

    def older(self) -> tuple[Member, ...]:
        return self.members[: next((place for place, one in enumerate(self.members) if one.uuid == self.uuid), 0)]


class RunIncarnations(EventRules):
    """All incarnations of a run, by uuid, by label and by address, and the faults that trouble them."""

    def __init__(self) -> None:
        self.by_uuid: dict[str, IncarnationHistory] = {}
        self.by_label: dict[str, IncarnationHistory] = {}
        self.by_address: dict[Address, IncarnationHistory] = {}
        """The latest incarnation of each label and address."""
        self.disturbed_us = 0
        """When something was last done to the cluster: a process or a link was changed, an incarnation began or ended.

        0 before the first of these, also where the records begin much later: what is owed is owed since one of them at the
        earliest, so that no wait is longer than they go."""
        self._conditions: dict[tuple[str, str], LinkChanged] = {}
        self._blocked_since: dict[tuple[str, str], Record] = {}

    def of(self, record: Record) -> IncarnationHistory:
        """Return the incarnation of this record; an unknown one is as it was born, and stays unknown."""
        return self.by_uuid.get(record.uuid) or IncarnationHistory(record.member, record.uuid)

    def _begun(self, record: Record) -> IncarnationHistory:
        """Return the incarnation of this record; one that was never seen to start begins with it."""
        incarnation = self.by_uuid.get(record.uuid)
        if incarnation is None:
            incarnation = self.by_uuid[record.uuid] = IncarnationHistory(record.member, record.uuid)
            self.by_label[record.member] = incarnation
        return incarnation

    def ended_by(self, record: Record) -> str:
        """Return the incarnation that a record of an end is about: its own, or that of the process that was killed, if known."""
        if not isinstance(record.event, ProcessKilled):
            return record.uuid
        incarnation = self.by_label.get(record.event.target)
        return incarnation.uuid if incarnation is not None else ""

    def has_disturbed_link(self, one: IncarnationHistory) -> bool:
        return any(one.label in link for link in self._conditions)

    def blocked_since(self, one: IncarnationHistory, other: IncarnationHistory) -> Record | None:
        """Return the record that blocked the link between two incarnations, in either direction, or None while it is open."""
        there = self._blocked_since.get((one.label, other.label))
        back = self._blocked_since.get((other.label, one.label))
        return min(filter(None, (there, back)), key=lambda record: record.at, default=None)

    def disturbance(self, parties: Iterable[IncarnationHistory]) -> str:
        """Return the fault that keeps these incarnations from talking to one another now; empty when they can talk."""
        parties = tuple(dict.fromkeys(parties))
        for incarnation in parties:
            if incarnation.paused:
                return f"{incarnation.label} is paused"
        for one, other in permutations(parties, 2):
            if (one.label, other.label) in self._conditions:
                return f"the link from {one.label} to {other.label} is disturbed"
        return ""

    def _install(self, record: Record, event: events.ListInstalled) -> None:
        incarnation = self._begun(record)
        if incarnation.address is None:
            here = next((member.address for member in event.members if member.uuid == record.uuid), None)
            if here is not None:
                incarnation.address = here
                self.by_address[here] = incarnation
        incarnation.before, incarnation.before_record = incarnation.view, incarnation.view_record
        incarnation.view, incarnation.view_record = event, record
        incarnation.reached[event.lineage] = event.version
        if incarnation.suspected:
            listed = {member.uuid for member in event.members}
            incarnation.suspected = {uuid: since for uuid, since in incarnation.suspected.items() if uuid in listed}

    def _suspect(self, record: Record, event: events.SuspicionRaised) -> None:
        self._begun(record).suspected[event.suspect_uuid] = record

    def _trust(self, record: Record, event: events.SuspicionCleared) -> None:
        self._begun(record).suspected.pop(event.suspect_uuid, None)

    def _start(self, record: Record, event: events.MemberStarted) -> None:
        incarnation = self._begun(record)
        if (
            incarnation.started is None
        ):  # an incarnation begins once: a second beginning, of a damaged journal, does not move it
            incarnation.address, incarnation.started, incarnation.merged_from = event.address, record, event.merged_from
            incarnation.settings = event.settings or {}
            self.by_address[event.address] = incarnation
        self.disturbed_us = record.at

    def _stop(self, record: Record, event: events.MemberStopped) -> None:
        self._begun(record).ended = True
        self.disturbed_us = record.at

    def _merge(self, record: Record, event: events.MemberMerging) -> None:
        incarnation = self._begun(record)
        incarnation.ended = True
        if winner := self.by_address.get(event.target):
            incarnation.merge_target = winner.uuid
        self.disturbed_us = record.at

    def _kill(self, record: Record, event: ProcessKilled) -> None:
        self.disturbed_us = record.at
        if incarnation := self.by_label.get(event.target):
            incarnation.ended = True

    def _pause(self, record: Record, event: ProcessPaused) -> None:
        self.disturbed_us = record.at
        if incarnation := self.by_label.get(event.target):
            incarnation.paused = True

    def _resume(self, record: Record, event: ProcessResumed) -> None:
        self.disturbed_us = record.at
        if incarnation := self.by_label.get(event.target):
            incarnation.paused = False

    def _change_link(self, record: Record, event: LinkChanged) -> None:
        self.disturbed_us = record.at
        link = (event.source, event.target)
        set_condition(self._conditions, event)
        if event.blocked:
            self._blocked_since.setdefault(link, record)
        else:
            self._blocked_since.pop(link, None)
