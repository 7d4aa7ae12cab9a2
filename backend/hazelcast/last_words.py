"""What the silence of a member proves, and what it does not. This is the one place that decides it.

* The last line of a log proves that its member was there then. It proves nothing of the time after it.
* A member has ended when it says so, when its process starts again, or when a connection to its address is refused. It has left
  when it asked its master to let it leave.
* Who removed whom is a statement of the remover. A member that has left the remover off its own list is on the other side of a
  separation, and goes on there. A member that such a one lists has accepted its claim, and goes on with it.
* A member that is removed, does not say so itself, and says nothing although it should have noticed: of that one, nothing is
  known from its last words on. It has ended, is frozen, or is cut off.
* Where all logs end before it could have noticed, nothing follows from its silence.
* A member that a witness reaches is there, though it may have nothing to report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.events import ListInstalled, MemberRemoved, SuspicionRaised
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, ConnectionState, MemberWitnessed

NOTICED_US = 10 * SECOND_US
"""A member that is cut off suspects those who removed it at nearly the same moment: two heartbeat intervals later at most."""
SAME_MOMENT_US = 2 * SECOND_US
"""Times of logs may have whole seconds only, and clocks differ."""

WITNESS = "the witness"
"""Who found that no member is there, where a console or a recorder did."""

Fate = Literal["there", "left", "ended", "unknown"]


class LastStanding(NamedTuple):
    """What is known of an incarnation after its last words, and from whom."""

    fate: Fate
    by: str = ""
    """The member that found its process ended, or that removed it first."""
    removed_us: int | None = None
    """When it was removed first, if it was."""


class _Installed(NamedTuple):
    at_us: int
    view: ListInstalled
    uuids: frozenset[str]


class LastWords:
    """Follows the lists of all members of a run, and what they found out about each other, record by record."""

    def __init__(self) -> None:
        self._now_us = 0
        self._is_followed: set[str] = set()
        """Incarnations that a witness follows over the network."""
        self._connections: dict[str, ConnectionState] = {}
        """How the witness reaches each member."""
        self._spoke_us: dict[str, int] = {}
        self._lists: dict[str, _Installed] = {}
        """By member, the list of its present incarnation."""
        self._ended: set[str] = set()
        """Incarnations that are known to have ended."""
        self._left: dict[str, str] = {}
        """Incarnations that asked to leave, and the master that let them."""
        self._refused: dict[str, dict[str, int]] = {}
        """By address, who was refused there last, and when."""
        self._removals: dict[str, dict[str, int]] = {}
        """By incarnation, who has it on the list no more, and since when."""
        self._addresses: dict[str, str] = {}

    def add(self, record: Record) -> None:
        member, event = record.member, record.event
        self._now_us = max(self._now_us, record.at)
        match event:
            case MemberWitnessed(sources=sources):
                if "client-protocol" in sources:
                    self._is_followed.add(record.uuid)
            case ConnectionChanged(state=state):
                was_connected = self.is_connected(member)
                self._connections[member] = state
                if state != "connected" and not (was_connected and state in ("gone", "merging")):
                    return  # a connection that closes shows that the member was there; one that is silent does not
            case events.MemberStarted(merged_from=""):
                places = self._addresses.items()
                self._ended |= {uuid for uuid, place in places if place == member and uuid != record.uuid}
                self._lists.pop(member, None)
            case events.MemberMerging() | events.MemberStopped():
                self._ended.add(record.uuid)
                self._lists.pop(member, None)
            case ListInstalled():
                self._install(record, event)
            case SuspicionRaised(suspect=address, cause="refused") | MemberRemoved(address=address, cause="refused"):
                self._refused.setdefault(str(address), {})[member] = record.at
            case (
                SuspicionRaised(suspect_uuid=left, cause="goodbye") | MemberRemoved(removed_uuid=left, cause="goodbye")
            ):
                self._left[left] = member
        self._spoke_us[member] = record.at

    def _install(self, record: Record, event: ListInstalled) -> None:
        before = self._lists.get(record.member)
        uuids = frozenset(member.uuid for member in event.members)
        self._lists[record.member] = _Installed(record.at, event, uuids)
        for member in event.members:
            self._addresses[member.uuid] = str(member.address)
            self._removals.get(member.uuid, {}).pop(record.member, None)
        for gone in (before.uuids if before is not None else frozenset()) - uuids:
            self._removals.setdefault(gone, {}).setdefault(record.member, record.at)

    def list_of(self, member: str) -> ListInstalled | None:
        """Return the list of the present incarnation, if it has one."""
        installed = self._lists.get(member)
        return installed.view if installed is not None else None

    def is_connected(self, member: str) -> bool:
        return self._connections.get(member) == "connected"

    def standing(self, address: str, uuid: str, logged_us: Mapping[str, int]) -> LastStanding:
        """Return what is known of this incarnation at the end. `logged_us`: when each member logged anything last."""
        removals = self._removals.get(uuid, {})
        if uuid in self._ended:
            return LastStanding("ended")
        if uuid in self._left:
            return LastStanding("left", self._left[uuid])
        state = self._connections.get(address)
        if state == "gone" and uuid in self._is_followed:
            return LastStanding("ended", WITNESS, min(removals.values(), default=None))
        spoke_us = self.last_us(address, logged_us)
        by, removed_us = min(removals.items(), key=lambda removal: removal[1], default=("", None))
        found = self._refused.get(address, {})
        refused = [(at_us, other) for other, at_us in found.items() if at_us + SAME_MOMENT_US >= spoke_us]
        if refused and not any(self._still_listing(uuid, {}, min(refused)[0])):
            return LastStanding("ended", min(refused)[1], removed_us)
        if removed_us is None:
            return LastStanding("there")
        if state in ("gone", "silent") and uuid not in self._is_followed:  # decided when its log was read
            return LastStanding("ended" if state == "gone" else "unknown", by, removed_us)
        own = self._lists.get(address)
        unnoticed = {it: at_us for it, at_us in removals.items() if own is None or self._is_listed(own, it)}
        has_noticed = not unnoticed or spoke_us > removed_us + SAME_MOMENT_US
        if has_noticed or any(self._still_listing(uuid, unnoticed, removed_us)):
            return LastStanding("there", by, removed_us)
        until_us = max(self.last_us(remover, logged_us) for remover in unnoticed)
        return LastStanding("unknown" if until_us - removed_us >= NOTICED_US else "there", by, removed_us)

    def _still_listing(self, uuid: str, removers: Mapping[str, int], removed_us: int) -> Iterator[str]:
        """Yield the others that list the incarnation and left out who removed it, or installed such a list since."""
        for member, installed in self._lists.items():
            if uuid in installed.uuids and self._addresses.get(uuid) != member:
                left_out = removers and not any(self._is_listed(installed, remover) for remover in removers)
                if left_out or installed.at_us > removed_us + SAME_MOMENT_US:
                    yield member

    def _is_listed(self, installed: _Installed, address: str) -> bool:
        return any(member.address == address for member in installed.view.members)

    def last_us(self, member: str, logged_us: Mapping[str, int] = MappingProxyType({})) -> int:
        """Return until when the member is known to have been there."""
        if self.is_connected(member):
            return max(self._now_us, logged_us.get(member, 0))
        return max(self._spoke_us.get(member, 0), logged_us.get(member, 0))


def after_log(standing: LastStanding, last_us: int) -> ConnectionChanged | None:
    """Return what is known of a member after its log ended at `last_us`; nothing where its last words may hold still."""
    match standing:
        case LastStanding(fate="ended", by=by) if by:
            return ConnectionChanged("gone", f"its log ends here, and {by} found no process at its address")
        case LastStanding(fate="left", by=by):
            return ConnectionChanged("gone", f"its log ends here, and {by} let it leave")
        case LastStanding(fate="unknown", by=by, removed_us=int(removed_us)):
            after = f" {round((removed_us - last_us) / SECOND_US)} s later" if removed_us - last_us > SECOND_US else ""
            why = f"its log ends here, {by} removed it{after}, and nothing shows what became of it"
            return ConnectionChanged("silent", why)
        case _:
            return None
