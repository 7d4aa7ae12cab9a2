"""What a network fault would do that is not made yet: who will suspect whom and when, which clusters result, who holds what.

Nothing is asked of the cluster. Its lists and links are taken as the picture has them, the fault is put on top, and the rules
of the core are followed to their end (`fault_outcome`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quarterdeck.backend.core.address import Address, numeric_order
from quarterdeck.backend.core.commands.commands import Command, CutLink, Partition
from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import vertices_of
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.belief import Belief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact, Tone
from quarterdeck.backend.picture.text.formatting import counted, listed, one_line
from quarterdeck.backend.picture.what_if.disconnection_decision import RULE
from quarterdeck.backend.picture.what_if.fault_outcome import ClusterMembers, outcome
from quarterdeck.backend.picture.what_if.reachability import Reachability
from quarterdeck.backend.picture.what_if.timing import Timing

UNKNOWN = Address("~:0")
"""In place of an address that was never told; it comes after all others."""

NAMES_SHOWN = 8
GROUPS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Side:
    """One cluster that would result."""

    members: tuple[str, ...]
    """In order of age, the master first."""
    led_before: bool
    """Whether its master is one already."""
    owned: int | None
    """Partitions that its members own now, by the table of the master that they follow; None when there is no table."""
    lacking: int | None
    """Partitions of which none of its members holds a replica."""
    refuses: int
    """How many members it would take to serve clients, when it has fewer; else 0."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What would come of a fault."""

    suspicions: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    """Observers, and whom they stop hearing: members of their own list. Who stops hearing the same has one entry."""
    in_turn: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    """Observers, and who stops sending them heartbeats since it suspects them: only links that fail one way make these."""
    sides: tuple[Side, ...]
    undecided: tuple[str, ...]
    """Members of whom it is not predicted with whom they merge."""
    exact: bool
    settles: bool
    """Whether it was reckoned with masters that settle what slaves report of one another."""
    reset: bool
    """Whether connections break at once, and do not only fall silent."""


def preview(picture: Picture, commands: Sequence[Command], timing: Timing) -> Preview:
    """What would come of `commands` if they were done now and nothing else happened."""
    reachability = Reachability(tuple(picture.members))
    reachability.take(picture.links.values())
    for command in commands:
        reachability.do(command)
    silent = reachability.set_of(label for label, belief in picture.members.items() if not belief.running)
    reachability.isolate(reachability.names(silent))
    masters = [picture.members[label] for label in picture.masters()]
    settles = timing.settles is not False
    result = outcome(
        reachability,
        [_standing(picture, reachability, master) for master in masters],
        silent,
        _address_rank(picture),
        settles=settles,
    )
    lists = [(master, reachability.set_of(_labels(picture, master))) for master in masters]
    return Preview(
        suspicions=tuple(_groups(reachability, lists, silent, in_turn=False)),
        in_turn=tuple(_groups(reachability, lists, silent, in_turn=True)),
        sides=tuple(_side(picture, reachability, cluster) for cluster in result.clusters),
        undecided=reachability.names(result.undecided),
        exact=result.exact,
        settles=settles,
        reset=any(isinstance(one, Partition | CutLink) and one.mode == "reset" for one in commands),
    )


def preview_facts(found: Preview, timing: Timing) -> tuple[Fact, ...]:
    """The preview in words: what it comes to first, as there may be room for a few lines only."""
    facts = [*_side_facts(found), *_suspicion_facts(found, timing), *_limits_of_prediction(found, timing)]
    return tuple(Fact(fact.heading, one_line(fact.text), fact.tone) for fact in facts)


def names(labels: Sequence[str]) -> str:
    """Some labels in a row."""
    return listed(labels, NAMES_SHOWN)


# Words


def _suspicion_facts(found: Preview, timing: Timing) -> Iterator[Fact]:
    if not found.suspicions:
        yield Fact("suspects", "nobody: everybody still hears all of its list", "good")
        return
    for place, (observers, lost) in enumerate(found.suspicions[:GROUPS_SHOWN]):
        verb = "stops hearing" if len(observers) == 1 else "stop hearing"
        yield Fact("" if place else "suspects", f"{names(observers)} {verb} {names(lost)}", "warning")
    if len(found.suspicions) > GROUPS_SHOWN:
        yield Fact("", f"and {len(found.suspicions) - GROUPS_SHOWN} more groups lose others", "warning")
    for observers, lost in found.in_turn[:GROUPS_SHOWN]:
        yield Fact(
            "in turn", f"{names(observers)}: nothing comes from {names(lost)} any more, once suspected", "warning"
        )
    yield Fact("when", _when(found, timing))


