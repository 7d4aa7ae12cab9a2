"""`quarterdeck cluster`: look at a running cluster and act on it, over its members' HTTP faces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quarterdeck.cli.commands.cluster import actions, fork, watch
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, say, write_document, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.member_api.beliefs import Suspicions
    from quarterdeck.backend.member_api.partitions import Migration, Migrations, Planned, Table
    from quarterdeck.cli.commands.cluster.session import ClusterSession

MemberOption = Annotated[
    str | None,
    typer.Option("--member", metavar="NAME", help="The member to ask, by label or address; the master by default."),
]

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

group = typer.Typer(help="Look at a running cluster, and act on it.", rich_markup_mode=None)


@group.command()
@with_connection
def status(
    connection: ConnectionTarget,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit with 1 unless all members are reached and agree on one list and table."),
    ] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print whether the members agree: which lists and tables there are, and who holds them."""
    if connection.is_hazelcast:
        from quarterdeck.cli.commands.cluster import hazelcast_answers as answers

        found = answers.status_document(answers.visit(connection), connection.cluster_name)
    else:
        from quarterdeck.cli.commands.cluster.session import run_session

        async def collect(session: ClusterSession) -> dict[str, object]:
            return summary(session)

        found = run_session(connection, collect)
    write_document({"environment": connection.environment, **found} if connection.environment else found, output)
    if check and not found["agreed"]:
        raise typer.Exit(ExitCode.CHECK_FAILED)


@group.command()
@with_connection
def members(connection: ConnectionTarget, output: FormatOption = Format.TABLE) -> None:
    """Print a row for every member: what it believes, or why it is not reached."""
    if connection.is_hazelcast:
        from quarterdeck.cli.commands.cluster import hazelcast_answers as answers

        rows = answers.member_rows(answers.visit(connection), connection.cluster_name)
        write_rows(rows, MEMBER_COLUMNS, output)
        return
    from quarterdeck.cli.commands.cluster.session import run_session

    async def collect(session: ClusterSession) -> list[dict[str, object]]:
        return list(member_rows(session))

    write_rows(run_session(connection, collect), MEMBER_COLUMNS, output)


@group.command()
@with_connection
def lists(connection: ConnectionTarget, output: FormatOption = Format.TABLE) -> None:
    """Print the member list of every member side by side."""
    if connection.is_hazelcast:
        from quarterdeck.cli.commands.cluster import hazelcast_answers as answers

        write_rows(answers.list_rows(answers.visit(connection)), LIST_COLUMNS, output)
        return
    from quarterdeck.cli.commands.cluster.session import run_session

    async def collect(session: ClusterSession) -> list[dict[str, object]]:
        return [{name: row.get(name) for name in LIST_COLUMNS} for row in member_rows(session) if row["reached"]]

    write_rows(run_session(connection, collect), LIST_COLUMNS, output)


@group.command()
@with_connection
def suspicions(connection: ConnectionTarget, output: FormatOption = Format.TABLE) -> None:
    """Print who suspects whom and why, who reports whom to its master, and which members masters hold back."""
    from quarterdeck.backend.member_api.beliefs import Suspicions
    from quarterdeck.cli.commands.cluster.session import run_session

    async def collect(session: ClusterSession) -> list[dict[str, object]]:
        answers = await session.get_all(tuple(session.present), "/suspicions", Suspicions)
        return [row for label, answer in answers.items() for row in suspicion_rows(session, label, answer)]

    write_rows(run_session(connection, collect), SUSPICION_COLUMNS, output)


