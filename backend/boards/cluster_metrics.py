"""What is known of a cluster as numbers, for monitoring: one gauge for each answer to an operator's questions.

What is not known has no sample: a missing number is neither zero nor well. Labels come from short lists, and from the members and
maps of the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, get_args

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.absence import is_merging
from quarterdeck.backend.judgement.health.cluster_health import ClusterHealth, Condition
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.member_data import MemberData, Stored, answered
from quarterdeck.backend.picture.fold.picture import Picture

PREFIX = "quarterdeck_cluster_"

MEASURED_WITHIN_US = 5 * SECOND_US // 2
"""A member of ours reports its entries so soon after they have changed."""
REPORTED_WITHIN_US = 12 * SECOND_US
"""The same of a member of Hazelcast, whose metrics come every 5 seconds."""

Labels = tuple[str, ...]


class ClusterMetric(NamedTuple):
    """A metric with its samples: values by the values of its labels."""

    name: str
    meaning: str
    labels: Labels
    samples: Mapping[Labels, float]
    counts_up: bool = False
    """It is a counter: it never goes down while the exporter runs."""


MOST_MAPS, OTHER_MAPS = 200, "other"
"""Maps with series of their own, the largest ones, and the label under which all others are summed."""


def cluster_metrics(judge: Judge, connections: Mapping[str, str]) -> Iterator[ClusterMetric]:
    """Yield the metrics of the cluster at the judge's moment.

    `connections` has the state of the watcher's connection to each member, by label.
    """
    picture, now_us, running = judge.picture, judge.now_us, judge.agreement.holders
    yield from _health(judge.health)
    reached = Counter(connections.values())
    yield _metric("connections", "Members that are looked for, by how they are reached.", reached, "state")
    yield from _lists(judge)
    agree = judge.agreement.tables_agree
    yield _gauge("tables_agree", "All members that report a partition table report the same.", agree)
    yield from _migrations(picture, running)
    yield from _data(picture, judge.health, running, now_us, is_complete=_is_complete(judge))
    yield from _processes(running)


def _health(health: ClusterHealth) -> Iterator[ClusterMetric]:
    conditions = {name: name == health.condition for name in get_args(Condition)}
    yield _metric("condition", "1 for the condition that the sentence begins with.", conditions, "condition")
    yield _gauge("whole", "One list, one master, every member on it reached.", health.whole)
    yield _gauge("data_safe", "Every replica that should be there is there and in step.", health.data_safe)
    yield _gauge("copies", "Copies of each partition, where all have the same number.", health.replicas.copies)


def _lists(judge: Judge) -> Iterator[ClusterMetric]:
    picture, running, masters, lists = judge.picture, judge.agreement.holders, judge.masters, judge.agreement.lists
    sides = len(judge.agreement.sides)
    is_known = running and _is_complete(judge)
    yield _gauge("masters", "Members that lead; more than one is a split.", sides if sides > 1 or is_known else None)
    lineages = max(judge.agreement.lineages, sides)
    yield _gauge("lineages", "Lineages of member lists that are held.", lineages if lineages > 1 or is_known else None)
    agree = len(lists) == 1 and sides <= 1 if running else None
    yield _gauge("lists_agree", "All members that are reached hold one list.", agree)
    sizes = {master.label: len(master.members) for master in masters}
    yield _metric("list_members", "Members on the list of a master.", sizes, "master")
    yield _metric("list_version", "The version of that list.", {head.label: head.version for head in masters}, "master")
    merging = [belief for belief in picture.members.values() if is_merging(belief) or (belief.leads and belief.merging)]
    yield _gauge("merging_members", "Members on their way into another cluster.", len(merging) if running else None)
    suspicions = judge.agreement.suspicions
    suspects = len(suspicions.by_suspect) if len(suspicions.silent) < len(running) else None
    yield _gauge("suspected_members", "Members that another one suspects.", suspects)


def _is_complete(judge: Judge) -> bool:
    """Return whether no member is out of sight that may lead or own entries."""
    return not any(absence.way in ("not reached", "silent") for absence in judge.absences)


def _migrations(picture: Picture, running: Sequence[MemberBelief]) -> Iterator[ClusterMetric]:
    waiting: dict[str, float] = {}
    for master in (belief for belief in running if belief.leads):
        if master.shows("migration-queue"):
            waiting[master.label] = master.leading.waiting + len(master.leading.running)
        elif master.metrics is not None and master.metrics.queued_migrations is not None:
            waiting[master.label] = master.metrics.queued_migrations
    yield _metric("migrations_waiting", "Migrations that a master has not ended.", waiting, "master")
    history = picture.history
    if picture.without("migration-ends") is None and running:
        ended = {"done": history.done_count, "failed": history.failed_count}
        metric = _metric("migrations_ended", "Migrations that were seen to end.", ended, "outcome")
        yield metric._replace(counts_up=True)


def _data(
    picture: Picture, health: ClusterHealth, running: Sequence[MemberBelief], now_us: int, *, is_complete: bool
) -> Iterator[ClusterMetric]:
    newest = {(loss.side, loss.state): loss for loss in reversed(health.losses) if loss.stands}
    if picture.without("losses") is None and running:
        lost: dict[Labels, float] = {key: loss.partitions for key, loss in newest.items()}
        text = "Partitions of the newest loss of a master's cluster, feared or confirmed."
        yield ClusterMetric("lost_partitions", text, ("master", "state"), lost)
    entries: dict[Labels, float] = {
        key: loss.entries
        for key, loss in newest.items()
        if loss.entries is not None and loss.entries_known != "unknown"
    }
    yield ClusterMetric("lost_entries", "How many entries they had, or at most had.", ("master", "state"), entries)
    counts = Counter[str](loss.state for loss in health.losses)
    yield _metric("losses", "Losses so far, by what became of them.", counts, "state")
    known = [belief.data for belief in running if belief.data is not None]
    maps, counted = maps_of(known), known if is_complete and _is_counted(running, now_us) else []
    entries_of = {name: sum(held.entries for held in parts) for name, parts in maps.items()} if counted else {}
    yield _metric("map_entries", "Entries of a map, at their owners.", entries_of, "map")
    late = {name: answered(parts, now_us) for name, parts in maps.items()}
    hits = {name: found.hits for name, found in late.items() if found.hits is not None}
    yield _metric("map_hits_per_second", "How often an entry of a map is found, lately.", hits, "map")
    yield _metric(
        "map_operation_seconds", "How long an operation took at the owner of a map, lately, in the mean.",
        _in_seconds({name: (found.read_us, found.write_us) for name, found in late.items()}), "map", "operation",
    )  # fmt: skip
    yield _metric(
        "map_slowest_operation_seconds", "How long the slowest operation took since the owners of a map count.",
        _in_seconds({name: (found.slowest_read_us, found.slowest_write_us) for name, found in late.items()}),
        "map", "operation",
    )  # fmt: skip
    yield _gauge("entries", "Entries at their owners.", sum(data.entries for data in counted) if counted else None)
    backups = sum(data.backup_entries for data in counted) if counted else None
    yield _gauge("backup_entries", "Entries in backups.", backups)


def _is_counted(running: Sequence[MemberBelief], now_us: int) -> bool:
    """Return whether each member has reported its entries since lists and tables changed: entries that moved may count twice."""
    runs = {belief.uuid for belief in running}
    if any(member.uuid not in runs for belief in running for member in belief.members):
        return False
    changed_us = [max(belief.list_since_us, belief.table.since_us if belief.table else 0) for belief in running]
    within_us = REPORTED_WITHIN_US if any(belief.witnessed_by for belief in running) else MEASURED_WITHIN_US
    return now_us - max(changed_us, default=now_us) >= within_us


def maps_of(known: Iterable[MemberData]) -> dict[str, list[Stored]]:
    """Return what members hold of each map; the smallest of too many maps are put together."""
    maps: dict[str, list[Stored]] = {}
    for data in known:
        for name, held in data.maps.items():
            maps.setdefault(name, []).append(held)
    by_size = sorted(maps, key=lambda name: -sum(held.entries for held in maps[name]))
    for name in by_size[MOST_MAPS:]:  # clients choose names; the number of series is bounded all the same
        parts = maps.pop(name)
        maps.setdefault(OTHER_MAPS, []).extend(parts)
    return maps


def _in_seconds(by_map: Mapping[str, tuple[float | None, float | None]]) -> dict[Labels, float]:
    """Return the times of reads and writes, in microseconds, by map and operation, where they are known."""
    return {
        (name, operation): time_us / SECOND_US
        for name, times in by_map.items()
        for operation, time_us in zip(("read", "write"), times, strict=True)
        if time_us is not None
    }


PROCESS_METRICS = {
    "heap_used_bytes": ("heap_used", 1, "Heap that the member uses."),
    "heap_max_bytes": ("heap_max", 1, "Heap that the member can have."),
    "cpu_ratio": ("cpu_percent", 100, "Share of all processors that the member's process uses."),
    "open_files": ("open_files", 1, "File descriptors of the member's process."),
    "queued_operations": ("queued_operations", 1, "Operations that wait for a thread."),
    "pending_invocations": ("pending_invocations", 1, "Operations without an answer yet."),
    "clients": ("clients", 1, "Clients that are connected to the member."),
    "heartbeat_age_seconds": ("heartbeat_age", SECOND_US, "Since the member last sent heartbeats."),
}
"""By name: the field of `MemberMeasured`, what it is divided by, and the meaning."""


def _processes(running: Sequence[MemberBelief]) -> Iterator[ClusterMetric]:
    for name, (field, divisor, meaning) in PROCESS_METRICS.items():
        values = {
            belief.label: value / divisor
            for belief in running
            if belief.metrics is not None and (value := getattr(belief.metrics, field)) is not None
        }
        yield _metric(f"member_{name}", meaning, values, "member")


def _gauge(name: str, meaning: str, value: float | None) -> ClusterMetric:
    return ClusterMetric(name, meaning, (), {} if value is None else {(): float(value)})


def _metric(
    name: str, meaning: str, samples: Mapping[Labels, float] | Mapping[str, float], *labels: str
) -> ClusterMetric:
    known = samples.items()
    by_labels: dict[Labels, float] = {(key,) if isinstance(key, str) else key: float(value) for key, value in known}
    return ClusterMetric(name, meaning, labels, by_labels)


def observed_metrics(observations: Iterable[tuple[str, str, bool]]) -> Iterator[ClusterMetric]:
    """Yield the metrics of what is observed: kind, members in one text, and whether it goes on."""
    seen: Counter[str] = Counter()
    lasting: dict[Labels, float] = {}
    for kind, members, is_open in observations:
        seen[kind] += 1
        if is_open:
            lasting[kind, members] = 1.0
    yield ClusterMetric("observation", "1 for what is observed now.", ("kind", "members"), lasting)
    yield _metric("observations", "What was observed so far.", seen, "kind")._replace(counts_up=True)
