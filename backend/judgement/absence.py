"""Who is absent, and how: ended, frozen, silent, not reached, or on its way in.

A member that is silent is not dead, and one that is on no list that is seen may be on one that is not.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.text.formatting import age_text

ALARM_US = 600 * SECOND_US
"""A member that left the list without a goodbye is an alarm for so long; after that it is a note."""

Way = Literal["gone", "frozen", "silent", "not reached", "not ready", "joining"]
"""How a member is absent. Only what is gone or frozen is known to be so."""


class Absence(Struct, frozen=True):
    """A member that takes no part, as far as is seen."""

    label: str
    address: Address
    way: Way
    is_listed: bool
    """Whether it stands on a list that is seen. Whom an unlisted member follows is not known."""
    left_us: int | None = None
    """When the list first was without it, if it is missed there."""
    sign: str = ""
    """By which sign it is known to have ended, such as `killed`."""

    def is_alarm(self, now_us: int) -> bool:
        """Return whether it has been missed for so short a time that it is an alarm."""
        return self.left_us is None or now_us - self.left_us < ALARM_US

    def as_fields(self, now_us: int) -> dict[str, object]:
        """Return the fields of the JSON contract."""
        since = None if self.left_us is None else round(max(now_us - self.left_us, 0) / SECOND_US, 1)
        return {
            "member": self.label,
            "how": self.way,
            "sign": self.sign or None,
            "listed": self.is_listed,
            "since_seconds": since,
        }

    def text(self, now_us: int) -> str:
        """Return in words how it is absent, since when and by which sign that is known."""
        since = "" if self.left_us is None else f" {age_text(max(now_us - self.left_us, 0))} ago"
        way = "out of reach" if self.way == "not reached" and since else self.way
        return f"{way}{since}{f' ({self.sign})' if self.sign else ''}"


def absences(agreement: ListAgreement) -> tuple[Absence, ...]:
    """Return the members that are absent: those on lists in the order of the lists, then those on none."""
    label_of = agreement.picture.label_of
    found = [
        Absence(label_of(address), address, way, is_listed=True)
        for address, uuid in agreement.incarnations.items()
        if (way := _way_of(agreement, address, uuid)) is not None
    ]
    known = {absence.label for absence in found}
    joining = [
        Absence(belief.label, belief.address, "joining", belief.address in agreement.incarnations)
        for belief in agreement.picture.members.values()
        if belief.label not in known and _is_joining(agreement, belief)
    ]
    missed = _departed(agreement, {absence.address for absence in joining})
    known = {absence.label for absence in missed}
    found += missed
    found += (
        Absence(label, address, "not reached", is_listed=False)
        for label, address in unlisted(agreement)
        if label not in known and not _is_replaced(agreement, address)
    )
    return (*found, *joining)


def has_ended(belief: MemberBelief) -> bool:
    """Return whether a member's process is known to have ended: it stopped, was killed, or none is found at its address."""
    if belief.status in ("stopped", "killed"):
        return True
    return belief.connection is not None and belief.connection.state == "gone" and belief.witnessed_by != ("logs",)


def is_merging(belief: MemberBelief) -> bool:
    """Return whether a member has left its cluster to merge into another one, as it says itself or as it is seen."""
    state = "" if belief.connection is None else belief.connection.state
    return (belief.status == "joining" and state == "merging") or (belief.left_to_merge and state == "connected")


def _way_of(agreement: ListAgreement, address: Address, uuid: str) -> Way | None:
    """Return how the incarnation `uuid`, which is on a list, is absent; None where it is present."""
    picture, watcher = agreement.picture, agreement.watcher
    label = picture.label_of(address)
    belief = picture.members.get(label)
    missed = watcher.missed.get(address) or watcher.missed.get(label)
    if missed is not None and missed.has_ended and missed.was_met:
        return "gone"
    if belief is None:
        return "not reached"  # it may be published under an address that the watcher cannot use
    if belief.uuid != uuid and not picture.is_over(uuid):  # a list has its next incarnation, which was not met yet
        return "joining" if belief.witnessed_by and not belief.running else "not reached"
    if belief.uuid != uuid or belief.status in ("stopped", "killed"):
        return "gone"
    if belief.status == "paused":
        return "frozen"
    if belief.connection is None or belief.connection.state == "connected":
        return "not reached" if missed is not None else "joining" if belief.status == "joining" else None
    if belief.witnessed_by == ("logs",):
        return "silent"  # its log is over, which says nothing about the member
    state = belief.connection.state
    is_met = belief.version > 0  # else others list it, and it was never reached
    return "not ready" if state == "merging" else "gone" if state == "gone" and is_met else "not reached"


def _departed(agreement: ListAgreement, joining: Collection[Address]) -> list[Absence]:
    """Return who left the lists that are seen without a goodbye, and neither came back nor was replaced.

    Where the operator has accepted a size, only the members that left last and are wanted for that size count.
    """
    picture, expected = agreement.picture, agreement.watcher.expected_members
    present = {belief.uuid for belief in agreement.holders}
    found: dict[Address, Absence] = {}
    for lineage, size in {held.lineage: len(held.members) for held in reversed(agreement.lists)}.items():
        departures = picture.departures.of(lineage)
        if expected is not None:
            departures = departures[max(len(departures) - max(expected - size, 0), 0) :]
        for departure in departures:
            address, uuid = departure.member.address, departure.member.uuid
            if uuid not in present and address not in joining and address not in agreement.incarnations:
                way, sign = _end_of(agreement, address, uuid)
                label = picture.label_of(address)
                found[address] = Absence(label, address, way, is_listed=False, left_us=departure.at_us, sign=sign)
    return list(found.values())


def _end_of(agreement: ListAgreement, address: Address, uuid: str) -> tuple[Way, str]:
    """Return how an incarnation that is on no list is absent, and by which sign that is known."""
    picture, watcher = agreement.picture, agreement.watcher
    label = picture.label_of(address)
    belief, missed = picture.members.get(label), watcher.missed.get(address) or watcher.missed.get(label)
    if belief is not None and belief.uuid == uuid:
        if belief.status == "killed":
            return "gone", "killed"
        if belief.status == "paused":
            return "frozen", ""
        if has_ended(belief):
            return "gone", "its process has ended"
    elif belief is not None:
        return "gone", "its process was started again"
    if missed is not None and missed.has_ended:
        return "gone", "its process has ended"
    return "not reached", ""


def _is_replaced(agreement: ListAgreement, address: Address) -> bool:
    """Return whether the lists that are seen had a member at `address`, and miss none there any more."""
    return any(address in belief.ever_listed for belief in agreement.holders)


def unlisted(agreement: ListAgreement) -> list[tuple[str, Address]]:
    """Return the members on no list, of which it is not known that they have ended: whom they follow is not known."""
    listed, missed, members = agreement.incarnations, agreement.watcher.missed, agreement.picture.members
    found = [
        (label, belief.address)
        for label, belief in members.items()
        if belief.address not in listed
        and (belief.status in ("member", "paused") or belief.left_to_merge)
        and not is_merging(belief)
        and not (label in missed and missed[label].has_ended)
        and (label in missed or (belief.connection and belief.connection.state in ("silent", "refused", "merging")))
    ]
    met = {belief.address for belief in members.values()} | members.keys()
    never_met = (Address(label) for label, known in missed.items() if label not in met and not known.has_ended)
    return [*found, *((address, address) for address in never_met if address not in listed)]


def _is_joining(agreement: ListAgreement, belief: MemberBelief) -> bool:
    joins = belief.status == "joining" and belief.reached and belief.label not in agreement.watcher.missed
    return joins or is_merging(belief)
