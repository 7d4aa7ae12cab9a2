"""What a destructive command would hit, in words, before it is confirmed; and what would be lost if some members died now.

Network faults worth a try are made for any cluster: each gives the commands that make it. Pure: labels in, commands out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from quarterdeck.backend.commands.catalogue import members_ended
from quarterdeck.backend.core.cluster_profile import ClusterState, allows_joins, allows_migrations, allows_promotions
from quarterdeck.backend.core.commands import (
    BlockMode,
    ChangeState,
    Command,
    CutLink,
    Partition,
    SearchClusters,
    SetJoinList,
)
from quarterdeck.backend.picture.events.membership import VERDICTS
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import ReplicaLoss, TableBelief
from quarterdeck.backend.picture.text.fact import Fact, not_told
from quarterdeck.backend.picture.text.formatting import Refusal, counted, listed, one_line

PresetName = Literal["halves", "isolate", "bridge", "ring", "racks"]

MOST_SIDES = 4
"""So many sides can be made by hand."""

MEANINGS: dict[PresetName, str] = {
    "halves": "the older half and the younger half lose each other",
    "isolate": "one member loses all others",
    "bridge": "two halves lose each other, and one member sees both",
    "ring": "every member sees a majority, and no two the same one",
    "racks": "all racks but the first lose one another; the first sees all (Partial Member Disconnection Resolution)",
}
PRESET_NAMES = tuple(MEANINGS)


class NoSuchFault(Refusal):
    """The members at hand do not make this fault. The message says why."""


class FaultPlan(Struct, frozen=True):
    """A fault that is not made yet."""

    title: str
    """What it is, in a few words."""
    sides: tuple[tuple[str, ...], ...]
    """Labels side by side, to show; who stands in none keeps all links. Empty where sides are not the point."""
    commands: tuple[Partition | CutLink, ...]

    def cutting_by(self, mode: BlockMode) -> FaultPlan:
        """Return the same fault, made in another way."""
        return replace(self, commands=tuple(replace(command, mode=mode) for command in self.commands))


def preset(
    name: PresetName,
    labels: Sequence[str],
    *,
    member: str = "",
    racks: int = 0,
    zones: Mapping[str, str] | None = None,
    mode: BlockMode = "blackhole",
) -> FaultPlan:
    """Return the fault called `name` among `labels`, in order of age with the master first.

    `member` is isolated, or is the bridge: the youngest if none is named. Racks are the `zones` of the members where those are
    known and no number of `racks` is asked for; else as many even ones, three by default.

    Raises:
        NoSuchFault: There is no such fault among these members.
    """
    chosen = member or (labels[-1] if labels else "")
    if member and member not in labels:
        raise NoSuchFault(f"{member} is not among the running members")
    match name:
        case "halves":
            _need(labels, 2, "halves")
            return _partition("halves", _halves(labels), mode)
        case "isolate":
            _need(labels, 2, "an isolated member")
            rest = tuple(label for label in labels if label != chosen)
            return _partition(f"isolate {chosen}", (rest, (chosen,)), mode)
        case "bridge":
            _need(labels, 3, "a bridge and two sides")
            sides = _halves([label for label in labels if label != chosen])
            return _partition(f"bridge {chosen}", sides, mode)
        case "ring":
            _need(labels, 4, "a ring")
            return FaultPlan("ring of majorities", (), _ring(labels, mode))
        case "racks":
            return _racks(labels, racks, zones or {}, mode)


def custom_fault(sides: Sequence[Sequence[str]], mode: BlockMode = "blackhole") -> FaultPlan:
    """Return the partition of sides put together by hand; empty sides do not count.

    Raises:
        NoSuchFault: There are fewer than two sides.
    """
    filled = tuple(tuple(side) for side in sides if side)
    if len(filled) < 2:
        raise NoSuchFault("one side is no partition; put members on two sides or more")
    return _partition("partition", filled, mode)


def majority_reach(count: int) -> int:
    """How many members to either side each of `count` in a ring has to see, to see just a majority with itself."""
    majority = count // 2 + 1
    return majority // 2  # rounded up: 2 * reach + 1 >= majority


def _ring(labels: Sequence[str], mode: BlockMode) -> tuple[CutLink, ...]:
    count, reach = len(labels), majority_reach(len(labels))
    cuts = []
    for place, label in enumerate(labels):
        # Two members of a ring are so many steps apart, the one way or the other.
        far = tuple(labels[place + way] for way in range(1, count - place) if min(way, count - way) > reach)
        if far:
            cuts.append(CutLink((label,), far, mode=mode))
    return tuple(cuts)


def _racks(labels: Sequence[str], racks: int, zones: Mapping[str, str], mode: BlockMode) -> FaultPlan:
    by_zone: dict[str, list[str]] = {}
    if not racks:
        for label in labels:
            if zones.get(label):
                by_zone.setdefault(zones[label], []).append(label)
    if len(by_zone) >= 2:
        standing = [tuple(rack) for rack in by_zone.values()]
        title = f"racks by zone: {', '.join(by_zone)}"
    else:
        wanted = racks or 3
        if wanted < 2:
            raise NoSuchFault(f"{wanted} is too few; two racks at least can lose each other")
        _need(labels, wanted, f"{wanted} racks")
        # Even shares in a row; the first ones are greater by one where it does not come out even.
        ends = [-(-len(labels) * rack // wanted) for rack in range(wanted + 1)]
        standing = [tuple(labels[start:end]) for start, end in pairwise(ends)]
        title = f"{wanted} racks"
    return _partition(title, tuple(standing[1:] if len(standing) > 2 else standing), mode)


def _halves(labels: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    middle = (len(labels) + 1) // 2
    return tuple(labels[:middle]), tuple(labels[middle:])


def _partition(title: str, sides: tuple[tuple[str, ...], ...], mode: BlockMode) -> FaultPlan:
    return FaultPlan(title, sides, (Partition(sides, mode),))


def _need(labels: Sequence[str], least: int, what: str) -> None:
    if len(labels) < least:
        raise NoSuchFault(f"{what} takes {least} running members at least, and there are {len(labels)}")


def blast_radius(picture: Picture, commands: Sequence[Command]) -> str:
    """Return a few sentences on the members that `commands` would hit now; empty for commands that destroy nothing."""
    killed, stopped = members_ended(commands, "killed"), members_ended(commands, "stopped")
    sentences = _of_ending(picture, {*killed, *stopped}) if killed or stopped else []
    sentences += _of_data(picture, killed, stopped)
    for command in commands:
        match command:
            case ChangeState(member, state):
                sentences += _of_state(picture, member, state)
            case SetJoinList():
                # The first picture of the console names the presets of this chapter, and edits no list.
                from quarterdeck.backend.judgement.merging.join_list_edit import edit_sentences

                sentences += edit_sentences(picture, command)
            case SearchClusters(member):
                sentences += _of_search(picture, member)
    return " ".join(sentences)


def _of_ending(picture: Picture, targets: Collection[str]) -> list[str]:
    running = [label for label, belief in picture.members.items() if belief.running]
    hit = [label for label in running if label in targets]
    left = [label for label in running if label not in targets]
    sentences = [f"{len(hit)} of {len(running)} running members would end; {len(left)} would be left."]
    for label in hit:
        address = picture.members[label].address
        followers = [other for other in left if picture.members[other].master == address]
        if followers:
            sentences.append(f"{one_line(label)} is master of {_names(followers)}: they need a new one.")
    if not left and running:
        sentences.append("Nothing of the cluster remains.")
    return sentences


def _of_data(picture: Picture, killed: Collection[str], stopped: Collection[str]) -> list[str]:
    sentences: list[str] = []
    living = incarnations_left(picture)
    staying = [label for label in stopped if _is_held(picture, label, allows_migrations)]
    killed = [*killed, *(label for label in staying if label not in killed)]
    unknown = without_backups(picture, {*killed, *stopped})
    if unknown is not None:
        return [f"What would be lost is {not_told('backups', unknown.witnessed_by)}."]
    for table, uuids in incarnations_by_table(picture, killed):
        loss = table.loss_without(uuids, living)
        if loss.lost:
            lost = counted(len(loss.lost), "partition")
            sentences.append(f"✕ {lost} would be lost: no other member holds a replica.")
        else:
            heirs = sum(loss.heirs.values())
            waits = any(_is_held(picture, label, allows_promotions) for label in killed)
            then = "served by none before the cluster is ACTIVE again" if waits else "go to their first backups"
            sentences.append(f"No partition would be lost; {heirs} would {'be ' * waits}{then}.")
        if loss.bared:
            sentences.append(f"! {counted(len(loss.bared), 'partition')} would fall to a single copy.")
    stays = any(belief.running for label, belief in picture.members.items() if label not in (*killed, *stopped))
    moving = [label for label in stopped if label not in staying]
    if staying and incarnations_by_table(picture, staying):
        state = picture.members[staying[0]].cluster_state
        sentences.append(f"The cluster is {state}: data does not move to others before a member leaves.")
    if stays and incarnations_by_table(picture, moving):
        sentences.append("Their data moves to the others before they leave.")
    return sentences


def _is_held(picture: Picture, label: str, allows: Callable[[ClusterState], bool]) -> bool:
    belief = picture.members.get(label)
    return belief is not None and not allows(belief.cluster_state)


def _of_state(picture: Picture, member: str, state: ClusterState) -> list[str]:
    hit = _cluster_of(picture, member)
    reached = f"It reaches {counted(len(hit), 'running member')}: {_names(hit)}."
    if allows_joins(state):
        return [reached, "Newcomers may join, and the cluster may merge."]
    until = "Until it is ACTIVE again no newcomer joins, only members that went missing come back, and it merges with"
    return [reached, f"{until} no other cluster."]


def _of_search(picture: Picture, member: str) -> list[str]:
    hit = _cluster_of(picture, member)
    sentences = [
        f"Should it meet a cluster that wins, all {len(hit)} ({_names(hit)}) leave theirs and join that one under new uuids; "
        "should it win, the other comes to it."
    ]
    belief = picture.members.get(member)
    for remote, verdict in belief.verdicts.items() if belief else ():
        sentences.append(f"It met that of {one_line(picture.label_of(remote))} before: {VERDICTS[verdict.decision]}.")
    return sentences


def _cluster_of(picture: Picture, member: str) -> list[str]:
    belief = picture.members.get(member)
    if belief is None or belief.master is None:
        return []
    return [label for label, other in picture.members.items() if other.running and other.master == belief.master]


def _names(labels: Collection[str]) -> str:
    return ", ".join(map(one_line, labels)) or "no member"


NAMED = 12
"""How many partitions a sentence names before it only counts the rest."""

HEIRS_NAMED = 6


def incarnations_left(picture: Picture) -> frozenset[str]:
    """Return the incarnations that have not ended, as far as that was seen. A frozen one may run on, so it counts."""
    return frozenset(belief.uuid for belief in picture.members.values() if belief.status not in ("stopped", "killed"))


def incarnations_by_table(picture: Picture, labels: Collection[str]) -> list[tuple[TableBelief, list[str]]]:
    """Group the incarnations of `labels` that have not ended by the table that says who holds their data.

    That is the table of the master that each follows, or its own where that has none.
    """
    living = incarnations_left(picture)
    found: dict[int, tuple[TableBelief, list[str]]] = {}
    for label in labels:
        belief = picture.members.get(label)
        if belief is None or belief.uuid not in living:
            continue
        master = picture.master_of(label)
        table = master.table if master is not None and master.table is not None else belief.table
        if table is not None:
            found.setdefault(id(table), (table, []))[1].append(belief.uuid)
    return list(found.values())


def loss_of(picture: Picture, table: TableBelief, labels: Collection[str]) -> ReplicaLoss:
    """Return what `table` would lose if the members `labels` died now. Members that are gone take nothing with them."""
    living = incarnations_left(picture)
    dying = [belief.uuid for label in labels if (belief := picture.members.get(label)) and belief.uuid in living]
    return table.loss_without(dying, living)


def without_backups(picture: Picture, labels: Collection[str]) -> MemberBelief | None:
    """One of `labels` by whose table, or whose master's, it is not known who holds backups; None where all is known."""
    for label in labels:
        belief = picture.members.get(label)
        source = picture.master_of(label) or belief
        if source is not None and not source.shows("backups"):
            return source
    return None


