"""The network as members stand in it: the state of each link, and a drawing of it while the members are few.

A link is one-way, from a source to a target. Cells of the matrix are made one by one on demand; the drawing has every link, so it
is made for a few members only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Literal

from quarterdeck.backend.boards.belief_matrix import state_word
from quarterdeck.backend.commands.links import LinkConditions
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import CutLink, Partition
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.witnessed.events import IDLE_US
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.picture.events.faults import GLYPHS, heading_of, impairments_of
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.network.faults import FaultLedger
from quarterdeck.backend.picture.text.fact import Sign, Tone, not_told
from quarterdeck.backend.picture.text.formatting import letter_of, listed, one_line

LinkWord = Literal[
    "up", "cut", "one-way", "slow", "lossy", "doubling", "dropping", "down", "writes", "idle", "queued", "closed",
    "not reported",
]  # fmt: skip
"""What a link is like. Of members of Hazelcast only what each writes is known, by its metrics, not what arrives."""

OTHERS_NAMED = 6
"""How many members one kind of trouble names."""

LINK_SIGNS: dict[LinkWord, Sign] = {
    "up": Sign("●", "good"),
    "cut": Sign(GLYPHS["cut"], "bad"),
    "one-way": Sign("↛", "bad"),
    "slow": Sign(GLYPHS["slow"], "warning"),
    "lossy": Sign(GLYPHS["lossy"], "warning"),
    "doubling": Sign(GLYPHS["doubling"], "warning"),
    "dropping": Sign(GLYPHS["dropping"], "warning"),
    "down": Sign("○", "faint"),
    "writes": Sign("●", "plain"),
    "idle": Sign("◔", "warning"),
    "queued": Sign("≡", "warning"),
    "closed": Sign("╌", "warning"),
    "not reported": Sign("·", "faint"),
}

PLANNED_GLYPH = "✂"
"""Of what a plan would cut."""

MOST_DRAWN = 16
"""So many members have room in a drawing."""

MOST_MESHED = 8
"""Among so many members the links that are up are drawn too."""


Plan = frozenset[tuple[str, str]]
"""One-way links that a plan would cut."""


def planned_links(commands: Sequence[Partition | CutLink]) -> Plan:
    """Return what `commands` would cut of links that are as plain as can be."""
    conditions = LinkConditions()
    for command in commands:
        conditions.apply(command)
    return frozenset(conditions.conditions)


@dataclass(frozen=True, slots=True)
class NetworkNode:
    """A member in a drawing."""

    text: str
    tone: Tone
    ringed: bool
    """Whether it is selected."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Two members in a drawing, by place, and what is wrong between them. A glyph stands at the end where it is noticed."""

    one: int
    other: int
    tone: Tone
    glyph_at_one: str
    glyph_at_other: str
    dots: int
    """How thin the line is: of so many dots one is drawn."""


@dataclass(frozen=True, slots=True)
class NetworkDrawing:
    """Members on a circle and the links between them."""

    nodes: tuple[NetworkNode, ...]
    edges: tuple[Edge, ...]


def link_word(picture: Picture, source: str, target: str) -> LinkWord:
    """Return what the one-way link from `source` to `target` is like: "one-way" when it is cut and the way back is not."""
    condition = picture.links.get((source, target))
    if condition is None:
        if _is_down(picture, source) or _is_down(picture, target):
            return "down"
        belief, other = picture.members[source], picture.members[target]
        if belief.shows("links") or other.shows("links"):
            return "up"
        return measured_links(belief).get(other.address, "not reported")
    if condition.blocked:
        back = picture.links.get((target, source))
        return "cut" if back is not None and back.blocked else "one-way"
    return next((impairment.kind for impairment in impairments_of(condition)), "up")


def measured_links(belief: MemberBelief) -> dict[Address, LinkWord]:
    """Return how a member writes to the others on its list by its metrics, as far as they say that."""
    metrics = belief.metrics
    if not belief.running or metrics is None or metrics.strained_links is None or metrics.unlinked is None:
        return {}
    others = belief.listed - {belief.address, *metrics.unlinked}
    found: dict[Address, LinkWord] = dict.fromkeys(others, "writes")
    for link in metrics.strained_links:
        if link.address in others:
            is_idle = link.idle is not None and link.idle >= IDLE_US
            found[link.address] = "closed" if not link.connections else "idle" if is_idle else "queued"
    return found


def link_sentence(picture: Picture, member: str) -> str:
    """All that is wrong with the links of `member`, in words; the worst first."""
    by_text: dict[str, list[str]] = {}
    for other in picture.members:
        there, back = picture.links.get((member, other)), picture.links.get((other, member))
        if there is not None and back is not None and _wrong(there) == _wrong(back):
            by_text.setdefault(f"{_wrong(there)} both ways with", []).append(other)
            continue
        for link, way in ((there, "to"), (back, "from")):
            if link is not None:
                by_text.setdefault(f"{_wrong(link)} {way}", []).append(other)
    belief = picture.members.get(member)
    if not by_text and belief is not None and not belief.shows("links"):
        if measured := measured_links(belief):
            return one_line(f"{member}: {_written(picture, measured)}; what arrives is not reported")
        return one_line(f"{member}: its links are {not_told('links', belief.witnessed_by)}")
    wrong = [f"{text} {listed(others, OTHERS_NAMED)}" for text, others in by_text.items()]
    if belief is not None and _is_down(picture, member):
        wrong.insert(0, belief.status)
    elif not wrong:
        down = any(_is_down(picture, other) for other in picture.members)
        wrong.append("its links to running members are up" if down else "all its links are up")
    return one_line(f"{member}: {'; '.join(wrong)}")


