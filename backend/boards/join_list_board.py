"""Where every member looks for its cluster and for others, and why two clusters do not become one, with the edit that would help.

A member looks at its join list, and at what it remembers besides. See Split-brain Recovery Improvements; Hazelcast: merge
decision and split brain. Rows are made one by one on demand; what they need of all members is gathered once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.merging.join_list_edit import has_other_join_list, spelt
from quarterdeck.backend.judgement.merging.merge_blockers import PairState
from quarterdeck.backend.picture.fold.picture import MemberBelief, Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact, Tone, not_told, not_told_fact
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, names_text, one_line

TONES: dict[PairState, Tone] = {"merging": "good", "due": "good", "waits": "plain", "blocked": "warning"}


NAMES_SHOWN = 6
"""How many names a cell spells out before it only counts the rest."""
NAMES_COUNTED = 3
"""With more names, their number stands before them."""

DIFFERS_GLYPH = "≠"
SILENT_GLYPH = "✕"


@dataclass(frozen=True, slots=True)
class ListRow:
    """What is known of one member's list. Texts are one line each."""

    label: str
    cluster: str = ""
    """The master that it follows, in its own belief."""
    source: str = NOT_REPORTED
    """Whether the list is as configured, or which edition; after a mark when its master has another list."""
    differs: bool = False
    entries: str = NOT_REPORTED
    remembered: str = NOT_REPORTED
    silent: str = NOT_REPORTED
    """Entries at which nothing answers, as far as is known."""
    missing: str = NOT_REPORTED
    """Members of its cluster that it does not list. They are found through others as long as one of those answers."""
    greyed: bool = True


class JoinListBoard:
    """The rows of one moment."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self.answering = frozenset(belief.address for belief in picture.members.values() if belief.running)
        """Where a member runs that can answer."""

    def row(self, label: str) -> ListRow:
        """Return what is known of `label`; for one that was never seen that is nothing."""
        picture, belief = self._picture, self._picture.members.get(label)
        if belief is None:
            return ListRow(one_line(label), "", "not up", False, "", "", "", "")
        cluster = one_line(picture.label_of(belief.master)) if belief.master else ""
        if not belief.shows("join-list"):
            return ListRow(one_line(label), cluster, greyed=not belief.running)
        differs = has_other_join_list(picture, belief)
        silent = self.silent_entries(belief)
        source = source_text(picture, belief)
        return ListRow(
            label=one_line(label),
            cluster=cluster,
            source=f"{DIFFERS_GLYPH} {source}" if differs else source,
            differs=differs,
            entries=self._names(belief.join_list) or "none",
            remembered=self._names(strangers_remembered(belief)),
            silent=f"{SILENT_GLYPH} {self._names(silent)}" if silent else "",
            missing=self._names(missing_members(belief)),
            greyed=not belief.running,
        )

    def sentence(self, label: str) -> str:
        """All of a row in words."""
        picture, belief = self._picture, self._picture.members.get(label)
        if belief is None:
            return one_line(f"{label} is not up: nothing was ever heard of it")
        if not belief.shows("join-list"):
            return one_line(f"where {label} looks for others is {not_told('join-list', belief.witnessed_by)}")
        name_of, other = picture.label_of, has_other_join_list(picture, belief)
        parts = [
            f"{belief.label} looks at {names_text(belief.join_list, name_of)} ({source_text(picture, belief)}"
            f"{', another list than its master has' if other else ''})"
        ]
        if remembered := strangers_remembered(belief):
            parts.append(f"remembers {names_text(remembered, name_of)}")
        if silent := self.silent_entries(belief):
            states = {address: self.state_of(address) for address in silent}
            found = states | {address: unusable.reason for address, unusable in belief.unusable.items()}
            named = [f"{name_of(address)} ({found[address]})" for address in silent]
            parts.append(f"no answer from {listed(named, NAMES_SHOWN)}")
        if missing := missing_members(belief):
            parts.append(f"does not list {names_text(missing, name_of)} of its own cluster")
        return one_line("; ".join(parts))

    def silent_entries(self, belief: MemberBelief) -> tuple[Address, ...]:
        """Entries of a list where no member runs: down, frozen, or never seen there."""
        if self.answering.issuperset(belief.join_list):  # the common case, and quick
            return ()
        return tuple(entry for entry in belief.join_list if entry not in self.answering and entry != belief.address)

    def state_of(self, address: Address) -> str:
        """Return what is known of the member that should be at `address`, in a word; empty when one is."""
        if address in self.answering:
            return ""
        belief = self._picture.members.get(self._picture.label_of(address))
        return "never seen" if belief is None else belief.status if belief.reached else "not reached"

    def _names(self, every: Sequence[Address]) -> str:
        """Return the names, after their number where a narrow column may cut them."""
        shown = ",".join(one_line(self._picture.label_of(address)) for address in every[:NAMES_SHOWN])
        shown = f"{len(every)}: {shown}" if len(every) > NAMES_COUNTED else shown
        return f"{shown} +{len(every) - NAMES_SHOWN}" if len(every) > NAMES_SHOWN else shown


def strangers_remembered(belief: MemberBelief) -> tuple[Address, ...]:
    """Return what a member remembers, without the members on its list now."""
    return tuple(address for address in belief.remembered if address not in belief.listed)


def missing_members(belief: MemberBelief) -> tuple[Address, ...]:
    """Members of its cluster that a member does not list, itself left aside."""
    lacking = belief.listed.difference(belief.join_list, (belief.address,))
    return tuple(member.address for member in belief.members if member.address in lacking) if lacking else ()


def source_text(picture: Picture, belief: MemberBelief) -> str:
    """Where a member's list is from."""
    edition = belief.join_list_edition
    if belief.join_list_author is None or not (edition or belief.witnessed_by):
        return "as configured"
    if belief.witnessed_by:
        return f"edited {counted(edition, 'time')} since it is watched" if edition else "as its configuration is read"
    return one_line(f"edition {edition}, given to {picture.label_of(belief.join_list_author)}")


