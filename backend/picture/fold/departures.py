"""Which members left the lists of each lineage without a goodbye, and did not come back or were replaced.

A departure is of a lineage: each half of a split misses the other one. A new lineage begins with what the member that founds it
misses, and with the members that it leaves out. A member that comes back at its address, or another one of its kind that joins
later, ends a departure; so does an end that the member itself reports, since a goodbye leaves no gap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import JoinFailed, ListInstalled, MemberStopped
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.picture.fold.belief import MemberBelief

FAREWELLS = (MemberStopped, JoinFailed)
"""With these an incarnation says itself that it ends."""
FAREWELLS_KEPT = 1_000
LINEAGES_KEPT = 50


class Departure(NamedTuple):
    """A member that is on the list no more."""

    member: Member
    at_us: int
    version: int
    """The version of the first list without it."""


class _LatestList(NamedTuple):
    version: int
    members: tuple[Member, ...]
    departures: tuple[Departure, ...]


class Departures:
    """The departures of each lineage so far."""

    def __init__(self) -> None:
        self._latest: dict[str, _LatestList] = {}
        self._farewells: dict[str, None] = {}

    def copy(self) -> Departures:
        """Return the same departures, to go their own way from here."""
        twin = Departures()
        twin._latest, twin._farewells = self._latest.copy(), self._farewells.copy()
        return twin

    def of(self, lineage: str) -> tuple[Departure, ...]:
        """Return the members that the cluster of a lineage misses, the one that left first before the others."""
        latest = self._latest.get(lineage)
        return () if latest is None else latest.departures

    def bid_farewell(self, incarnation: str) -> None:
        """Note that an incarnation ends by its own decision."""
        self._farewells[incarnation] = None
        if len(self._farewells) > FAREWELLS_KEPT:
            del self._farewells[next(iter(self._farewells))]
        for lineage, latest in list(self._latest.items()):
            if any(departure.member.uuid == incarnation for departure in latest.departures):
                self._latest[lineage] = latest._replace(departures=self._without_farewells(latest.departures))

    def install(self, belief: MemberBelief, event: ListInstalled, at_us: int) -> None:
        """Note the list that a member installs next; `belief` still has the one before."""
        latest = self._latest.get(event.lineage)
        if latest is None:
            known = self._latest.get(belief.lineage)
            inherited = () if known is None else known.departures
            inherited = tuple(departure for departure in inherited if departure.version <= belief.version)
            latest = _LatestList(-1, belief.members or event.members, inherited)
            for former in list(self._latest)[: 1 - LINEAGES_KEPT]:
                del self._latest[former]
        if event.version <= latest.version:
            return
        if event.members != latest.members:
            departures = _after(latest, event, at_us)
            latest = latest._replace(departures=self._without_farewells(departures))
        self._latest[event.lineage] = latest._replace(version=event.version, members=event.members)

    def forget(self, addresses: Collection[Address]) -> None:
        """Miss no member at these addresses any more."""
        for lineage, latest in list(self._latest.items()):
            left = tuple(departure for departure in latest.departures if departure.member.address not in addresses)
            self._latest[lineage] = latest._replace(departures=left)

    def _without_farewells(self, departures: Iterable[Departure]) -> tuple[Departure, ...]:
        return tuple(departure for departure in departures if departure.member.uuid not in self._farewells)


def _after(latest: _LatestList, event: ListInstalled, at_us: int) -> list[Departure]:
    """Return who is missed after a new list: its newcomers are back, or replace whoever left before them."""
    before = {member.uuid for member in latest.members}
    listed = {member.uuid for member in event.members}
    departures = [*latest.departures]
    departures += (Departure(member, at_us, event.version) for member in latest.members if member.uuid not in listed)
    for newcomer in (member for member in event.members if member.uuid not in before):
        back = [departure for departure in departures if departure.member.address == newcomer.address]
        left_before = (
            departure
            for departure in departures
            if departure.version < event.version and departure.member.lite == newcomer.lite
        )
        ended = back or [departure for departure in (next(left_before, None),) if departure is not None]
        departures = [departure for departure in departures if departure not in ended]
    return departures