def _when(found: Preview, timing: Timing) -> str:
    if found.reset:
        return "within a second: the connections break, and a few tries to open them again fail"
    if timing.timeout_us is None:
        return "at the heartbeat timeout; a master removes at once whom it does not hear"
    how = "as it was seen here" if timing.timeout_seen else "as it is set"
    seconds = f"{timing.timeout_us / SECOND_US:.3g} s"
    return f"after {seconds} of silence, {how}; a master removes at once whom it does not hear"


def _side_facts(found: Preview) -> Iterator[Fact]:
    heading = f"{len(found.sides)} clusters" if len(found.sides) != 1 else "1 cluster"
    for place, side in enumerate(found.sides):
        how = "stays master" if side.led_before else "claims mastership"
        with_whom = f" with {names(side.members[1:])}" if len(side.members) > 1 else " alone"
        tone: Tone = "plain" if not side.refuses and not side.lacking else "warning"
        yield Fact("" if place else heading, f"{side.members[0]} {how}{with_whom}: {_data(side)}", tone)


def _data(side: Side) -> str:
    words = []
    if side.owned is None:
        words.append("no partitions yet")
    else:
        words.append(f"owns {counted(side.owned, 'partition')}")
        words.append(f"✕ now holds nothing of {side.lacking}" if side.lacking else "holds a replica of all")
    if side.refuses:
        words.append(f"✕ refuses operations: {len(side.members)} of the {side.refuses} members it takes")
    return ", ".join(words)


def _limits_of_prediction(found: Preview, timing: Timing) -> Iterator[Fact]:
    if found.undecided:
        yield Fact("not predicted", f"with whom {names(found.undecided)} merge: whoever is quicker", "faint")
    if not found.exact:
        yield Fact("", "a master may find a better set in a longer search", "faint")
    if timing.settles is None and len(found.suspicions) > 1:
        yield Fact("assumed", f"masters settle what slaves report: {RULE}", "faint")
    elif not found.settles:
        yield Fact("assumed", "masters do not settle what slaves report, as it is set", "faint")


# Reckoning


def _standing(picture: Picture, reachability: Reachability, master: Belief) -> ClusterMembers:
    places, lite = [], 0
    for member in master.members:
        place = reachability.place_of.get(picture.label_of(member.address))
        if place is not None:
            places.append(place)
            lite |= member.lite << place
    return ClusterMembers(tuple(places), lite)


def _labels(picture: Picture, belief: Belief) -> list[str]:
    return [picture.label_of(member.address) for member in belief.members]


def _address_rank(picture: Picture) -> list[int]:
    beliefs = list(picture.members.values())
    order = sorted(range(len(beliefs)), key=lambda place: numeric_order(beliefs[place].address or UNKNOWN))
    rank = [0] * len(order)
    for at, place in enumerate(order):
        rank[place] = at
    return rank


def _groups(
    reachability: Reachability, lists: Sequence[tuple[Belief, int]], silent: int, *, in_turn: bool
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Members of one list that lose the same others, together."""
    for _, on_list in lists:
        by_lost: dict[int, int] = {}
        for place in vertices_of(on_list & ~silent):
            cannot_hear = reachability.cannot_hear[place] & on_list
            lost = reachability.unlinked_from(place) & on_list & ~cannot_hear if in_turn else cannot_hear
            if lost:
                by_lost[lost] = by_lost.get(lost, 0) | 1 << place
        for lost, observers in by_lost.items():
            yield reachability.names(observers), reachability.names(lost)


def _side(picture: Picture, reachability: Reachability, cluster: Sequence[int]) -> Side:
    labels = [reachability.labels[place] for place in cluster]
    beliefs = [picture.members[label] for label in labels]
    owned = lacking = None
    master = picture.master_of(labels[0])
    table = master.table if master is not None and master.table is not None else beliefs[0].table
    if table is not None:
        inside = {belief.uuid for belief in beliefs}
        outside = {belief.uuid for belief in picture.members.values()} - inside
        owned = sum(table.owned_by(uuid) for uuid in inside)
        lacking = len(table.loss_without(outside, inside | outside).lost)
    needed = max((belief.needed for belief in beliefs), default=0)
    return Side(tuple(labels), beliefs[0].is_master, owned, lacking, needed if len(labels) < needed else 0)
