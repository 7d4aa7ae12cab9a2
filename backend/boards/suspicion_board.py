"""Who suspects whom: side by side, observers by suspects, and as rows; with ages and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.suspicions import SuspicionsInForce, is_mutual, stays
from quarterdeck.backend.picture.fold.belief import Suspected
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
    sentence: str
    """The whole of it in words."""


def summarize_suspicions(agreement: ListAgreement, *, all_members: bool) -> SuspicionSummary:
    """Say who suspects and who is suspected; with `all_members`, members that have no part in it have rows and columns too."""
    found, label_of = agreement.suspicions, agreement.picture.label_of
    labels = {label_of(address) for address in found.by_suspect}
    observers = {belief.label for belief in found.observers}
    order = agreement.by_age((*agreement.picture.members, *sorted(labels)))
    rows = order if all_members else tuple(label for label in order if label in observers)
    columns = order if all_members else tuple(label for label in order if label in labels)
    return SuspicionSummary(rows, columns, found.raised, _sentence(found) + _what_is_not_known(found))


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


def _what_is_not_known(found: SuspicionsInForce) -> str:
    if not found.silent:
        return ""
    whose = f"; of {counted(len(found.silent), 'member')}: " if found.raised else " as far as is known; "
    return f"{whose}{not_told('suspicions', found.silent[0].witnessed_by)}"


def _sentence(found: SuspicionsInForce) -> str:
    if not found.raised:
        return "no member suspects another"
    both = f", {counted(found.mutual, 'pair')} of them mutual" if found.mutual else ""
    suspect = "suspects" if len(found.observers) == 1 else "suspect"
    return (
        f"{counted(len(found.observers), 'member')} {suspect} {counted(len(found.by_suspect), 'member')}: "
        f"{counted(found.raised, 'suspicion')}{both}"
    )


MOST_ROWS = 500
"""Of more suspicions the rest is only counted."""


class SuspicionRow(Struct, frozen=True):
    """One suspicion in words."""

    observer: str
    suspect: str
    glyph: str
    """Says whether the suspect suspects the observer too."""
    age: str
    since_us: int
    reason: str

    @property
    def pair(self) -> str:
        """Who suspects whom."""
        return f"{self.observer} → {self.suspect}"


class SuspicionRows(Struct, frozen=True):
    """The suspicions of all running members, those of the older member first."""

    entries: Mapping[str, tuple[str, Suspected]] = {}
    """Who has which suspicion, by a key that stays the same while it lasts."""
    nothing: str = ""
    """What is to be said where there are no rows."""

    def row(self, picture: Picture, key: str, now_us: int) -> SuspicionRow:
        """Return the row of this key.

        Raises:
            KeyError: There is no such row.
        """
        observer, suspicion = self.entries[key]
        suspect, since_us = suspicion.suspect, suspicion.since_us
        belief = picture.members.get(observer)
        mutual = belief is not None and is_mutual(picture, belief, suspect)
        glyph = MUTUAL_GLYPH if mutual else SUSPECTS_GLYPH
        lasts = f"{STAYS}: " if belief is not None and stays(picture, belief, suspect) else ""
        reason = one_line(f"{lasts}{with_names(suspicion.reason, picture.label_of)}")
        whom, age = one_line(picture.label_of(suspect)), age_text(now_us - since_us)
        return SuspicionRow(one_line(observer), whom, glyph, age, since_us, reason)


def suspicion_rows(found: SuspicionsInForce, labels: Sequence[str]) -> SuspicionRows:
    """Return the suspicions in force, in the order in which `labels` names their observers."""
    place = {label: number for number, label in enumerate(labels)}
    observers = sorted(found.observers, key=lambda belief: place.get(belief.label, len(place)))
    pairs = ((it.label, suspicion) for it in observers for suspicion in it.suspicions.values())
    entries = {f"{label} {suspicion.suspect}": (label, suspicion) for label, suspicion in islice(pairs, MOST_ROWS)}
    if found.silent:
        return SuspicionRows(entries, f"suspicions are {not_told('suspicions', found.silent[-1].witnessed_by)}")
    return SuspicionRows(entries, "no member suspects another" if found.picture.members else "no member is seen")


def suspicion_figure(found: SuspicionsInForce) -> tuple[str, Tone]:
    """How many there are, in a word or two."""
    if not found.raised:
        return (NOT_REPORTED if found.silent else "none"), "faint"
    return f"{found.raised}, of {counted(len(found.by_suspect), 'member')}", "warning"