@group.command()
@with_connection
def table(
    connection: ConnectionTarget,
    member: MemberOption = None,
    first: Annotated[int, typer.Option("--from", min=0, help="The first partition.")] = 0,
    last: Annotated[int | None, typer.Option("--to", min=0, help="The last partition.")] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print one member's partition table: who holds which replica."""
    if connection.is_hazelcast:
        from quarterdeck.cli.commands.cluster import hazelcast_answers as answers

        seen = answers.visit(connection)
        chosen = seen.member(member, "its table")
        say(f"as {chosen} tells it: owners only, for backups and versions are told to nobody")
        write_rows(answers.table_rows(seen, chosen, first, last), TABLE_COLUMNS, output)
        return
    from quarterdeck.backend.member_api.partitions import Table
    from quarterdeck.cli.commands.cluster.session import run_session

    async def collect(session: ClusterSession) -> list[dict[str, object]]:
        asked = session.member(member, "its table")
        rows: list[dict[str, object]] = []
        start: int | None = first
        while start is not None:
            end = "" if last is None else f"&to={last}"
            answer = await session.get(asked, f"/table?from={start}{end}", Table)
            rows += table_rows(session, answer)
            start = answer.next
            if last is not None and start is not None and start > last:
                break
        say(f"as {asked} has it: table version {answer.table_version}, digest {answer.digest or 'none'}")
        return rows

    write_rows(run_session(connection, collect), TABLE_COLUMNS, output)


@group.command()
@with_connection
def owner(
    connection: ConnectionTarget,
    map_name: Annotated[str, typer.Argument(metavar="MAP", help="The map.")],
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key, as text.")],
    key_type: Annotated[
        str,
        typer.Argument(metavar="[TYPE]", help="The type of the key, for members of Hazelcast: string, int or long."),
    ] = "string",
    output: FormatOption = Format.TABLE,
) -> None:
    """Print which member owns a key of a map, as each master has it."""
    from quarterdeck.backend.clusters.key_owner import KeyOwner, key_owners, map_key

    with failing_as(ExitCode.BAD_INPUT, ValueError):
        wanted = map_key(map_name, key, key_type)
    if connection.is_hazelcast:
        from quarterdeck.cli.commands.cluster import hazelcast_answers as answers

        with failing_as(ExitCode.BAD_INPUT, ValueError):
            owners = list(key_owners(answers.visit(connection).picture, wanted, hazelcast=True))
        if not owners:
            say("no master tells a table, so its owner is not known")
        write_rows(({"map": map_name, "key": key, **one._asdict()} for one in owners), OWNER_COLUMNS, output)
        return
    from quarterdeck.backend.member_api.partitions import Table
    from quarterdeck.cli.commands.cluster.session import run_session

    async def collect(session: ClusterSession) -> list[dict[str, object]]:
        found = []
        for label in session.masters:
            count = (await session.get(label, "/table?to=0", Table)).partitions
            if not count:
                continue
            partition = wanted.partition(count, hazelcast=False)
            answer = await session.get(label, f"/table?from={partition}&to={partition}", Table)
            place = next((places[0] for _, _, *places in answer.rows if places), -1)
            owner = None if place < 0 else session.name_of(answer.holders[place].address)
            found.append({"map": map_name, "key": key, **KeyOwner(label, partition, owner)._asdict()})
        return found

    write_rows(run_session(connection, collect), OWNER_COLUMNS, output)


@group.command()
@with_connection
def migrations(connection: ConnectionTarget, member: MemberOption = None, output: FormatOption = Format.TABLE) -> None:
    """Print what the masters migrate: running, planned, and how the latest ended."""
    from quarterdeck.backend.member_api.partitions import Migrations
    from quarterdeck.cli.commands.cluster.session import run_session

    async def collect(session: ClusterSession) -> list[dict[str, object]]:
        asked = (session.member(member, "its migrations"),) if member else session.masters
        answers = await session.get_all(asked, "/migrations", Migrations)
        for label, answer in answers.items():
            counts = f"{answer.running_count} running, {answer.queued} planned, {answer.done} done"
            say(f"{label}: {counts}, {answer.failed} failed, {answer.lost} partitions lost")
        return [row for label, answer in answers.items() for row in migration_rows(session, label, answer)]

    write_rows(run_session(connection, collect), MIGRATION_COLUMNS, output)


@group.command("why-not-merging")
@group.command()
@with_connection
def why(connection: ConnectionTarget, member: MemberOption = None, output: FormatOption = Format.TABLE) -> None:
    """Print for every master why its cluster does not merge with the others."""
    if connection.is_hazelcast:
        from quarterdeck.cli.commands.cluster import hazelcast_answers as answers

        write_rows(answers.why_rows(answers.visit(connection)), WHY_COLUMNS, output)
        return
    import msgspec

    from quarterdeck.backend.member_api.beliefs import WhyNotMerging
    from quarterdeck.cli.commands.cluster.session import run_session

    async def collect(session: ClusterSession) -> list[dict[str, object]]:
        asked = (session.member(member, "its reasons"),) if member else session.masters or tuple(session.present)
        answers = await session.get_all(asked, "/why-not-merging", WhyNotMerging)
        return [
            {"member": label, **with_labels(session, msgspec.to_builtins(answer))} for label, answer in answers.items()
        ]

    write_rows(run_session(connection, collect), WHY_COLUMNS, output)


actions.register(group)
watch.register(group)
fork.register(group)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="cluster")


