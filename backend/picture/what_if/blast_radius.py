"""What a destructive command would hit, in words, before it is confirmed; and what would be lost if some members died now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from quarterdeck.backend.core.cluster_profile import ClusterState, allows_joins, allows_migrations, allows_promotions
from quarterdeck.backend.core.commands.catalogue import members_ended
from quarterdeck.backend.core.commands.commands import ChangeState, Command, SearchClusters, SetJoinList
from quarterdeck.backend.picture.events.split_brain import VERDICTS
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import ReplicaLoss, TableBelief
from quarterdeck.backend.picture.merging.join_list_edit import edit_sentences
from quarterdeck.backend.picture.text.fact import Fact, not_told
from quarterdeck.backend.picture.text.formatting import counted, listed, one_line


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
            sentences.append(
                f"✕ {counted(len(loss.lost), 'partition')} would be lost: no other member holds a replica."
            )
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
    sentences = [f"It reaches {len(hit)} running member{'s' if len(hit) != 1 else ''}: {_names(hit)}."]
    if allows_joins(state):
        sentences.append("Newcomers may join, and the cluster may merge.")
    else:
        sentences.append(
            "Until it is ACTIVE again no newcomer joins, only members that went missing come back, and it merges with "
            "no other cluster."
        )
    return sentences


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
    who = listed([one_line(label) for label in dying], HEIRS_NAMED)
    unknown = without_backups(picture, dying)
    if unknown is not None:
        owned = f"{counted(len(loss.lost) + sum(loss.heirs.values()), 'partition')} would need another owner; "
        why = f"who holds their backups is {not_told('backups', unknown.witnessed_by)}"
        return Fact("if now died", who, "strong"), Fact("what is lost", f"{owned if loss.lost else ''}{why}", "warning")
    facts = []
    if loss.lost:
        facts.append(Fact("✕ lost", f"{_partitions(loss.lost)}: no other member holds a replica", "bad"))
    if loss.bared:
        facts.append(Fact("! one copy", f"{_partitions(loss.bared)}", "warning"))
    if loss.heirs:
        named = [f"{one_line(_label(picture, uuid))} {count}" for uuid, count in loss.heirs.items()]
        more = f" and {len(named) - HEIRS_NAMED} more members" if len(named) > HEIRS_NAMED else ""
        owned = counted(sum(loss.heirs.values()), "partition")
        facts.append(Fact("→ taken over", f"{owned}, by {', '.join(named[:HEIRS_NAMED])}{more}", "plain"))
    if not facts:
        facts.append(Fact("✓ nothing", "they hold no replica", "good"))
    if not loss.lost and (loss.bared or loss.heirs):
        facts.insert(0, Fact("✓ nothing lost", "of every partition a replica would be left", "good"))
    return (Fact("if now died", who, "strong"), *facts)


def _partitions(partitions: tuple[int, ...]) -> str:
    return f"{counted(len(partitions), 'partition')} ({listed([f'p{partition}' for partition in partitions], NAMED)})"


def _label(picture: Picture, uuid: str) -> str:
    return next((label for label, belief in picture.members.items() if belief.uuid == uuid), uuid)
