"""The beliefs of all members side by side, as a table to paint: who sees whom how, and where they disagree.

Rows are observers, columns are members. Every state is a glyph and a word, never colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.judgement.agreement import HeldList, ListAgreement
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.table_agreement import LASTING_US, differs_from_master, table_digests
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact, Tone, not_told, under
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, one_line, with_names

MEMBERS_NAMED = 3
DIGEST_SHOWN = 6
"""Letters of a digest."""


def same_table(judge: Judge) -> Iterator[Fact]:
    """Answer whether all members have the same partition table."""
    picture, now_us, unheard = judge.picture, judge.now_us, [side.master for side in judge.agreement.unheard]
    known = {label: belief for label, belief in picture.members.items() if belief.running}
    holders = table_digests(picture, iter(known), now_us)
    answers: list[tuple[str, Tone]] = []
    if len(holders) == 1:
        digest, labels = next(iter(holders.items()))
        which = f"{counted(len(labels), 'member')} with table {digest[:DIGEST_SHOWN]}"
        apart = f"not known: {which}; {listed(unheard, MEMBERS_NAMED)} led others and is not heard"
        answers.append((apart, "warning") if unheard else (f"yes: {which}", "good"))
        answers += _stamps([known[label] for label in labels], now_us)
    elif holders:
        answers.append((f"no: there are {len(holders)} tables", "warning"))
        answers += [
            (f"table {digest[:DIGEST_SHOWN]}: {', '.join(labels)}", "plain") for digest, labels in holders.items()
        ]
    else:
        answers.append(("no table is known: partitions are arranged at the first use of data", "faint"))
    unknown = [label for label, belief in known.items() if not belief.shows("owners")]
    if unknown:
        answers.append((f"{', '.join(unknown)}: {not_told('owners', known[unknown[0]].witnessed_by)}", "faint"))
    yield from under("have all the same partition table", answers)


def _stamps(holders: list[MemberBelief], now_us: int) -> Iterator[tuple[str, Tone]]:
    """Yield that members whose owners are equal have other stamps, if that has lasted."""
    stamped = [belief for belief in holders if belief.state_stamp is not None]
    by_stamp: dict[int | None, list[str]] = {}
    for belief in stamped:
        by_stamp.setdefault(belief.state_stamp, []).append(belief.label)
    since_us = max((belief.stamp_since_us for belief in stamped), default=now_us)
    if len(by_stamp) < 2 or now_us - since_us <= LASTING_US:
        return
    few = min(by_stamp.values(), key=len)
    yield (
        f"{', '.join(few)}: another state stamp for {age_text(now_us - since_us)}, with the same owners: what differs behind the "
        "owners is not known",
        "plain",
    )


BeliefState = Literal["member", "master", "suspected", "removed", "held", "unknown"]

NOT_REACHED = "not reached"
"""The state of a member that is not heard any more."""

DISSENT_GLYPH = "≠"

LISTS_SPELT_OUT = 3
"""How many different lists a sentence spells out before it only counts the rest."""

NAMES_SPELT_OUT = 7
"""How many members of one list a sentence names before it only counts the rest."""


class BeliefCell(Struct, frozen=True):
    """How one observer sees one member."""

    glyph: str
    word: BeliefState

    @property
    def text(self) -> str:
        """The glyph and the word."""
        return f"{self.glyph} {self.word}"


GLYPHS: dict[BeliefState, str] = {
    "member": "●", "master": "▲", "suspected": "?", "removed": "✕", "held": "⊘", "unknown": "·",
}  # fmt: skip
BELIEF_CELLS: dict[BeliefState, BeliefCell] = {state: BeliefCell(glyph, state) for state, glyph in GLYPHS.items()}


class BeliefSummary(Struct, frozen=True):
    """Where the running members stand: the lists they hold, the most widely held first, and who differs from it."""

    lists: tuple[HeldList, ...]
    lineages: int
    dissenters: frozenset[str]
    sentence: str
    apart: tuple[str, ...]
    """While there are several lists: why each master that said so is not merging, one sentence each."""


class ObserverFacts(Struct, frozen=True):
    """The part of a row that speaks of the observer itself."""

    label: str
    master: str
    list_version: str
    """Version of its list, after the word for its state when that is not simply a member's."""
    table_version: str
    """Version of its partition table, after a mark when its master has another one; empty while it has none."""
    table_differs: bool
    greyed: bool
    """Whether this is only what it believed last, for it runs no more or stands still."""