def summary(session: ClusterSession) -> dict[str, object]:
    """Where the members stand. They agree when all are reached and hold one list and one table."""
    present = session.present
    lists: dict[tuple[str, int, tuple[str, ...]], list[str]] = {}
    tables: dict[tuple[int, str], list[str]] = {}
    for label, facts in present.items():
        lists.setdefault(
            (facts.lineage, facts.list_version, tuple(member.uuid for member in facts.members)), []
        ).append(label)
        tables.setdefault((facts.table_version, facts.table_digest), []).append(label)
    unreached = [label for label in session.discovered_members if label not in present]
    most_first = sorted(lists.values(), key=len, reverse=True)
    return {
        "clusters": list(dict.fromkeys(facts.cluster_name for facts in present.values())),
        "agreed": len(lists) == len(tables) == 1 and not unreached,
        "reached": list(present),
        "unreached": unreached,
        "masters": list(session.masters),
        "lists": [
            {
                "version": present[holders[0]].list_version,
                "master": session.name_of(present[holders[0]].master),
                "members": [session.name_of(member.address) for member in present[holders[0]].members],
                "held_by": holders,
            }
            for holders in most_first
        ],
        "states": dict(Counter(facts.cluster_state for facts in present.values())),
        "tables": [
            {"version": version, "digest": digest, "held_by": holders} for (version, digest), holders in tables.items()
        ],
    }


def member_rows(session: ClusterSession) -> Iterator[dict[str, object]]:
    """Yield a row for each member that was looked for, also for those that do not answer."""
    for label, discovered in session.discovered_members.items():
        row: dict[str, object] = {
            "member": label,
            "address": discovered.address,
            "reached": discovered.facts is not None,
        }
        if (facts := discovered.facts) is not None:
            row |= {
                "uuid": facts.uuid,
                "node_state": facts.node_state,
                "is_master": facts.is_master,
                "master": session.name_of(facts.master),
                "list_version": facts.list_version,
                "list_size": len(facts.members),
                "members": [session.name_of(member.address) for member in facts.members],
                "lineage": facts.lineage,
                "cluster": facts.cluster_name,
                "cluster_state": facts.cluster_state,
                "table_version": facts.table_version,
                "table_digest": facts.table_digest,
                "clock_ahead_ms": round(discovered.clock_ahead_us / 1_000),
                "allow_faults": facts.allow_faults,
                "read_only": facts.read_only,
                "version": facts.version,
            }
        yield row | {"url": discovered.url, "why": discovered.why}


def suspicion_rows(session: ClusterSession, observer: str, answer: Suspicions) -> Iterator[dict[str, object]]:
    """Yield a row for each suspicion, report and member that is held back."""
    now_us = session.present[observer].now_us
    for suspicion in answer.suspicions:
        yield {
            "observer": observer,
            "kind": "suspects",
            "about": session.name_of(suspicion.suspect),
            "since_seconds": round(max(now_us - suspicion.since_us, 0) / 1e6, 1),
            "reason": session.named(suspicion.reason),
        }
    for report in answer.reports:
        reason = f"cannot reach {', '.join(map(session.name_of, report.suspects))}"
        yield {"observer": observer, "kind": "was told by", "about": session.name_of(report.reporter), "reason": reason}
    for joiner in answer.held_back:
        missing = ", ".join(map(session.name_of, joiner.missing)) or "all"
        reason = f"until its links to {missing} are proven"
        yield {"observer": observer, "kind": "holds back", "about": session.name_of(joiner.address), "reason": reason}


def table_rows(session: ClusterSession, answer: Table) -> Iterator[dict[str, object]]:
    """Yield a row for each partition: its version, and its replicas by name."""
    holders = [session.name_of(holder.address) for holder in answer.holders]
    for partition, version, *places in answer.rows:
        replicas = [None if place < 0 else holders[place] for place in places]
        yield {"partition": partition, "version": version, "replicas": replicas}


def migration_rows(session: ClusterSession, leader: str, answer: Migrations) -> Iterator[dict[str, object]]:
    """Yield a row for each migration that `leader` reports: running, then planned, then ended."""
    for running in answer.running:
        yield _migration_row(session, leader, running.phase, running)
    for planned in answer.planned:
        yield _migration_row(session, leader, "planned", planned)
    for ended in answer.ended:
        yield _migration_row(session, leader, "done" if ended.committed else "failed", ended, ended.reason)


def _migration_row(
    session: ClusterSession, leader: str, state: str, one: Planned | Migration, reason: str = ""
) -> dict[str, object]:
    return {
        "leader": leader,
        "state": state,
        "partition": one.partition,
        "type": one.type,
        "destination": session.name_of(one.destination),
        "source": session.name_of(one.source),
        "reason": session.named(reason),
    }


def with_labels(session: ClusterSession, value: Any) -> Any:
    """`value` with names in place of addresses, wherever in it they stand."""
    match value:
        case str():
            return session.named(value)
        case list():
            return [with_labels(session, one) for one in value]
        case dict():
            return {name: with_labels(session, one) for name, one in value.items()}
    return value
