"""Who was removed from a list, by whom, and why: as the remover reports it, and as the removed member says of its own end.

What one member removed at once is one answer. A member that claims the mastership removes who is not on its first list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quarterdeck.backend.core import events
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact, not_told
from quarterdeck.backend.picture.text.formatting import age_text, names_text, one_line, with_names

ANSWERS_SHOWN = 8
AT_ONCE_US = 3 * SECOND_US
"""What one member removes within this time is one answer."""


class Removal(NamedTuple):
    """Members that one member took off its list, when it began to, and whether it claimed the mastership with that."""

    remover: str
    at_us: int
    removed: tuple[Member, ...]
    claims: bool


def removals(picture: Picture, recent: Sequence[Record]) -> list[Removal]:
    """Return what `recent` records show of removals by masters, in order of time."""
    lists: dict[str, events.ListInstalled] = {}
    found: list[Removal] = []
    for record in recent:
        event = record.event
        if not isinstance(event, events.ListInstalled):
            continue
        before, lists[record.uuid] = lists.get(record.uuid), event
        if before is None or picture.label_of(event.master) != record.member:
            continue
        staying = {member.uuid for member in event.members}
        gone = tuple(member for member in before.members if member.uuid not in staying)
        if gone:
            _add(found, Removal(record.member, record.at, gone, before.master != event.master))
    return found


def _add(found: list[Removal], removal: Removal) -> None:
    for place, earlier in enumerate(found):
        if earlier.remover == removal.remover and removal.at_us - earlier.at_us <= AT_ONCE_US:
            found[place] = earlier._replace(removed=(*earlier.removed, *removal.removed))
            return
    found.append(removal)


def removal_facts(picture: Picture, recent: Sequence[Record], now_us: int) -> Iterator[Fact]:
    """Answer who was removed, and why, the latest first."""
    heading, found = "who was removed, and why", removals(picture, recent)
    reasons: dict[tuple[str, Address], str] = {}
    ends: dict[str, str] = {}
    for record in recent:
        if isinstance(record.event, events.MemberRemoved):
            reasons[record.member, record.event.address] = record.event.reason
        elif isinstance(record.event, events.MemberStopped):
            ends[record.uuid] = record.event.reason
    if not found:
        yield Fact(heading, "nobody, as far back as is remembered here", "faint")
    for removal in reversed(found[-ANSWERS_SHOWN:]):
        names = names_text((member.address for member in removal.removed), picture.label_of)
        ago = age_text(max(now_us - removal.at_us, 0))
        by = f"{removal.remover}{', which claimed the mastership' if removal.claims else ''}"
        why = list(dict.fromkeys(_reason(picture, removal, member, reasons, ends) for member in removal.removed))
        text = with_names("; ".join(why), picture.label_of)
        yield Fact(heading, one_line(f"{names} by {by}, {ago} ago: {text}"), "warning")
        heading = ""
    if len(found) > ANSWERS_SHOWN:
        yield Fact("", f"and {len(found) - ANSWERS_SHOWN} times before", "faint")


def _reason(
    picture: Picture,
    removal: Removal,
    member: Member,
    reasons: dict[tuple[str, Address], str],
    ends: dict[str, str],
) -> str:
    """Return why this member was removed: by its own words where it ended, else by those of the remover."""
    if member.uuid in ends:
        return f"it stopped: {ends[member.uuid]}"
    reason = reasons.get((removal.remover, member.address), "")
    belief = picture.members.get(removal.remover)
    if reason or belief is None or belief.tells("suspicions"):
        return reason or "no reason was given"
    return f"why is {not_told('suspicions', belief.witnessed_by)}"
