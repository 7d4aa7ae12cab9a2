"""What a destructive command would hit, in words: shown before it is confirmed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from quarterdeck.backend.core.cluster_profile import ClusterState, allows_joins, allows_migrations, allows_promotions
from quarterdeck.backend.core.commands.catalogue import members_ended
from quarterdeck.backend.core.commands.commands import ChangeState, Command, SearchClusters, SetJoinList
from quarterdeck.backend.picture.events.split_brain import VERDICTS
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.merging.join_list_edit import edit_sentences
from quarterdeck.backend.picture.text.fact import not_told
from quarterdeck.backend.picture.text.formatting import counted, one_line
from quarterdeck.backend.picture.what_if.loss import incarnations_by_table, incarnations_left, who_does_not_tell


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
    """Who follows, lists and outlives `targets`."""
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
    """Return what becomes of the data, by the tables of the masters that the members follow; nothing where there is none."""
    sentences: list[str] = []
    living = incarnations_left(picture)
    staying = [label for label in stopped if _is_held(picture, label, allows_migrations)]
    killed = [*killed, *(label for label in staying if label not in killed)]
    unknown = who_does_not_tell(picture, {*killed, *stopped})
    if unknown is not None:
        return [f"What would be lost is {not_told('backups', unknown.witnessed_by)}."]
    for table, uuids in incarnations_by_table(picture, killed):
        loss = table.loss_without(uuids, living)
        if loss.lost:
            sentences.append(f"✕ {counted(len(loss.lost), 'partition')} would be lost: nobody else holds a replica.")
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
    """Return whether the state that a member knows its cluster to be in forbids something."""
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
    """Return the running members that follow the same master, in its own belief, as `member`."""
    belief = picture.members.get(member)
    if belief is None or belief.master is None:
        return []
    return [label for label, other in picture.members.items() if other.running and other.master == belief.master]


def _names(labels: Collection[str]) -> str:
    return ", ".join(map(one_line, labels)) or "nobody"
