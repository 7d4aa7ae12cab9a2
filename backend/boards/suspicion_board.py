"""Who suspects whom, side by side: observers by suspects, with ages and reasons."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact, Tone, not_told, not_told_fact, under
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, one_line, with_names

SUSPECTS_GLYPH = "?"
MUTUAL_GLYPH = "⇄"
TRUST_GLYPH = "·"
SELF_GLYPH = "—"

MOST_WHOLE = 16
"""Up to so many members all of them are shown; of more only those who suspect or are suspected."""

REASONS_SHOWN = 8

STAYS = "does not clear by itself"
STAYS_WHY = (
    "neither sends the other heartbeats any more (measured with 5.3.8 and 5.5.0, links cut both ways and one way), and no link "
    "that heals changes that"
)

MUTUALS_COUNTED = 20_000
"""Of more suspicions it is not counted how many are mutual."""


class SuspicionCell(Struct, frozen=True):
    """How one observer sees one member: `? 12 s`, or `⇄ 12 s` when that one suspects it too."""

    text: str
    tone: Tone
    since_us: int | None = None


UNTOLD = SuspicionCell(NOT_REPORTED, "faint")
TRUSTED = SuspicionCell(TRUST_GLYPH, "faint")
ITSELF = SuspicionCell(SELF_GLYPH, "faint")
NOT_LISTED = SuspicionCell("", "faint")


class SuspicionSummary(Struct, frozen=True):
    """All suspicions in force, counted."""

    observers: tuple[str, ...]
    """Who has a row."""
    suspects: tuple[str, ...]
    """Who has a column."""
    raised: int
    mutual: int | None
    """How many pairs suspect each other; None when they were not counted."""
    sentence: str
    """The whole of it in words."""


def summarize_suspicions(picture: Picture, *, all_members: bool) -> SuspicionSummary:
    """Who suspects and who is suspected; with `all_members`, members that have no part in it have rows and columns too."""
    suspicious: list[MemberBelief] = []
    suspected: set[Address] = set()
    raised = 0
    for belief in picture.members.values():
        if belief.running and belief.suspicions:
            suspicious.append(belief)
            suspected.update(belief.suspicions)
            raised += len(belief.suspicions)
    mutual = None
    if raised <= MUTUALS_COUNTED:
        mutual = sum(is_mutual(picture, belief, other) for belief in suspicious for other in belief.suspicions) // 2
    labels = {picture.label_of(address) for address in suspected}
    observers = {belief.label for belief in suspicious}
    order = ListAgreement(picture).by_age((*picture.members, *sorted(labels)))
    rows = order if all_members else tuple(label for label in order if label in observers)
    columns = order if all_members else tuple(label for label in order if label in labels)
    sentence = _sentence(raised, len(suspicious), len(suspected), mutual) + _what_is_not_known(picture, raised)
    return SuspicionSummary(rows, columns, raised, mutual, sentence)


def suspicion_cell(picture: Picture, observer: str, suspect: str, now_us: int) -> SuspicionCell:
    """How `observer` sees `suspect` at `now_us`."""
    if observer == suspect:
        return ITSELF
    belief = picture.members.get(observer)
    if belief is None:
        return NOT_LISTED
    address = picture.address_of(suspect) or Address(suspect)
    suspicion = belief.suspicions.get(address)
    if suspicion is None:
        return NOT_LISTED if address not in belief.listed else TRUSTED if belief.shows("suspicions") else UNTOLD
    glyph = MUTUAL_GLYPH if is_mutual(picture, belief, address) else SUSPECTS_GLYPH
    tone: Tone = "warning" if belief.running else "faint"
    return SuspicionCell(f"{glyph} {age_text(now_us - suspicion.since_us)}", tone, suspicion.since_us)


def is_mutual(picture: Picture, belief: MemberBelief, suspect: Address) -> bool:
    """Whether the member at `suspect` suspects that one too."""
    other = picture.members.get(picture.label_of(suspect))
    return other is not None and other.running and belief.address in other.suspicions


def stays(picture: Picture, belief: MemberBelief, suspect: Address) -> bool:
    """Return whether a suspicion lasts after its link has healed, for the two send each other no heartbeats again.

    Members of Hazelcast that are no masters send none to whom they suspect; a master sends to all, and is heard again.
    """
    other = picture.members.get(picture.label_of(suspect))
    if other is None or not (belief.witnessed_by and other.witnessed_by) or belief.is_master or other.is_master:
        return False
    return is_mutual(picture, belief, suspect) and suspect in belief.listed and belief.address in other.listed


def lasting_facts(picture: Picture, now_us: int) -> Iterator[Fact]:
    """Answer which suspicions do not clear by themselves; nothing where none is known to."""
    pairs = (
        f"{belief.label} and {other} suspect each other for {age_text(now_us - suspicion.since_us)}"
        for belief in picture.members.values()
        for address, suspicion in (belief.suspicions.items() if belief.running else ())
        if belief.label < (other := picture.label_of(address)) and stays(picture, belief, address)
    )
    help_text = f"it {STAYS}; {STAYS_WHY}; restart one of the two"
    yield from under("which suspicions stay", (f"{pair}: {help_text}" for pair in pairs), "warning")


def suspicion_facts(picture: Picture, observer: str, now_us: int) -> tuple[Fact, ...]:
    """Whom `observer` suspects, since when and why; and who suspects it."""
    belief = picture.members.get(observer)
    if belief is None:
        return ()
    said = []
    for address, suspected in islice(belief.suspicions.items(), REASONS_SHOWN):
        glyph = MUTUAL_GLYPH if is_mutual(picture, belief, address) else SUSPECTS_GLYPH
        age, why = age_text(now_us - suspected.since_us), with_names(suspected.reason, picture.label_of)
        lines = f"{glyph} {picture.label_of(address)} for {age}: {why}"
        lines += f"; {STAYS}: {STAYS_WHY}" if stays(picture, belief, address) else ""
        said.append(lines)
    if len(belief.suspicions) > REASONS_SHOWN:
        said.append(f"and {len(belief.suspicions) - REASONS_SHOWN} more")
    facts = list(under("suspects", said, "warning"))
    if not said and not belief.shows("suspicions"):
        facts.append(not_told_fact("suspects", "suspicions", belief.witnessed_by))
    elif not said:
        why = "; a master removes a member that it does not hear" if belief.is_master else ""
        facts.append(Fact("suspects", f"none{why}"))
    by = [other.label for other in picture.members.values() if other.running and belief.address in other.suspicions]
    if by:
        facts.append(Fact("suspected by", one_line(listed(by, REASONS_SHOWN)), "warning"))
    return tuple(facts)


def suspicion_sentence(picture: Picture, observer: str, now_us: int) -> str:
    """Return the suspicions of a member in one line, the first reasons only."""
    belief = picture.members.get(observer)
    if belief is None:
        return f"{one_line(observer)} was never heard of"
    lines = [
        f"{MUTUAL_GLYPH + ' ' if is_mutual(picture, belief, address) else ''}{picture.label_of(address)} for "
        f"{age_text(now_us - found.since_us)} ({with_names(found.reason, picture.label_of)}"
        f"{f'; {STAYS}' if stays(picture, belief, address) else ''})"
        for address, found in belief.suspicions.items()
    ]
    if not lines and not belief.shows("suspicions"):
        return one_line(f"whom {observer} suspects is {not_told('suspicions', belief.witnessed_by)}")
    return one_line(f"{observer} suspects {listed(lines, REASONS_SHOWN, '; ') or 'no member'}")


def _what_is_not_known(picture: Picture, raised: int) -> str:
    silent = [belief for belief in picture.members.values() if belief.running and not belief.shows("suspicions")]
    if not silent:
        return ""
    whose = f"; of {counted(len(silent), 'member')}: " if raised else " as far as is known; "
    return f"{whose}{not_told('suspicions', silent[0].witnessed_by)}"


def _sentence(raised: int, observers: int, suspects: int, mutual: int | None) -> str:
    if not raised:
        return "no member suspects another"
    both = f", {counted(mutual, 'pair')} of them mutual" if mutual else ""
    return (
        f"{counted(observers, 'member')} {'suspects' if observers == 1 else 'suspect'} {counted(suspects, 'member')}: "
        f"{counted(raised, 'suspicion')}{both}"
    )
