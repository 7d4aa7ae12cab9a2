"""The commands of `quarterdeck cluster` that look: each opens the cluster, and prints what its members believe.

What a member does not report is null in JSON and empty in a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Annotated, Any

import msgspec
import typer
from msgspec.structs import asdict

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.witnessed.events import LinkMeasured, MemberMeasured
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.member_data import MemberData, Stored, answered
from quarterdeck.backend.picture.text.fact import not_told
from quarterdeck.cli.commands.cluster import actions, restarts
from quarterdeck.cli.commands.cluster.actions import MemberOption
from quarterdeck.cli.commands.cluster.observation import ObservedCluster, Source, observe, watch
from quarterdeck.cli.commands.recording import with_source
from quarterdeck.cli.commands.run_options import ExpectMembersOption
from quarterdeck.cli.configuration.connection import ConnectionTarget
from quarterdeck.cli.exits import BadUsage, ExitCode, fail_if, failing_as
from quarterdeck.cli.output import (
    Format,
    FormatOption,
    argument,
    flag,
    option,
    say,
    write_document,
    write_line,
    write_rows,
)

Row = dict[str, object]

MEMBER_COLUMNS = (
    "member", "address", "reached", "node_state", "master", "list_version", "list_size", "cluster_state",
    "table_version", "clock_ahead_ms", "why",
)  # fmt: skip
LIST_COLUMNS = ("member", "list_version", "lineage", "master", "members")
SUSPICION_COLUMNS = ("observer", "kind", "about", "since_seconds", "reason")
OWNER_COLUMNS = ("master", "partition", "owner")
TABLE_COLUMNS = ("partition", "version", "replicas")
MIGRATION_COLUMNS = ("leader", "state", "partition", "type", "destination", "source", "reason")
WHY_COLUMNS = ("member", "sentence")
NOT_REPORTED_BY_CLIENTS = ("merging", "obstacles", "verdicts", "delay", "held_back", "join_list", "remembered")
PLANNED_SHOWN = 100
ENDED_SHOWN = 50


@with_source
def status(
    source: Source,
    check: Annotated[bool, flag("Exit with 1 unless the sentence says healthy.", "--check")] = False,
    expect_members: ExpectMembersOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print whether the cluster is whole and its data safe; then which lists and tables there are, and who holds them."""
    with observe(source, history=True, tables=True, expected_members=expect_members) as seen:
        health, found = seen.judge.health, summary(seen)
    fields = health.as_fields(seen.now_us)
    if output is Format.TABLE:
        write_line(fields.pop("sentence"))
    else:
        found["conclusions"] = [it.as_fields(seen.now_us) for it in seen.judge.conclusions(seen.present)]
    if isinstance(source, ConnectionTarget) and source.environment:
        fields["environment"] = source.environment
    write_document({**fields, **found}, output)
    fail_if(check and health.condition != "healthy")


@with_source
def members(source: Source, output: FormatOption = Format.TABLE) -> None:
    """Print a row for every member: what it believes, or why it is not reached."""
    with observe(source, metrics=output is not Format.TABLE) as seen:
        write_rows(member_rows(seen), MEMBER_COLUMNS, output)


@with_source
def lists(source: Source, output: FormatOption = Format.TABLE) -> None:
    """Print the member list of every member side by side."""
    with observe(source) as seen:
        rows = (
            {
                "member": label,
                "list_version": belief.version,
                "lineage": belief.lineage,
                "master": seen.name_of(belief.master),
                "members": [seen.name_of(member.address) for member in belief.members],
            }
            for label, belief in seen.present.items()
        )
        write_rows(rows, LIST_COLUMNS, output)


@with_source
def suspicions(source: Source, output: FormatOption = Format.TABLE) -> None:
    """Print who suspects whom and why, who reports whom to its master, and which members masters hold back."""
    with observe(source, history=True) as seen:
        rows = chain.from_iterable(suspicion_rows(seen, belief) for belief in seen.present.values())
        write_rows(rows, SUSPICION_COLUMNS, output)