def network_sentence(picture: Picture, ledger: FaultLedger) -> str:
    """All links, counted by what is wrong with them."""
    running = [label for label, belief in picture.members.items() if belief.status in ("joining", "member")]
    up = len(running) * (len(running) - 1) - ledger.wrong_among(running)
    unknown = picture.without("links")
    measured = Counter(word for belief in picture.members.values() for word in measured_links(belief).values())
    if measured:
        said = ", ".join(f"{LINK_SIGNS[word].glyph} {word} {count}" for word, count in measured.items())
        return f"one-way links by what members write, in metrics of every 5 s: {said}; what arrives is not reported"
    plain = f"{LINK_SIGNS['up'].glyph} up {up}" if unknown is None else not_told("links", unknown.witnessed_by)
    counts = [f"{LINK_SIGNS[word].glyph} {word} {count}" for word, count in ledger.link_counts().items()]
    return f"one-way links: {', '.join([*counts, plain])}"


def _written(picture: Picture, measured: Mapping[Address, LinkWord]) -> str:
    """Say to whom a member writes, and how."""
    by_word: dict[LinkWord, list[str]] = {}
    for address, word in measured.items():
        by_word.setdefault(word, []).append(picture.label_of(address))
    texts: dict[LinkWord, str] = {
        "closed": "its connections are gone to", "idle": "nothing was written for 6 s or more to",
        "queued": "packets wait to be written to", "writes": "it writes to",
    }  # fmt: skip
    return "; ".join(f"{text} {listed(by_word[word], OTHERS_NAMED)}" for word, text in texts.items() if word in by_word)


def drawing(
    picture: Picture, labels: Sequence[str], *, sides: Mapping[str, int], selected: Sequence[str], planned: Plan
) -> NetworkDrawing:
    """Draw `labels` and their links; `sides` are those that a plan puts them on, and `planned` says what it would cut."""
    nodes = []
    for place, label in enumerate(labels):
        belief = picture.members.get(label)
        tone: Tone = "faint" if belief is None or not belief.running else "strong" if belief.is_master else "plain"
        role = "" if belief is None else "▲" if tone == "strong" else state_word(belief)
        letter = f"{letter_of(place)}[{sides[label]}]" if sides.get(label) else letter_of(place)
        nodes.append(NetworkNode(one_line(f"{letter} {label} {role}".rstrip()), tone, label in selected))
    pairs, meshed = combinations(range(len(labels)), 2), len(labels) <= MOST_MESHED
    edges = (_edge(picture, place, labels[place], later, labels[later], planned, meshed) for place, later in pairs)
    return NetworkDrawing(tuple(nodes), tuple(filter(None, edges)))


def _edge(picture: Picture, one: int, source: str, other: int, target: str, planned: Plan, meshed: bool) -> Edge | None:
    there, back = link_word(picture, source, target), link_word(picture, target, source)
    if "down" in (there, back):
        return None
    plan_there, plan_back = (source, target) in planned, (target, source) in planned
    glyph_there, glyph_back = _end_glyph(there, plan_there), _end_glyph(back, plan_back)
    if (there, back) == ("not reported", "not reported") and not (plan_there or plan_back):
        return None
    if not glyph_there and not glyph_back:
        return Edge(one, other, "faint", "", "", 1) if meshed else None
    cut = {"cut", "one-way"} & {there, back}
    tone: Tone = "strong" if plan_there or plan_back else "bad" if cut else "warning"
    return Edge(one, other, tone, glyph_back, glyph_there, 3 if cut or plan_there or plan_back else 2)


def _end_glyph(word: LinkWord, planned: bool) -> str:
    if planned or word in ("up", "writes"):
        return PLANNED_GLYPH if planned else ""
    return LINK_SIGNS["cut" if word == "one-way" else word].glyph


def by_age(picture: Picture) -> tuple[str, ...]:
    """Return the running members, oldest first; those of another cluster come after those of the first."""
    return ListAgreement(picture).by_age([label for label, belief in picture.members.items() if belief.running])


def zones_of(picture: Picture) -> dict[str, str]:
    """Where members stand, as far as lists show."""
    members = chain.from_iterable(held.members for held in ListAgreement(picture).lists)
    return {picture.label_of(member.address): member.zone for member in members if member.zone}


def _wrong(condition: LinkChanged) -> str:
    return ", ".join(heading_of(impairment) for impairment in impairments_of(condition))


def _is_down(picture: Picture, label: str) -> bool:
    belief = picture.members.get(label)
    return belief is None or belief.status in ("stopped", "killed", "paused")