def join_list_facts(picture: Picture, belief: MemberBelief, now_us: int) -> tuple[Fact, ...]:
    """Return what there is to say of one member's list and memory, for its fact sheet."""
    board, name_of = JoinListBoard(picture), picture.label_of
    if not belief.shows("join-list"):
        return (not_told_fact("join list", "join-list", belief.witnessed_by),)
    listed = ", ".join(spelt(entry, name_of(entry)) for entry in belief.join_list)
    facts = [Fact("join list", f"{listed or 'empty'}; {source_text(picture, belief)}")]
    silent, missing = board.silent_entries(belief), missing_members(belief)
    if silent:
        places = ", ".join(f"{name_of(entry)} ({board.state_of(entry)})" for entry in silent)
        facts.append(Fact("", f"{SILENT_GLYPH} no answer from {places}", "warning"))
    for address, found in belief.unusable.items():
        facts.append(Fact("", f"{SILENT_GLYPH} of no use is {name_of(address)}: {found.reason}", "warning"))
    if missing:
        facts.append(Fact("", f"it does not list {names_text(missing, name_of)} of its own cluster"))
    remembered = [
        f"{spelt(entry, name_of(entry))} since {age_text(now_us - belief.remembered[entry])}"
        for entry in strangers_remembered(belief)
    ]
    if remembered:
        facts.append(Fact("remembers", ", ".join(remembered)))
    if belief.is_master and belief.running:
        facts.append(Fact("looks", _search_text(picture, belief, now_us)))
    return tuple(facts)


def clusters_text(agreement: ListAgreement) -> str:
    """Return the clusters that are known by their masters, the largest of those in sight first."""
    named = [f"{one_line(side.master)} with {counted(side.size, 'member')}" for side in agreement.sides]
    return f"{counted(len(named), 'cluster')}: {listed(named, NAMES_SHOWN)}" if named else "no master is in sight"


def _search_text(picture: Picture, belief: MemberBelief, now_us: int) -> str:
    search, asked = belief.search, belief.search_addresses
    when = f"in {age_text(search.next_us(now_us) - now_us)}" if search is not None else "at its next search"
    where = f", at {names_text(asked, picture.label_of)}" if asked else "; it knows of no address outside its own"
    return f"for other clusters {when}{where}"
