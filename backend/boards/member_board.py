"""The members, one a row: who each is, what it believes, what it holds, and how close it is to being suspected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.backend.boards.belief_matrix import DISSENT_GLYPH, state_word, table_text
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.judgement.table_agreement import differs_from_master
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact, Sign, Tone, not_told
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, one_line

OBSERVERS_NAMED = 3
"""How many observers a text names before it only says that there are more."""

UUID_SHOWN = 8

ROLES = {"master": "▲ master", "next": "△ next", "member": "● member"}
"""The one that follows when the master goes is the oldest of the others."""

STATE_SIGNS = {
    "joining": Sign("○", "warning"), "merging": Sign("○", "warning"), "held back": Sign("⊘", "warning"),
    "claiming": Sign("△", "warning"), "paused": Sign("‖", "warning"), "stopped": Sign("✕", "faint"),
    "killed": Sign("✕", "bad"), "silent": Sign("…", "warning"),
}  # fmt: skip
"""What a member is when it is not simply one."""


class HeartbeatCell(NamedTuple):
    """How the others hear a member."""

    glyph: str
    words: str
    tone: Tone
    left_us: int | None
    """How long until a member suspects it, if nothing is heard; 0 when one does already; None when none is near it."""
    sentence: str
    """The same at length, naming observers."""
    known: bool = True
    """Whether it is known how they hear it."""

    @property
    def text(self) -> str:
        return f"{self.glyph} {self.words}".strip()


class HeartbeatObservers(NamedTuple):
    """The running members that have anything to say against others; of a healthy cluster none."""

    suspicious: tuple[MemberBelief, ...]
    waiting: tuple[MemberBelief, ...]
    silent: MemberBelief | None = None
    """One that runs and of which no heartbeats are known; None when they are known of all."""
    masters: tuple[MemberBelief, ...] = ()
    """Those that lead, while there are several."""


NOT_WATCHED = HeartbeatCell("", "", "faint", None, "")


class MemberBoardEntry(Struct, frozen=True):
    """What is known of one member, each text one line."""

    label: str
    role: str = ""
    state: str = ""
    """Glyph and word when it is not simply a member."""
    state_tone: Tone = "plain"
    heartbeat: HeartbeatCell = NOT_WATCHED
    list_version: str = ""
    table_version: str = ""
    table_differs: bool = False
    owned: int | None = 0
    backups: int | None = 0
    """How many partitions it owns, and keeps a backup of; None where that is not known."""
    age: str = ""
    """How long its process is known to run: a merge begins an incarnation and no process."""
    started_us: int | None = None
    order: int = 0
    """Its place by age among the members of its list, the oldest first; 0 when it is not on it."""
    kind: str = ""
    zone: str = ""
    address: str = ""
    uuid: str = ""
    tone: Tone = "plain"
    """Of what is shown of no consequence: faint when the member is gone."""


class ListOrder:
    """Finds members on their lists; all members of a cluster hold the same list, so it is looked through once."""

    def __init__(self) -> None:
        self._by_list: dict[int, tuple[tuple[Member, ...], dict[str, int]]] = {}

    def entry(self, belief: MemberBelief) -> tuple[int, Member | None]:
        """Return the place of `belief` on its own list, from 1 on, and its entry there; 0 and None when it is not on it."""
        members = belief.members
        known = self._by_list.get(id(members))
        if known is None or known[0] is not members:
            if len(self._by_list) > len(members) + 16:
                self._by_list.clear()
            known = self._by_list[id(members)] = (members, {member.uuid: place for place, member in enumerate(members)})
        place = known[1].get(belief.uuid, -1)
        return place + 1, members[place] if place >= 0 else None


def heartbeat_observers(picture: Picture) -> HeartbeatObservers:
    """Return the members that have something to say against others now."""
    running = [belief for belief in picture.members.values() if belief.running]
    masters = tuple(belief for belief in running if belief.leads)
    return HeartbeatObservers(
        tuple(belief for belief in running if belief.suspicions),
        tuple(belief for belief in running if belief.silences),
        next((belief for belief in running if not belief.shows("heartbeats")), None),
        masters if len(masters) > 1 else (),
    )


def member_row(
    picture: Picture, label: str, observed_by: HeartbeatObservers, places: ListOrder, now_us: int, mark: str = ""
) -> MemberBoardEntry:
    """Return the row of a member; of one that was never heard of nearly nothing. `mark` is the age of an outdated report."""
    belief = picture.members.get(label)
    if belief is None:
        unheard: Tone = "warning" if mark else "faint"
        return MemberBoardEntry(one_line(label), state=mark or "not up", state_tone=unheard, tone="faint")
    state = state_word(belief)
    sign = STATE_SIGNS.get(state, Sign("", "plain"))
    heard = heartbeat(picture, belief, observed_by, now_us)
    gone = belief.status in ("stopped", "killed")
    order, entry = places.entry(belief)
    differs = differs_from_master(picture, belief, now_us)
    table = table_text(belief, "v") or ("none" if differs else "")
    owned, backups = replicas_held(picture, belief)
    return MemberBoardEntry(
        label=one_line(label),
        role=_role(belief, order),
        state=mark or f"{sign.glyph} {state}".strip(),
        state_tone="warning" if mark else sign.tone,
        heartbeat=heard._replace(tone="faint") if mark else heard,
        list_version=f"v{belief.version}" if belief.version else "",
        table_version=f"{DISSENT_GLYPH} {table}" if differs else table,
        table_differs=differs,
        owned=owned,
        backups=backups,
        age=age_text((belief.at if gone else now_us) - belief.runs_since_us),
        started_us=belief.runs_since_us,
        order=order,
        kind="" if entry is None else "lite" if entry.lite else "data",
        zone=one_line(entry.zone) if entry is not None else "",
        address=one_line(belief.address),
        uuid=one_line(belief.uuid[:UUID_SHOWN]),
        tone="faint" if mark or gone or belief.status == "paused" else "plain",
    )


def replicas_held(picture: Picture, belief: MemberBelief) -> tuple[int | None, int | None]:
    """How many partitions a member owns, and keeps a backup of, by its master's table; None for what is not known."""
    master = picture.master_of(belief.label)
    source = master if master is not None and master.table is not None else belief
    held = source.table
    if held is None:
        return (0, 0) if source.shows("owners") else (None, None)
    return held.owned_by(belief.uuid), held.backed_up_by(belief.uuid) if source.shows("backups") else None