@with_source
def table(
    source: Source,
    member: MemberOption = None,
    first: Annotated[int, option("The first partition.", None, "--from", min=0)] = 0,
    last: Annotated[int | None, option("The last partition.", None, "--to", min=0)] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print one member's partition table: who holds which replica."""
    if last is not None and last < first:
        raise BadUsage(f"--to {last}: is before --from {first}")
    with observe(source, tables=True) as seen:
        asked = seen.member(member, "its table")
        belief = seen.present[asked]
        if belief.shows("backups"):
            version, digest = (belief.table.version, belief.table.digest) if belief.table is not None else (0, "")
            say(f"as {asked} has it: table version {version}, digest {digest or 'none'}")
        else:
            say(f"as {asked} reports it: owners only; it reports no backups and no versions")
        write_rows(table_rows(seen, belief, first, last), TABLE_COLUMNS, output)


@with_source
def owner(
    source: Source,
    map_name: Annotated[str, argument("The map.", "MAP")],
    key: Annotated[str, argument("The key, as text.", "KEY")],
    key_type: Annotated[
        str, argument("The type of the key, for members of Hazelcast: string, int or long.", "[TYPE]")
    ] = "string",
    output: FormatOption = Format.TABLE,
) -> None:
    """Print which member owns a key of a map, as each master has it."""
    from quarterdeck.backend.clusters.key_owner import key_owners, map_key

    with failing_as(ExitCode.BAD_INPUT, ValueError):
        wanted = map_key(map_name, key, key_type)
    with observe(source, tables=True) as seen:
        with failing_as(ExitCode.BAD_INPUT, ValueError):
            owners = list(key_owners(seen.judge.agreement, wanted))
        if not owners:
            say("no master reports a table, so the owner is not known")
        write_rows(({"map": map_name, "key": key, **found._asdict()} for found in owners), OWNER_COLUMNS, output)


@with_source
def migrations(source: Source, member: MemberOption = None, output: FormatOption = Format.TABLE) -> None:
    """Print what the masters migrate: running, planned, and how the latest ended."""
    from quarterdeck.backend.boards.migration_board import migration_board

    with observe(source, history=True) as seen:
        leaders = [seen.member(member, "its migrations")] if member else seen.masters
        for head in migration_board(seen.judge, seen.now_us).heads:
            say(head.text)
        write_rows(migration_rows(seen, leaders, everywhere=member is None), MIGRATION_COLUMNS, output)


@with_source
def why(source: Source, member: MemberOption = None, output: FormatOption = Format.TABLE) -> None:
    """Print for every master why its cluster does not merge with the others."""
    with observe(source, history=True) as seen:
        asked = [seen.member(member, "its reasons")] if member else seen.masters or list(seen.present)
        rows = list(why_rows(seen, asked))
    write_rows(rows, WHY_COLUMNS, output)
    if output is Format.TABLE:
        for remedy in dict.fromkeys(row["remedy"] for row in rows if row["remedy"]):
            say(f"what helps: {remedy}")
        for line in dict.fromkeys(line for row in rows for line in row["remedy_lines"]):
            say(f"  {line}")


def summary(seen: ObservedCluster) -> Row:
    """Return where the members stand, as far as they are reached."""
    present, judge = seen.present, seen.judge
    tables: dict[tuple[int | None, str], list[str]] = {}
    for label, belief in present.items():
        versioned = belief.shows("table-version")
        if belief.table is not None:
            version = belief.table.version if versioned else None
            tables.setdefault((version, belief.table.digest), []).append(label)
        elif versioned:
            tables.setdefault((0, ""), []).append(label)
    states = (_state(belief) for belief in present.values())
    watched_us = judge.watcher.since_us
    return {
        "watched_seconds": None if watched_us is None else round((judge.now_us - watched_us) / 1e6, 1),
        "clusters": list(dict.fromkeys(filter(None, (seen.facts[label].cluster_name for label in present)))),
        "agreed": judge.agreed,
        "reached": list(present),
        "unreached": list(judge.unreached),
        "absent": [absence.as_fields(judge.now_us) for absence in judge.absences],
        "masters": [side.master for side in judge.agreement.sides],
        "lists": [
            {
                "version": held.version,
                "master": seen.name_of(held.master),
                "members": [seen.name_of(member.address) for member in held.members],
                "held_by": list(held.held_by),
            }
            for held in judge.agreement.lists
        ],
        "states": dict(Counter(state for state in states if state is not None)),
        "tables": [
            {"version": version, "digest": digest, "held_by": held_by} for (version, digest), held_by in tables.items()
        ],
    }


def member_rows(seen: ObservedCluster) -> Iterator[Row]:
    """Yield a row for each member that was looked for; those that do not answer come last."""
    for label in (*seen.present, *seen.unreached):
        status, belief = seen.connections[label], seen.present.get(label)
        row: Row = {
            "member": label,
            "address": seen.picture.address_of(label) or label,
            "reached": status.contact == "connected",
        }
        if belief is not None:
            facts, table, versioned = seen.facts[label], belief.table, belief.shows("table-version")
            software = belief.connection.reason if belief.connection is not None else None
            ahead_us = belief.metrics.clock_ahead if belief.metrics is not None else facts.clock_ahead_us
            row |= {
                "uuid": belief.uuid,
                "node_state": facts.node_state,
                "is_master": belief.leads,
                "master": seen.name_of(belief.master),
                "list_version": belief.version,
                "list_size": len(belief.members),
                "members": [seen.name_of(member.address) for member in belief.members],
                "lineage": belief.lineage,
                "cluster": facts.cluster_name or None,
                "cluster_state": _state(belief),
                "table_version": None if not versioned else table.version if table is not None else 0,
                "table_digest": table.digest if table is not None else "" if versioned else None,
                "clock_ahead_ms": None if ahead_us is None else round(ahead_us / 1_000),
                "allow_faults": facts.allow_faults,
                "read_only": facts.read_only,
                "version": facts.version or software,
                "metrics": _metrics(seen, belief),
                "data": _data(seen, belief),
            }
        missing = status.state if status.contact != "connected" else ""
        yield row | {"url": status.url, "why": status.why or missing}


UNITS = {
    "heap_used": "bytes", "heap_max": "bytes", "heartbeat_age": "us", "span": "us", "collecting": "us", "idle": "us",
}  # fmt: skip
"""Of what members measure; everything else is counted, or has its unit in its name."""


def _metrics(seen: ObservedCluster, belief: MemberBelief) -> Row | None:
    """Return what a real member's metrics say, and for how long they are much the same; None where they are not known."""
    if belief.metrics is None:
        return None

    def with_units(measured: MemberMeasured | LinkMeasured) -> Row:
        return {f"{name}_{UNITS[name]}" if name in UNITS else name: value for name, value in asdict(measured).items()}

    links = belief.metrics.strained_links
    return with_units(belief.metrics) | {
        "strained_links": None if links is None else [with_units(link) for link in links],
        "same_for_seconds": round((seen.now_us - belief.metrics_us) / 1_000_000, 1),
    }


def _data(seen: ObservedCluster, belief: MemberBelief) -> Row | None:
    """Return what the member stores and how it answered lately, all and by map; None where that is not known."""
    data = belief.data
    if data is None:
        return None

    def answers(maps: Iterable[Stored]) -> Row:
        found = answered(maps, seen.now_us)
        return {
            "hits_per_second": found.hits, "read_mean_us": found.read_us, "write_mean_us": found.write_us,
            "slowest_read_us": found.slowest_read_us, "slowest_write_us": found.slowest_write_us,
        }  # fmt: skip

    def rates(measured: MemberData | Stored) -> Row:
        if measured.span_us <= 0:
            return {"reads_per_second": None, "writes_per_second": None}
        rate = measured.rate(seen.now_us)
        return {"reads_per_second": rate.reads, "writes_per_second": rate.writes}

    maps = [
        {"map": name, "entries": stored.entries, "bytes": stored.bytes, "backup_entries": stored.backup_entries}
        | rates(stored) | answers([stored])
        for name, stored in data.maps.items()
    ]  # fmt: skip
    return {
        "entries": data.entries,
        "bytes": data.bytes,
        "backup_entries": data.backup_entries,
        "backup_bytes": data.backup_bytes,
        **rates(data),
        **answers(data.maps.values()),
        "maps": maps,
        "same_for_seconds": round((seen.now_us - data.at_us) / 1_000_000, 1),
    }


def suspicion_rows(seen: ObservedCluster, belief: MemberBelief) -> Iterator[Row]:
    """Yield a row for each suspicion, report and member that is held back, or one that says why none is reported."""

    def row(kind: str | None, about: Address | None, reason: str, since_us: int | None = None) -> Row:
        since = {} if since_us is None else {"since_seconds": round(max(seen.now_us - since_us, 0) / 1e6, 1)}
        return {
            "observer": belief.label,
            "kind": kind,
            "about": None if about is None else seen.name_of(about),
            **since,
            "reason": reason,
        }

    if not belief.shows("suspicions"):
        yield row(None, None, not_told("suspicions", belief.witnessed_by))
    for suspect, suspicion in belief.suspicions.items():
        yield row("suspects", suspect, seen.named(suspicion.reason), suspicion.since_us)
    for reporter, suspects in belief.reports.items():
        yield row("was told by", reporter, f"cannot reach {', '.join(map(seen.name_of, suspects))}")
    for joiner, missing in belief.held_back.items():
        links = ", ".join(map(seen.name_of, missing)) or "all"
        yield row("holds back", joiner, f"until its links to {links} are proven")


def table_rows(seen: ObservedCluster, belief: MemberBelief, first: int, last: int | None) -> Iterator[Row]:
    """Yield a row for each partition: its version, and its replicas by name."""
    table = belief.table
    if table is None:
        return
    versioned = belief.shows("backups")
    for partition in range(first, table.partitions if last is None else min(table.partitions, last + 1)):
        replicas = [None if holder is None else seen.name_of(holder.address) for holder in table.row(partition)]
        version = next(iter(table.rows.get(partition, ())), 0) if versioned else None
        row: Row = {"partition": partition, "version": version, "replicas": replicas}
        yield row if versioned else row | {"backups": None}


def migration_rows(seen: ObservedCluster, leaders: list[str], *, everywhere: bool) -> Iterator[Row]:
    """Yield a row for each migration that `leaders` lead, running then planned, then for those that ended.

    With `everywhere` what other members led and ended is included.
    """

    def row(leader: str, state: str | None, migration: Any, reason: str = "") -> Row:
        return {
            "leader": leader,
            "state": state,
            "partition": migration and migration.partition,
            "type": getattr(migration, "type", None),
            "destination": migration and seen.name_of(migration.destination),
            "source": migration and seen.name_of(migration.source),
            "reason": seen.named(reason),
        }

    for leader in leaders:
        belief = seen.present[leader]
        if not belief.shows("migration-queue"):
            yield row(leader, None, None, not_told("migration-queue", belief.witnessed_by))
        for running in islice(belief.leading.running.values(), PLANNED_SHOWN):
            yield row(leader, running.phase, running.begun)
        for planned in islice(belief.leading.queue(), PLANNED_SHOWN):
            yield row(leader, "planned", planned)
    history = seen.picture.history
    ended = [
        *((end.at_us, end.leader, end.committed, end.begun, end.reason) for end in (*history.done, *history.failed)),
        *((end.at_us, end.teller, end.migrated.succeeded, end.migrated, "") for end in history.witnessed),
    ]
    shown = (end for end in sorted(ended, key=lambda end: -end[0]) if everywhere or end[1] in leaders)
    for _, leader, succeeded, migration, reason in islice(shown, ENDED_SHOWN):
        yield row(leader, "done" if succeeded else "failed", migration, reason)


def why_rows(seen: ObservedCluster, asked: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each member of `asked`: why its cluster does not become one with the others, and what would help."""
    from quarterdeck.app.commands.command_text import connect_options, lines_of
    from quarterdeck.backend.member_api.beliefs import why_not_merging_of

    judge = seen.judge
    one = next(it for it in judge.conclusions() if it.question == "one-cluster")
    for label in asked:
        belief = seen.present[label]
        reported: dict[str, Any] = with_labels(seen, msgspec.to_builtins(why_not_merging_of(belief)))
        if belief.witnessed_by:  # a client learns none of this, unless logs show it
            judged = belief.shows("merge-verdicts")
            shown = {"join_list": belief.shows("join-list"), "obstacles": judged, "verdicts": judged}
            reported |= {name: None for name in NOT_REPORTED_BY_CLIENTS if not shown.get(name)}
            sentence = "there is one cluster" if one.answer == "yes" else "nothing is known of another cluster"
            if judge.unreached:
                sentence = f"one side is seen; which cluster {', '.join(judge.unreached)} follow is not known"
            reported["sentence"] = sentence
        found = [pair for pair in judge.pairs if label in (pair.smaller, pair.greater)]
        if found:
            reported["sentence"] = "; ".join(dict.fromkeys(pair.sentence for pair in found))
        remedies = [pair.unblock for pair in found if pair.unblock is not None]
        commands = dict.fromkeys(command for remedy in remedies for command in remedy.commands)
        yield {
            "member": label,
            **reported,
            "remedy": "; ".join(dict.fromkeys(remedy.text for remedy in remedies)) or None,
            "remedy_lines": lines_of(commands, connect_options(seen.cluster)),
            "one_cluster": one.as_fields(seen.now_us),
        }


def with_labels(seen: ObservedCluster, value: Any) -> Any:
    """Return a text, or the texts of a mapping, with names in place of addresses."""
    if isinstance(value, dict):
        return {name: with_labels(seen, element) for name, element in value.items()}
    return seen.named(value) if isinstance(value, str) else value


def _state(belief: MemberBelief) -> str | None:
    return belief.cluster_state if belief.shows("cluster-state") else None


group = typer.Typer(help="Look at a running cluster, and act on it.", rich_markup_mode=None)
for command in (
    *(status, members, lists, suspicions, table, owner, migrations, why),
    *(watch, actions.fork, actions.state, actions.expect, actions.fault, actions.do, actions.kill),
):
    group.command()(command)
group.command("why-not-merging")(why)
group.command("may-stop")(restarts.may_stop)
group.command("rolling-restart")(restarts.rolling_restart)
group.add_typer(actions.join_lists, name="join-list")
