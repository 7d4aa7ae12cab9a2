"""All incarnations at one address, one after the other, as far as somebody who is connected to it can tell.

A member is another incarnation after a merge and after a restart. What was seen in between tells which of the two it was, where
it was seen; where it was not, neither is claimed: the new incarnation begins, and of the end of the one before nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, MemberMerging, MemberStarted
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import Aspect, ConnectionChanged, ConnectionState, Source
from quarterdeck.backend.hazelcast.witness.incarnation import OF_MASTERS, WitnessedIncarnation

LIST_US = 2 * SECOND_US
"""For so long the first list of a new incarnation is waited for: it tells whether the member has merged."""

STAYED_US = SECOND_US
"""A process that answers again so soon is the one that answered before: none starts so quickly."""

LISTED_US = 10 * SECOND_US
"""After so long an incarnation that others list, and that cannot be reached, is told of as such."""


class WitnessedEvent(NamedTuple):
    """Something that happened to an incarnation."""

    uuid: str
    event: Event


class _Arrival(NamedTuple):
    """A new incarnation has answered, and has not told a list yet."""

    uuid: str
    software: str
    at_us: int


class MemberWitness:
    """What is heard of one address, in order. Each method gives what follows from one thing that was heard."""

    def __init__(
        self, address: Address, by: Sequence[Source] = ("client-protocol",), aspects: Sequence[Aspect] = ()
    ) -> None:
        """`aspects` are those that other sources than the connection tell."""
        self.address = address
        self.incarnation: WitnessedIncarnation | None = None
        self._by, self._aspects = by, aspects
        self._connection: tuple[ConnectionState, str] | None = None
        self._arrival: _Arrival | None = None
        self._lost_us: int | None = None
        """When the connection to the last incarnation was lost."""
        self._not_ready_us: int | None = None
        """When somebody answered here since then who was not ready."""
        self._listed: tuple[str, int] | None = None
        """The incarnation that others list here, and since when."""
        self._was_listed = False

    @property
    def is_known(self) -> bool:
        """Whether a member was ever heard here, or is on somebody's list."""
        return self.incarnation is not None or self._arrival is not None or self._was_listed

    @property
    def is_connected(self) -> bool:
        """Whether it answers now."""
        return self._connection is not None and self._connection[0] == "connected"

    # How it is reached

    def answered(self, uuid: str, software: str, now_us: int) -> Iterator[WitnessedEvent]:
        """A connection stands to the incarnation `uuid`, whose program is of this version."""
        yield from self._arrive(None)
        if self.incarnation is not None and self.incarnation.uuid == uuid:
            yield from self._reached("connected", software)
            self._lost_us = self._not_ready_us = None
        else:
            self._arrival = _Arrival(uuid, software, now_us)

    def speaks(self, uuid: str, now_us: int) -> Iterator[WitnessedEvent]:
        """The incarnation `uuid` has said something: so it is there, whatever was seen before."""
        if self._arrival is not None and self._arrival.uuid == uuid:
            return
        known = self.incarnation is not None and self.incarnation.uuid == uuid
        if not known or (self._connection is not None and self._connection[0] != "connected"):
            yield from self.answered(uuid, "", now_us)

    def unreachable(self, state: ConnectionState, reason: str, now_us: int) -> Iterator[WitnessedEvent]:
        """There is no connection, or it is silent."""
        yield from self._arrive(None)
        if self._lost_us is None:
            self._lost_us = now_us
        if state == "merging" and self._not_ready_us is None:
            self._not_ready_us = now_us
        yield from self._reached(state, reason)

    def listed(self, uuid: str, now_us: int) -> None:
        """Somebody else has this incarnation on its list."""
        if self._listed is None or self._listed[0] != uuid:
            self._listed, self._was_listed = (uuid, now_us), True

    def wake(self, now_us: int) -> Iterator[WitnessedEvent]:
        """Time has passed: whatever has waited long enough is told."""
        if self._arrival is not None and now_us - self._arrival.at_us >= LIST_US:
            yield from self._arrive(None)
        if self._listed is not None and now_us - self._listed[1] >= LISTED_US:
            yield from self._tell_of_listed(self._listed[0])
        if self.incarnation is not None:
            yield from self.told(lambda one: one.wake(now_us))

    def logs_tell(self, by: Sequence[Source], aspects: Sequence[Aspect]) -> Iterator[WitnessedEvent]:
        """Its log is read as well, from now on."""
        self._by, self._aspects = by, aspects
        if self.incarnation is not None:
            for event in self.incarnation.logs_tell(by, aspects):
                yield WitnessedEvent(self.incarnation.uuid, event)

    # What it tells

    def list_told(self, version: int, members: tuple[Member, ...]) -> Iterator[WitnessedEvent]:
        """The list of the incarnation that is connected."""
        yield from self._arrive(members)
        yield from self.told(lambda one: one.list_told(version, members))

    def told(self, take: Callable[[WitnessedIncarnation], Iterable[Event]]) -> Iterator[WitnessedEvent]:
        """What the incarnation that is connected makes of something that it has told."""
        yield from self._arrive(None)
        if self.incarnation is not None:
            for event in take(self.incarnation):
                yield WitnessedEvent(self.incarnation.uuid, event)

    # Incarnations

    def _arrive(self, members: tuple[Member, ...] | None) -> Iterator[WitnessedEvent]:
        """The incarnation that has answered begins, if there is one; `members` is its first list."""
        arrival, before = self._arrival, self.incarnation
        if arrival is None:
            return
        self._arrival = None
        merged_from = ""
        if before is not None and members and self._has_merged(before, members[0]):
            merged_from = before.uuid
            yield WitnessedEvent(before.uuid, MemberMerging(members[0].address, arrival.uuid))
        leads = bool(members and members[0].uuid == arrival.uuid)
        yield from self._begin(arrival.uuid, ("owners", *(OF_MASTERS if leads else ())))
        if before is not None or self._not_ready_us is not None:  # else it was there before anybody looked
            lite = any(one.lite for one in members or () if one.uuid == arrival.uuid)
            yield WitnessedEvent(arrival.uuid, MemberStarted(self.address, lite, (), merged_from))
        self._lost_us = self._not_ready_us = self._connection = None
        yield from self._reached("connected", arrival.software)

    def _has_merged(self, before: WitnessedIncarnation, master: Member) -> bool:
        """Whether its process went on as another incarnation in the cluster of `master`: it answered again too soon for another
        process, and follows somebody whom it did not follow before."""
        if self._lost_us is None or self._not_ready_us is None or not before.lineage:
            return False
        stayed = self._not_ready_us - self._lost_us < STAYED_US
        return stayed and master.uuid != before.lineage and master.address != self.address

    def _begin(self, uuid: str, aspects: Sequence[Aspect]) -> Iterator[WitnessedEvent]:
        self.incarnation = WitnessedIncarnation(self.address, uuid, self._by, (*self._aspects, *aspects))
        yield WitnessedEvent(uuid, self.incarnation.witnessed())

    def _tell_of_listed(self, uuid: str) -> Iterator[WitnessedEvent]:
        """Others list it, and it was not reached for long: all that is known of it is that."""
        self._listed = None
        known = self.incarnation is not None and self.incarnation.uuid == uuid
        if known or self._connection is None or self._connection[0] == "connected" or self._arrival is not None:
            return
        state, reason = self._connection
        yield from self._begin(uuid, ())
        yield WitnessedEvent(uuid, ConnectionChanged(state, reason))

    def _reached(self, state: ConnectionState, reason: str) -> Iterator[WitnessedEvent]:
        is_new = self._connection is None or self._connection[0] != state
        self._connection = state, reason
        if is_new and self.incarnation is not None:
            yield WitnessedEvent(self.incarnation.uuid, ConnectionChanged(state, reason))