def heartbeat(picture: Picture, belief: MemberBelief, observed_by: HeartbeatObservers, now_us: int) -> HeartbeatCell:
    """How the others hear the member: suspected, close to it, in time, or not listened to any more."""
    if belief.status in ("stopped", "killed") or not belief.address:
        return NOT_WATCHED
    by = (observer.label for observer in observed_by.suspicious if belief.address in observer.suspicions)
    if suspecting := list(islice(by, OBSERVERS_NAMED + 1)):  # one more than are named at most
        return HeartbeatCell("?", "suspected", "warning", 0, f"suspected by {_names(suspecting)}")
    late = [
        (silence, observer.label)
        for observer in observed_by.waiting
        if (silence := observer.silences.get(belief.address)) is not None
    ]
    if late:
        late.sort(key=lambda silent: silent[0].heard_us + silent[0].timeout_us)
        silence = late[0][0]
        left_us = silence.left_us(now_us)
        silent = f"silent {age_text(now_us - silence.heard_us)}"
        near = f"suspected in {age_text(left_us)}" if left_us else "to be suspected now" if left_us == 0 else "late"
        whom = _names([label for _, label in late])
        return HeartbeatCell("◔", f"{silent}, {near}", "warning", left_us, f"{silent} to {whom}, {near}")
    if belief.status == "joining":
        return NOT_WATCHED
    master = picture.master_of(belief.label)
    if master is not None and belief.address not in master.listed:
        no_more = f"{one_line(master.label)} has it on its list no more"
        return HeartbeatCell("⊘", "off the list", "warning", None, no_more)
    if observed_by.silent is not None:
        why = f"heartbeats are {not_told('heartbeats', observed_by.silent.witnessed_by)}"
        return HeartbeatCell("", NOT_REPORTED, "faint", None, why, known=False)
    others = [other.label for other in observed_by.masters if belief.address not in other.listed]
    if others:
        sides = f"not on the side of {_names(others)}"
        return HeartbeatCell("⊘", sides, "warning", None, f"heard in time on its own side, {sides}")
    return HeartbeatCell("✓", "in time", "good", None, "every heartbeat of it that is waited for came in time")


def board_facts(picture: Picture, now_us: int) -> Iterator[Fact]:
    """Yield the members in a line: how many there are in which state, and how many are late."""
    states = Counter(state_word(belief) or "running" for belief in picture.members.values())
    yield Fact("", counted(len(picture.members), "member"), "strong")
    for state, count in states.items():
        sign = STATE_SIGNS.get(state, Sign("●", "good"))
        yield Fact("", f"{sign.glyph} {count} {state}", sign.tone)
    observed_by = heartbeat_observers(picture)
    suspected = {address for belief in observed_by.suspicious for address in belief.suspicions}
    late = {address for belief in observed_by.waiting for address in belief.silences} - suspected
    if suspected:
        yield Fact("", f"? {len(suspected)} suspected", "warning")
    unknown = picture.without("suspicions")
    if unknown is not None:
        yield Fact("", f"suspicions {not_told('suspicions', unknown.witnessed_by)}", "faint")
    if late:
        silences = [silence for belief in observed_by.waiting for silence in belief.silences.values()]
        left = [left_us for silence in silences if (left_us := silence.left_us(now_us)) is not None]
        soonest = f", the next suspicion in {age_text(min(left))}" if left else ""
        yield Fact("", f"◔ {len(late)} late{soonest}", "warning")


def member_sentence(picture: Picture, label: str, row: MemberBoardEntry) -> str:
    """One member at length, for the line below the table."""
    belief = picture.members.get(label)
    if belief is None:
        return f"nothing was ever heard of {row.label}"
    suspects = [one_line(picture.label_of(address)) for address in belief.suspicions]
    said = [
        f"{row.label}: {row.state or row.role}",
        row.heartbeat.sentence,
        f"suspects {listed(suspects, OBSERVERS_NAMED) or ('no member' if belief.shows('suspicions') else f'({NOT_REPORTED})')}",
        f"list {row.list_version}" if row.list_version else "no list yet",
        f"uuid {one_line(belief.uuid)}",
    ]
    return "; ".join(filter(None, said))


def _role(belief: MemberBelief, order: int) -> str:
    if belief.status != "member":
        return ""
    if belief.is_master:
        return ROLES["master"]
    heir = next((member.uuid for member in belief.members if member.address != belief.master), None)
    return ROLES["next"] if order and heir == belief.uuid else ROLES["member"]


def _names(labels: Sequence[str]) -> str:
    named = ", ".join(map(one_line, labels[:OBSERVERS_NAMED]))
    return named + (" and others" if len(labels) > OBSERVERS_NAMED else "")
