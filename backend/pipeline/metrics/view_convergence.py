"""How long it takes, after something has happened to members, until all that run hold one list of just themselves; splits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from pyspark.sql.types import ArrayType, StructType

from quarterdeck.backend.pipeline.metrics.run_tables import RunTables, Span, counted, merged, metric, subtracted
from quarterdeck.backend.pipeline.schemas import schema
from quarterdeck.backend.pipeline.tables.run_events import Row, followed

BURST_US = 5_000
"""Events within so short a time are one disturbance: the links of a cut, for instance."""

VIEW_CONVERGENCE = schema(
    """
    run
    at bigint when the last of it happened; microseconds on the run's clock
    what array<string> what happened: started, stopped, killed, lost, paused, resumed, mended
    agreed_at bigint when all running members held one list of just themselves; null if something came before
    took_us bigint how long that took
    overtaken boolean whether the next disturbance came first; where not, the journal ended
    lineage string lineage of the list that they agreed on
    version bigint its version
    """
)


class _Agreement(NamedTuple):
    """A span in which all members that run and are not paused hold one list of just themselves."""

    from_at: int
    to_at: int
    lineage: str
    version: int


class _Burst(NamedTuple):
    """Disturbances close together. Where only links broke, `what` is empty."""

    first_at: int
    at: int
    what: list[str]


@metric("one_view", VIEW_CONVERGENCE, "how long members took to agree on one list")
def view_convergence(tables: RunTables) -> list[Row]:
    """Make one row for each disturbance. Links that break are none, but end the wait after the one before."""
    agreements = list(_agreements(tables))
    rows = []
    for burst, following in followed(list(_bursts(tables))):
        if not burst.what:
            continue
        met = min(
            (
                (max(agreement.from_at, burst.at), agreement.lineage, agreement.version)
                for agreement in agreements
                if agreement.to_at > burst.at and (following is None or agreement.from_at < following.first_at)
            ),
            default=None,
        )
        agreed_at, lineage, version = met or (None, None, None)
        rows.append(
            {
                **{"at": burst.at, "what": burst.what, "agreed_at": agreed_at, "lineage": lineage, "version": version},
                "took_us": None if agreed_at is None else agreed_at - burst.at,
                "overtaken": met is None and following is not None,
            }
        )
    return rows


def _agreements(tables: RunTables) -> Iterator[_Agreement]:
    """Yield the agreements.

    A member that holds a list is on it; so if as many hold a list as are on it, and as run, then all that run hold it.
    """
    held: dict[tuple[str, int, int], dict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
    for view in (view for view in tables.views if view.from_at < view.to_at):
        held[view.lineage, view.version, len(view.listed)][view.uuid].append((view.from_at, view.to_at))
    running = [incarnation for incarnation in tables.running.values() if incarnation.from_at < incarnation.to_at]
    awake = [
        span
        for incarnation in running
        for span in subtracted([(incarnation.from_at, incarnation.to_at)], tables.frozen[incarnation.uuid])
    ]
    alive = list(counted(awake))
    for (lineage, version, size), of_members in held.items():
        holding = [span for uuid, spans in of_members.items() for span in subtracted(spans, tables.frozen[uuid])]
        for from_at, to_at, holders in counted(holding):
            for alive_from, alive_to, many in alive if holders == size else ():
                if many == size and from_at < alive_to and alive_from < to_at:
                    yield _Agreement(max(from_at, alive_from), min(to_at, alive_to), lineage, version)


def _bursts(tables: RunTables) -> Iterator[_Burst]:
    happened = sorted(_disturbances(tables))
    first = 0
    for place in range(1, len(happened) + 1):
        if place == len(happened) or happened[place][0] - happened[place - 1][0] > BURST_US:
            burst = happened[first:place]
            yield _Burst(burst[0][0], burst[-1][0], sorted({what for _, what in burst if what}))
            first = place


def _disturbances(tables: RunTables) -> Iterator[tuple[int, str]]:
    """Yield what happened to members, and when; empty for a link that broke."""
    for row in tables.table("lives"):
        if not row["merged_from"]:
            yield row["started_at"], "started"
        if row["end"] in ("stopped", "killed", "replaced"):
            yield row["ended_at"], "lost" if row["end"] == "replaced" else row["end"]
    for fault in tables.table("faults"):
        if fault["fault"] != "kill":
            yield fault["from_at"], "paused" if fault["fault"] == "pause" else ""
    yield from tables.fault_ends


SIDE = schema(
    """
    master string label of its master
    lineage string lineage of its lists
    members array<string> labels of those who followed it longest, the master included
    """
)

SPLITS = schema(
    """
    run
    from_at bigint when there were two masters; microseconds on the run's clock
    to_at bigint when there was only one again; null while it lasted
    lasted_us bigint how long, up to the end of the journal where it lasted
    healed_at bigint when the last link was mended or frozen member resumed before it ended; null where none was
    merge_us bigint from then, or from the beginning, to the end
    sides sides the sides, in the order in which they began
    """,
    sides=ArrayType(StructType(SIDE.fields)),
)


@metric("splits", SPLITS, "split brains, with their sides, and how long the merge took")
def splits(tables: RunTables) -> list[Row]:
    """Make one row for each split brain. A frozen master leads no member."""
    leading = counted((leadership.from_at, leadership.to_at) for leadership in tables.masters)
    rows = []
    for from_at, to_at in merged((begins, ends) for begins, ends, masters in leading if masters > 1):
        ended_at = to_at if to_at < tables.span[1] else None
        healed_at = max((at for at, _ in tables.fault_ends if from_at < at <= to_at), default=None)
        rows.append(
            {
                **{"from_at": from_at, "to_at": ended_at, "lasted_us": to_at - from_at, "healed_at": healed_at},
                "merge_us": None if ended_at is None else ended_at - (from_at if healed_at is None else healed_at),
                "sides": _sides(tables, from_at, to_at),
            }
        )
    return rows


def _sides(tables: RunTables, begins: int, ends: int) -> list[Row]:
    """Return the sides of a split: who led in it, and those who followed that master longer than any other."""
    leaders: dict[str, tuple[int, str]] = {}
    for leadership in sorted(tables.masters, key=lambda leadership: (leadership.from_at, leadership.member)):
        if leadership.from_at < ends and leadership.to_at > begins:
            leaders.setdefault(leadership.lineage, (leadership.from_at, leadership.member))
    followed: dict[str, Counter[str]] = defaultdict(Counter)
    for view in tables.views:
        if view.from_at < view.to_at and view.from_at < ends and view.to_at > begins:
            followed[view.member][view.lineage] += min(view.to_at, ends) - max(view.from_at, begins)
    followers = defaultdict(list)
    for member, lineages in sorted(followed.items()):
        followers[min(lineages, key=lambda lineage: (-lineages[lineage], lineage))].append(member)
    return [
        {"master": master, "lineage": lineage, "members": followers[lineage]}
        for (_, master), lineage in sorted((leader, lineage) for lineage, leader in leaders.items())
        if lineage in followers
    ]