def observer_facts(picture: Picture, observer: str) -> ObserverFacts:
    """Return what the row of `observer` says of itself; a label never seen in any record is "not up"."""
    belief = picture.members.get(observer)
    if belief is None:
        return ObserverFacts(one_line(observer), "", "not up", "", table_differs=False, greyed=True)
    state = state_word(belief)
    version = f"v{belief.version}" if belief.version else ""
    master = one_line(picture.label_of(belief.master)) if belief.master else ""
    greyed = belief.status in ("paused", "stopped", "killed") or not belief.reached
    differs = differs_from_master(picture, belief)
    table = table_text(belief, "t") or ("none" if differs else "")
    table = f"{DISSENT_GLYPH} {table}" if differs else table
    return ObserverFacts(one_line(observer), master, f"{state} {version}".strip(), table, differs, greyed)


def table_text(belief: MemberBelief, letter: str) -> str:
    """Return the version of the member's partition table after `letter`; its digest where no version is reported."""
    if belief.table is None:
        return "" if belief.shows("owners") else NOT_REPORTED
    if not belief.shows("table-version"):
        return f"#{belief.table.digest[:DIGEST_SHOWN]}"
    return f"{letter}{belief.table.version}"


def state_word(belief: MemberBelief) -> str:
    """Return what the member is doing in a word; empty when it is simply a member of its cluster."""
    if belief.status == "joining":
        return "merging" if belief.merging else "held back" if belief.delay else "joining"
    if not belief.running:
        is_log_over = belief.witnessed_by == ("logs",)
        return belief.status if belief.status != "member" else "silent" if is_log_over else NOT_REACHED
    return "claiming" if belief.claiming else "merging" if belief.merging else ""


def cells(picture: Picture, observer: str, members: Iterable[str]) -> Iterator[BeliefCell]:
    """How `observer` sees `members`, in their present incarnations. One that was never heard of may go by its address."""
    belief = picture.members.get(observer)
    for member in members:
        address = picture.address_of(member) or Address(member)
        yield BELIEF_CELLS["unknown" if belief is None else _state(belief, address)]


def summarize_beliefs(agreement: ListAgreement) -> BeliefSummary:
    """Say where the members stand that run; frozen and ended ones cannot agree to anything new."""
    picture, lists = agreement.picture, agreement.lists
    sentence = _sentence(picture, lists)
    return BeliefSummary(
        lists, agreement.lineages, agreement.dissenters, sentence, _apart(agreement) if len(lists) > 1 else ()
    )


def how_it_differs(picture: Picture, survey: BeliefSummary, label: str) -> str:
    """In what the list of `label` is another one than that which most hold, or more than hold any other; empty when it is not."""
    if label not in survey.dissenters:
        return ""
    most = survey.lists[0]
    own = next(row for row in survey.lists[1:] if label in row.held_by)
    held, usual = f"v{own.version}", f"v{most.version}"
    if not own.is_led_as(most):
        held += f" with master {_name(picture, own.master)}"
        usual += f" with master {_name(picture, most.master)}"
    holders = sum(len(row.held_by) for row in survey.lists)
    named = ", ".join(map(one_line, most.held_by))
    others = (
        "most hold" if len(most.held_by) * 2 > holders else f"{named} {'holds' if len(most.held_by) == 1 else 'hold'}"
    )
    return f"{one_line(label)} holds {held} where {others} {usual}: {_difference(picture, most, own)}"


def _cluster_state(picture: Picture, holders: Sequence[str]) -> str:
    """Return the state of a cluster by its members, with names where they differ; empty when it is ACTIVE."""
    by_state: dict[str, list[str]] = {}
    for label in holders:
        belief = picture.members[label]
        state = belief.cluster_state if belief.shows("cluster-state") else f"state {NOT_REPORTED}"
        by_state.setdefault(state, []).append(label)
    if len(by_state) == 1:
        return "".join(state for state in by_state if state != "ACTIVE")
    return ", ".join(f"{state} at {_names(labels)}" for state, labels in by_state.items() if state != "ACTIVE")


