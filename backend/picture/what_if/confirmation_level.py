"""How a dangerous command is confirmed: not at all, by a yes, or by typing the cluster's name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from quarterdeck.backend.core.commands.catalogue import description_of, members_ended
from quarterdeck.backend.core.commands.commands import Command, CutLink, Partition
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.what_if.blast_radius import incarnations_by_table, incarnations_left

ConfirmationLevel = Literal["none", "confirm", "type-name"]

SEVERAL = 2
"""From so many members on that a cut leaves apart from the largest group, it is a split of the cluster."""


def confirmation_level(picture: Picture, commands: Sequence[Command], *, remote: bool) -> ConfirmationLevel:
    """Return what has to happen before `commands` are done.

    A cluster on this machine is there to be harmed: only what cannot be taken back is asked about. On a `remote` one everything
    that takes members away is asked about. What ends or freezes at least half of a cluster's running members, or splits it, or
    loses a partition for good, or stops a cluster, takes the name of the cluster.
    """
    gone = set(members_ended(commands, "killed", "stopped", "frozen"))
    killed = set(members_ended(commands, "killed"))
    if remote and any(description_of(command).takes_cluster_name for command in commands):
        return "type-name"
    if remote and (_hits_half(picture, gone) or _splits(picture, commands) or _loses_data(picture, killed)):
        return "type-name"
    if any(description_of(command).always_asked for command in commands):
        return "confirm"
    if remote and (gone or _cuts(commands)):
        return "confirm"
    running = {label for label, belief in picture.members.items() if belief.running}
    ended = set(members_ended(commands, "stopped"))
    return "confirm" if len(ended) > 1 and running <= ended else "none"


def _hits_half(picture: Picture, gone: Collection[str]) -> bool:
    clusters: dict[object, list[str]] = {}
    for label, belief in picture.members.items():
        if belief.running:
            clusters.setdefault(belief.master or label, []).append(label)
    return any(2 * sum(label in gone for label in members) >= len(members) for members in clusters.values())


def _loses_data(picture: Picture, killed: Collection[str]) -> bool:
    living = incarnations_left(picture)
    return any(
        table.loss_without(incarnations, living).lost
        for table, incarnations in incarnations_by_table(picture, sorted(killed))
    )


def _splits(picture: Picture, commands: Iterable[Command]) -> bool:
    cuts = _cuts(commands)
    if not cuts:
        return False
    running = [label for label, belief in picture.members.items() if belief.running]
    now: dict[str, set[str]] = {}
    for (source, target), link in picture.links.items():
        if link.blocked:
            _cut(now, (source,), (target,))
    then = {label: set(others) for label, others in now.items()}
    for sources, targets in cuts:
        _cut(then, sources, targets)
    return _largest_group(running, now) - _largest_group(running, then) >= SEVERAL


def _cuts(commands: Iterable[Command]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    found = []
    for command in commands:
        match command:
            case Partition(groups):
                for place, group in enumerate(groups):
                    found.append((group, tuple(label for other in groups[place + 1 :] for label in other)))
            case CutLink(sources, targets):
                found.append((sources, targets))
    return [(sources, targets) for sources, targets in found if sources and targets]


def _cut(apart: dict[str, set[str]], sources: Iterable[str], targets: Collection[str]) -> None:
    """Links that are cut one way are no links: those who cannot answer are not heard for long."""
    for source in sources:
        apart.setdefault(source, set()).update(targets)
        for target in targets:
            apart.setdefault(target, set()).add(source)


def _largest_group(labels: Sequence[str], apart: Mapping[str, Collection[str]]) -> int:
    unseen, largest = set(labels), 0
    while unseen:
        front = [unseen.pop()]
        size = 0
        while front:
            label = front.pop()
            size += 1
            reached = unseen - set(apart.get(label, ()))
            unseen -= reached
            front.extend(reached)
        largest = max(largest, size)
    return largest
