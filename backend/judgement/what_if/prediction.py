"""What is predicted to come of commands that are not given yet, how it is said, and how a dangerous command is confirmed.

Nothing is reckoned here: `backend.simulation.prediction` runs the members themselves forward in a copy, and this is what it saw.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from quarterdeck.backend.commands.catalogue import description_of, members_ended
from quarterdeck.backend.core.commands import Command, CutLink, Partition
from quarterdeck.backend.core.membership.partial_disconnection.independent_set import components
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.what_if.blast_radius import incarnations_by_table, incarnations_left
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact, Tone, under
from quarterdeck.backend.picture.text.formatting import counted, listed, one_line

NAMES_SHOWN = 8
STEPS_SHOWN = 8
PLAIN_ASSUMPTION = "nothing else happens, and messages take 0.2 to 1 ms where links are plain"


@dataclass(frozen=True, slots=True)
class PredictedCluster:
    """One cluster as it stands at the end."""

    members: tuple[str, ...]
    """In order of age, the master first."""
    led_before: bool
    """Whether its master is one already."""
    partitions: int | None = None
    """How many its table has; None when there is no table, or when it is `untold`."""
    lost: int = 0
    """Those of which none of its members held a replica any more."""
    refuses: str = ""
    """Why it would not serve clients; empty when it would."""
    untold: bool = False
    """Whether it is not known who holds which replica."""


@dataclass(frozen=True, slots=True)
class PredictedStep:
    """Something decisive that one member does on the way, and how long after the commands."""

    after_us: int
    member: str
    kind: Literal["removes", "claims", "merges"]
    others: tuple[str, ...]
    """Whom it removes; whom it suspects as it claims the mastership; into whose cluster it merges."""
    cause: str = ""
    """Of a removal, as a word."""


@dataclass(frozen=True, slots=True)
class FaultPrediction:
    """What was seen in the copy until `followed_us` after the commands."""

    clusters: tuple[PredictedCluster, ...]
    alone: tuple[str, ...]
    """Members that run and belong to no cluster."""
    suspicions: tuple[tuple[str, tuple[str, ...]], ...]
    """Whom a member still suspects and has on its list, at the end."""
    steps: tuple[PredictedStep, ...]
    followed_us: int
    settled: bool
    """Whether nothing changed any more for so long that nothing is to be expected."""
    orders: int
    """In how many orders of the messages it was tried."""
    agreeing: int
    """In how many of these it came out so."""
    assumed: tuple[str, ...]

    @property
    def lists(self) -> dict[str, tuple[str, ...]]:
        """The list of each cluster by its master."""
        return {cluster.members[0]: cluster.members for cluster in self.clusters}

    @property
    def outcome(self) -> tuple[object, ...]:
        clusters = {
            (cluster.members[0], frozenset(cluster.members), cluster.partitions, cluster.lost, cluster.refuses)
            for cluster in self.clusters
        }
        return clusters, self.alone


def with_present_table(found: FaultPrediction, picture: Picture) -> FaultPrediction:
    """Return the prediction with what each cluster would lack by the table that its master has now.

    It is for predictions that say nothing of partitions.
    """
    return replace(found, clusters=tuple(_with_table(cluster, picture) for cluster in found.clusters))


def _with_table(cluster: PredictedCluster, picture: Picture) -> PredictedCluster:
    if cluster.partitions is not None:
        return cluster
    beliefs = [picture.members[label] for label in cluster.members if label in picture.members]
    if any(not belief.shows("backups") for belief in beliefs):
        return replace(cluster, untold=True)
    master = picture.master_of(cluster.members[0])
    table = master.table if master is not None and master.table is not None else beliefs[0].table if beliefs else None
    if table is None:
        return cluster
    inside = {belief.uuid for belief in beliefs}
    all_members = inside | {belief.uuid for belief in picture.members.values()}
    return replace(cluster, partitions=len(table), lost=len(table.loss_without(all_members - inside, all_members).lost))


def prediction_facts(found: FaultPrediction) -> tuple[Fact, ...]:
    """Return the prediction in words: what it comes to first, as there may be room for a few lines only."""
    facts = [*_cluster_facts(found), *_step_facts(found), *_limits(found)]
    return tuple(Fact(fact.heading, one_line(fact.text), fact.tone) for fact in facts)


def _cluster_facts(found: FaultPrediction) -> Iterator[Fact]:
    said: list[tuple[str, Tone]] = []
    for cluster in found.clusters:
        how = "stays master" if cluster.led_before else "is master then"
        with_whom = f" with {_names(cluster.members[1:])}" if len(cluster.members) > 1 else " alone"
        tone: Tone = "warning" if cluster.refuses or cluster.lost else "plain"
        said.append((f"{cluster.members[0]} {how}{with_whom}: {_data(cluster)}", tone))
    yield from under(counted(len(found.clusters), "cluster"), said)
    if found.alone:
        yield Fact("" if found.clusters else "no cluster", f"in no cluster: {_names(found.alone)}", "warning")


def _data(cluster: PredictedCluster) -> str:
    refuses = f", ✕ refuses operations, {cluster.refuses}" if cluster.refuses else ""
    if cluster.untold:
        return f"what it would lose is {NOT_REPORTED}{refuses}"
    if cluster.partitions is None:
        return f"no partitions yet{refuses}"
    if cluster.lost:
        return f"✕ loses {cluster.lost} of {counted(cluster.partitions, 'partition')}{refuses}"
    return f"keeps all {cluster.partitions} partitions{refuses}"


def _step_facts(found: FaultPrediction) -> Iterator[Fact]:
    if not found.steps:
        yield Fact("on the way", "no list changes and no member claims the mastership", "good")
    steps = (f"after {step.after_us / SECOND_US:.1f} s {_step_text(step)}" for step in found.steps[:STEPS_SHOWN])
    yield from under("on the way", steps, "warning")
    if len(found.steps) > STEPS_SHOWN:
        yield Fact("", f"and {len(found.steps) - STEPS_SHOWN} steps more", "faint")
    for member, suspects in found.suspicions[:STEPS_SHOWN]:
        yield Fact("", f"{member} still suspects {_names(suspects)} at the end", "warning")


def _step_text(step: PredictedStep) -> str:
    match step.kind:
        case "removes":
            return f"{step.member} removes {_names(step.others)}: {step.cause.replace('-', ' ')}"
        case "claims":
            return f"{step.member} claims the mastership, suspecting {_names(step.others)}"
        case "merges":
            return f"{step.member} merges into the cluster of {_names(step.others)}"


def _limits(found: FaultPrediction) -> Iterator[Fact]:
    followed = f"run forward for {found.followed_us / SECOND_US:.0f} s in a copy"
    yield Fact("predicted", followed if found.settled else f"{followed}; it has not come to rest", "faint")
    if found.orders > 1:
        same = f"the same in {found.agreeing} of {found.orders} orders of the messages"
        yield Fact("", same, "faint" if found.agreeing == found.orders else "warning")
    yield from under("assumed", found.assumed, "faint")


def _names(labels: Sequence[str]) -> str:
    return listed(labels, NAMES_SHOWN)


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
    dying = incarnations_by_table(picture, sorted(killed))
    return any(table.loss_without(incarnations, living).lost for table, incarnations in dying)


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
    bits = {label: 1 << place for place, label in enumerate(labels)}
    everyone = (1 << len(labels)) - 1
    linked = [everyone & ~sum(bits.get(other, 0) for other in apart.get(label, ())) for label in labels]
    return max((group.bit_count() for group in components(linked, everyone)), default=0)