def _apart(agreement: ListAgreement) -> tuple[str, ...]:
    picture, lines = agreement.picture, []
    for belief in agreement.masters:
        label = belief.label
        if belief.merging:
            lines.append(f"{one_line(label)} is merging into the cluster of {_name(picture, belief.merging)}")
        elif belief.not_merging:
            lines.append(one_line(f"{label} is not merging: {with_names(belief.not_merging, picture.label_of)}"))
    return tuple(lines)


def _state(belief: MemberBelief, address: Address) -> BeliefState:
    if address in belief.suspicions and address in belief.listed:
        return "suspected"
    if address == belief.master:
        return "master"
    if address in belief.listed:
        return "member"
    if address in belief.held_back:
        return "held"
    return "removed" if address in belief.ever_listed else "unknown"


def _sentence(picture: Picture, lists: tuple[HeldList, ...]) -> str:
    """Each lineage by the list that most of it hold, and how those differ from it who are ahead or behind."""
    if not lists:
        return "no running member holds a list"
    if len(lists) == 1:
        only = lists[0]
        return f"1 list: v{only.version} of {counted(len(only.members), 'member')} {_leadership(picture, only)}"
    lineages: dict[str, list[HeldList]] = {}
    for row in lists:
        lineages.setdefault(row.lineage, []).append(row)
    several = len(lineages) > 1
    spelt = [_spell_out(picture, of_one, several) for of_one in islice(lineages.values(), LISTS_SPELT_OUT)]
    if len(lineages) > LISTS_SPELT_OUT:
        spelt.append(f"{len(lineages) - LISTS_SPELT_OUT} more")
    what = f"{len(lineages)} lineages, one for each mastership" if several else f"{len(lists)} lists of one mastership"
    return f"{what}: {' / '.join(spelt)}"


def _spell_out(picture: Picture, lists: Sequence[HeldList], several: bool) -> str:
    """One lineage. Where it is the only one there is room for how each list differs; else the others are short."""
    most, others = lists[0], lists[1:]
    content = [picture.label_of(member.address) for member in most.members]
    text = f"v{most.version} {_names(content)} {_leadership(picture, most)}"
    if set(content) != set(most.held_by):
        text += f" held by {_names(most.held_by)}"
    room = 1 if several else LISTS_SPELT_OUT - 1
    parts = [text, *(_spell_out_other(picture, most, other) for other in others[:room])]
    if len(others) > room:
        parts.append(f"{len(others) - room} more")
    return "; ".join(parts)


def _spell_out_other(picture: Picture, most: HeldList, belief: HeldList) -> str:
    ahead = belief.version - most.version
    standing = "ahead at" if ahead > 0 else "behind at" if ahead < 0 else "at another"
    leads = "" if belief.master == most.master else f" {_leadership(picture, belief)}"
    return f"{_names(belief.held_by)} {standing} v{belief.version}{leads}: {_difference(picture, most, belief)}"


def _difference(picture: Picture, most: HeldList, belief: HeldList) -> str:
    if belief.members is most.members:
        return "the same members"
    theirs = {member.address: member.uuid for member in most.members}
    own = {member.address: member.uuid for member in belief.members}
    missing = [picture.label_of(address) for address in theirs if address not in own]
    extra = [picture.label_of(address) for address in own if address not in theirs]
    renewed = [picture.label_of(address) for address, uuid in own.items() if theirs.get(address, uuid) != uuid]
    parts = ((missing, "without"), (extra, "with"), (renewed, "with another incarnation of"))
    return ", ".join(f"{word} {_names(names)}" for names, word in parts if names) or "the same members"


def _leadership(picture: Picture, belief: HeldList) -> str:
    state = _cluster_state(picture, belief.held_by)
    return f"(master {', '.join(filter(None, (_name(picture, belief.master), state)))})"


def _names(labels: Sequence[str]) -> str:
    return one_line(listed(labels, NAMES_SPELT_OUT, ","))


def _name(picture: Picture, address: Address | None) -> str:
    return one_line(picture.label_of(address)) if address else "unknown"