def loss_facts(picture: Picture, loss: ReplicaLoss, labels: Collection[str]) -> tuple[Fact, ...]:
    """`loss` in words, one line each, the worst first."""
    dying = [label for label in labels if label in picture.members]
    if not dying:
        return ()
    who = Fact("if now died", listed([one_line(label) for label in dying], HEIRS_NAMED), "strong")
    unknown = without_backups(picture, dying)
    if unknown is not None:
        owned = f"{counted(len(loss.lost) + sum(loss.heirs.values()), 'partition')} would need another owner; "
        why = f"who holds their backups is {not_told('backups', unknown.witnessed_by)}"
        return who, Fact("what is lost", f"{owned if loss.lost else ''}{why}", "warning")
    facts = [who]
    if loss.lost:
        facts.append(Fact("✕ lost", f"{_partitions(loss.lost)}: no other member holds a replica", "bad"))
    if loss.bared:
        facts.append(Fact("! one copy", f"{_partitions(loss.bared)}", "warning"))
    if loss.heirs:
        labels_of = {belief.uuid: label for label, belief in picture.members.items()}
        named = [f"{one_line(labels_of.get(uuid, uuid))} {count}" for uuid, count in loss.heirs.items()]
        more = f" and {len(named) - HEIRS_NAMED} more members" if len(named) > HEIRS_NAMED else ""
        owned = counted(sum(loss.heirs.values()), "partition")
        facts.append(Fact("→ taken over", f"{owned}, by {', '.join(named[:HEIRS_NAMED])}{more}", "plain"))
    if len(facts) == 1:
        facts.append(Fact("✓ nothing", "they hold no replica", "good"))
    elif not loss.lost:
        facts.insert(1, Fact("✓ nothing lost", "of every partition a replica would be left", "good"))
    return tuple(facts)


def _partitions(partitions: tuple[int, ...]) -> str:
    return f"{counted(len(partitions), 'partition')} ({listed([f'p{partition}' for partition in partitions], NAMED)})"
