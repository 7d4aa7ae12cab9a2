"""Partial disconnections: which members stay, and which may not come back yet.

The rules are those of Partial Member Disconnection Resolution; Decisions: Equal cliques and Readmission.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.invariants.incarnations import IncarnationHistory
from quarterdeck.backend.invariants.invariant import Invariant, Violation

MOST_RECOMPUTED = 12
"""The number of members in conflict up to which a decision is compared with all 4096 other possible decisions."""

MOST_REMOVALS = 3
"""So often a master may remove a member of which no link and no process was touched: timers may meet badly, but not for ever."""

Conflict = frozenset[Address]


@dataclass(eq=False)
class FullyConnected(Invariant):
    """A master's decision leaves no reported conflict between two who stay, removes only who was in one, and no more than needed.

    M15 and M16. Most data members stay, then most members; which of equal ones is not judged here.
    """

    name = "full connection"

    _reports: dict[str, dict[Address, events.DisconnectionReported]] = field(default_factory=dict)
    """By master and reporter."""
    _recorded: dict[str, dict[Address, Record]] = field(default_factory=dict)

    def _report(self, record: Record, event: events.DisconnectionReported) -> None:
        self._reports.setdefault(record.uuid, {})[event.reporter] = event
        self._recorded.setdefault(record.uuid, {})[event.reporter] = record

    def _remove(self, record: Record, event: events.MemberRemoved) -> None:
        reports = self._reports.get(record.uuid)
        if reports:
            reports.pop(event.address, None)
            for reporter, report in reports.items():
                left = tuple(address for address in report.suspects if address != event.address)
                reports[reporter] = events.DisconnectionReported(reporter, left)

    def _resolve(self, record: Record, event: events.DisconnectionResolved) -> Violation | None:
        reports, recorded = self._reports.pop(record.uuid, {}), self._recorded.pop(record.uuid, {})
        members = self._incarnations.of(record).members
        places = {member.address: place for place, member in enumerate(members)}
        # A conflict that names the master, who is the first, or a member that is gone, does not count.
        pairs = ((reporter, suspect) for reporter, report in reports.items() for suspect in report.suspects)
        conflicts = {frozenset(pair) for pair in pairs if all(map(places.get, pair))}
        text = _flaw(event, members, conflicts)
        if text is None:
            return None
        return self.violated(f"{record.member} {text}", *recorded.values(), record)


@dataclass(eq=False)
class NoFlapping(Invariant):
    """A member that a master removed for a partial disconnection stays out while a link of it is blocked (M17).

    No member whose own links are sound is removed again and again. A removed member has to prove its links before it comes back.
    So only links that were blocked all the time since the proof could begin are held against the master: since the incarnation
    that joins began, or since the removal when that incarnation came with a merge. A member that is removed over and over with
    sound links pays for another one, which does not get lists, say (Decisions: Unacknowledged lists).
    """

    name = "no flapping"

    _removed: dict[str, dict[Address, Record]] = field(default_factory=dict)
    """By master: whom it removed so, and when."""
    _sound: dict[str, list[Record]] = field(default_factory=dict)
    """By label: the removals of a member since anything was done to it or to a link of it."""

    def _touch_link(self, record: Record, event: LinkChanged) -> None:
        self._sound.pop(event.source, None)
        self._sound.pop(event.target, None)

    def _touch(self, record: Record, event: ProcessKilled | ProcessPaused | ProcessResumed) -> None:
        self._sound.pop(event.target, None)

    def _resolve(self, record: Record, event: events.DisconnectionResolved) -> Violation | None:
        self._removed.setdefault(record.uuid, {}).update(dict.fromkeys(event.remove, record))
        for address in event.remove:
            member = self._incarnations.by_address.get(address)
            if member is None or member.paused or self._incarnations.has_disturbed_link(member):
                continue
            removals = self._sound.setdefault(member.label, [])
            removals.append(record)
            if len(removals) > MOST_REMOVALS:
                del self._sound[member.label]
                text = f"{record.member} removed {address} {len(removals)} times, although nothing was done to it or its links"
                return self.violated(text, *removals)
        return None

    def _install(self, record: Record, event: events.ListInstalled) -> Violation | None:
        removed = self._removed.get(record.uuid)
        if not removed:
            return None
        before = self._incarnations.of(record).before
        present = {member.uuid for member in before.members} if before is not None else set()
        for member in event.members:
            if member.uuid not in present and member.address in removed:
                witness = removed.pop(member.address)
                newcomer = self._incarnations.by_uuid.get(member.uuid)
                block = self._block(newcomer, event.members, witness) if newcomer is not None else None
                if block is not None:
                    what = "in again, although a link to a member is still blocked"
                    return self.violated(f"{record.member} took {member.address} {what}", witness, block, record)
        return None

    def _block(self, newcomer: IncarnationHistory, members: Sequence[Member], removed: Record) -> Record | None:
        since_us = newcomer.started.at if newcomer.started and not newcomer.merged_from else removed.at
        for member in members:
            other = self._incarnations.by_uuid.get(member.uuid)
            if other is None or other is newcomer:
                continue
            block = self._incarnations.blocked_since(newcomer, other)
            if block is not None and block.at <= since_us:
                return block
        return None


def _flaw(event: events.DisconnectionResolved, members: Sequence[Member], conflicts: set[Conflict]) -> str | None:
    if sorted((*event.keep, *event.remove)) != sorted(member.address for member in members):
        return "decided about others than its members"
    for one, other in combinations(event.keep, 2):
        if frozenset((one, other)) in conflicts:
            return f"keeps {one} and {other}, between whom a disconnection was reported"
    disputed = [member for member in members if any(member.address in conflict for conflict in conflicts)]
    for address in event.remove:
        if all(member.address != address for member in disputed):
            return f"removes {address}, of whom no disconnection was reported"
    if event.exact and len(disputed) <= MOST_RECOMPUTED:
        kept = set(event.keep)
        worth = _worth([member for member in disputed if member.address in kept])
        best = max(map(_worth, _possible(disputed, conflicts)))
        if worth < best:
            kept_text = f"{worth[1]} of the members in conflict, {worth[0]} with data"
            return f"keeps {kept_text}; {best[1]} and {best[0]} could stay"
    return None


def _worth(members: Sequence[Member]) -> tuple[int, int]:
    return sum(not member.lite for member in members), len(members)


def _possible(disputed: Sequence[Member], conflicts: set[Conflict]) -> Iterator[tuple[Member, ...]]:
    """Yield every choice of members without a conflict between any two."""
    for size in range(len(disputed) + 1):
        for chosen in combinations(disputed, size):
            if not any(frozenset((a.address, b.address)) in conflicts for a, b in combinations(chosen, 2)):
                yield chosen
