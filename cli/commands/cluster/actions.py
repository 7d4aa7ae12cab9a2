"""The commands of `quarterdeck cluster` that change something (join lists, cluster state, faults), and the one that copies it.

What takes the name of the cluster at the console takes it here too: typed at a terminal, else as `--confirm NAME`.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from quarterdeck.backend.clusters.cluster import SnapshotSource
from quarterdeck.backend.commands.catalogue import CATALOGUE, description_of
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.commands import ChangeState, Command, CommandRefused, ExpectMembers, SetJoinList
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.cli.commands.cluster.observation import (
    MERGE_SECONDS,
    ObservedCluster,
    answer_of,
    observe,
    settled_records,
)
from quarterdeck.cli.commands.run_options import new_run, recording
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.opening import open_cluster, wait_until_started
from quarterdeck.cli.exits import BadUsage, CommandFailed, ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, argument, option, say, write_document, write_rows

MemberOption = Annotated[
    str | None, option("The member to ask, by label or address; the master by default.", "NAME", "--member")
]

JOIN_LIST_COLUMNS = ("member", "join_list")
STATE_COLUMNS = ("member", "cluster_state", "node_state")
FAULT_WORDS = tuple(dict.fromkeys(row.word for row in CATALOGUE if row.role == "fault" and row.http is not None))


join_lists = typer.Typer(help="The join lists of the members.", rich_markup_mode=None)


@join_lists.command("get")
@with_connection
def get_join_list(connection: ConnectionTarget, output: FormatOption = Format.TABLE) -> None:
    """Print where every member looks for its cluster."""
    with observe(connection) as seen:
        rows = (
            {
                "member": label,
                "join_list": list(map(seen.name_of, belief.join_list)) if belief.shows("join-list") else None,
                "addresses": belief.join_list if belief.shows("join-list") else None,
            }
            for label, belief in seen.present.items()
        )
        write_rows(rows, JOIN_LIST_COLUMNS, output)


@join_lists.command("set")
@with_connection
def set_join_list(
    connection: ConnectionTarget,
    entries: Annotated[list[str], argument("The whole new list.", "MEMBER|HOST:PORT...")],
    member: MemberOption = None,
) -> None:
    """Give a cluster a new join list; it reaches every member of it."""
    words = tuple(word for entry in entries for word in entry.split(",") if word)
    _do(connection, lambda seen: SetJoinList(seen.member(member, "the join list"), words))


@with_connection
def state(
    connection: ConnectionTarget,
    new: Annotated[str | None, argument("ACTIVE, FROZEN, PASSIVE or NO_MIGRATION.", "[NEW]")] = None,
    member: MemberOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print the state of the cluster as every member holds it, or ask for a NEW one."""
    if new is not None:
        wanted = next((state for state in CLUSTER_STATES if state == new.upper()), None)
        if wanted is None:
            raise BadUsage(f"NEW: there is no state {new!r}; write one of {', '.join(CLUSTER_STATES)}")
        _do(connection, lambda seen: ChangeState(seen.member(member, "the state"), wanted))
        return
    with observe(connection) as seen:
        rows = (
            {
                "member": label,
                "cluster_state": belief.cluster_state if belief.shows("cluster-state") else None,
                "node_state": seen.facts[label].node_state,
            }
            for label, belief in seen.present.items()
        )
        write_rows(rows, STATE_COLUMNS, output)


@with_connection
def expect(
    connection: ConnectionTarget,
    size: Annotated[int, argument("How many members.", "N", min=1)],
    member: MemberOption = None,
) -> None:
    """Accept N members as the size of the cluster: those that left without a goodbye are not missed any more.

    Members of ours keep it in their journals. Those of Hazelcast keep no such number: name a --size-file.
    """
    if not connection.require_named().has_http_api and connection.size_file is None:
        raise BadUsage("members of Hazelcast keep no size; give --size-file FILE, here and to the commands that ask")
    _do(connection, lambda seen: ExpectMembers(seen.member(member, "the size"), size))


@with_connection
def fault(
    connection: ConnectionTarget,
    words: Annotated[list[str], argument(f"As at the console's prompt: {', '.join(FAULT_WORDS)} …", "WHAT...")],
) -> None:
    """Inject faults and heal them, in the words of the console's prompt: cut a b one-way; partition 'a,b | c'; heal."""
    if words[0] not in FAULT_WORDS:
        from quarterdeck.backend.documents.validation import did_you_mean

        hint = did_you_mean(words[0], FAULT_WORDS)
        raise BadUsage(f"there is no fault {words[0]!r}; {hint}")
    _do(connection, lambda seen: _command_of(seen, " ".join(words)))


@with_connection
def do(
    connection: ConnectionTarget,
    words: Annotated[list[str], argument("A line of the console's prompt.", "WHAT...")],
    confirm: Annotated[
        str, option("The cluster's name, to confirm a command that stops all of it; asked for by default.", "NAME")
    ] = "",
) -> None:
    """Run a command of the console's prompt: stop athens; search athens; arrange athens."""
    _do(connection, lambda seen: _command_of(seen, " ".join(words)), confirm)


@with_connection
def kill(connection: ConnectionTarget, name: Annotated[str, argument("The member's label.")]) -> None:
    """End a member's process without a goodbye."""
    _do(connection, lambda seen: _command_of(seen, f"kill {name}"))


def _command_of(seen: ObservedCluster, line: str) -> Command:
    """Return the command that `line` of the prompt stands for. Raises `CommandFailed`."""
    from quarterdeck.app.actions.action import EVERYTHING
    from quarterdeck.app.commands.grammar import BadLine, ConsoleRequest, parse_line

    try:
        parsed = parse_line(line, tuple(seen.connections), allowed=EVERYTHING)
    except BadLine as problem:
        raise BadUsage(str(problem)) from problem
    if isinstance(parsed, ConsoleRequest):
        raise BadUsage(f"{line.split()[0]} is for the console alone")
    return parsed


def require_name(command: Command, name: str, confirmed: str) -> None:
    """Return when `command` needs no name of the cluster, or it was given. Raises `CommandFailed`."""
    if not description_of(command).takes_cluster_name:
        return
    from quarterdeck.app.commands.command_text import question

    asked, _ = question([command])
    if not confirmed and sys.stdin.isatty():
        confirmed = typer.prompt(f"{asked}\nType the name of the cluster, {name}, to go on", err=True)
    if not confirmed:
        raise BadUsage(f"{asked} Say so with --confirm {name}, the name of the cluster")
    if confirmed.strip() != name:
        raise BadUsage(f"nothing was done: the cluster is {name}, not {confirmed.strip()}")


def _do(connection: ConnectionTarget, command_for: Callable[[ObservedCluster], Command], confirmed: str = "") -> None:
    with observe(connection.require_writable(), write=True) as seen:
        command = command_for(seen)
        require_name(command, connection.label or next(iter(seen.facts.values())).cluster_name, confirmed)
        answer_of(seen.cluster.execute(command))
    say("done")


LONGEST_HISTORY_SECONDS = 30.0
SNAPSHOT_SECONDS = 30.0


@with_connection
def fork(
    connection: ConnectionTarget,
    out: Annotated[Path, option("A new folder for the copy.", "DIR")],
    output: FormatOption = Format.JSON,
) -> None:
    """Copy a running cluster: the state of every member at this moment, and its past.

    Go on with the copy in simulated time, with `console --simulate DIR`; look at its past with `console --replay DIR`. Members
    give their state only to users who may change them. Members that do not answer are listed, and are silent in the copy.
    """
    from quarterdeck.backend.clusters.simulated.copied_cluster import write_copy

    if out.exists():
        raise BadUsage(f"--out {out}: exists already; name a new folder")
    cluster = open_cluster(connection.require_named().require_writable(), write=True)
    try:
        if not isinstance(cluster, SnapshotSource):
            raise BadUsage(f"members of {cluster.name} cannot be asked this: they do not give their state")
        wait_until_started(cluster)
        records = settled_records(cluster, longest_seconds=LONGEST_HISTORY_SECONDS)
        try:
            snapshot = cluster.snapshot().result(SNAPSHOT_SECONDS)
        except FutureTimeout as silence:
            raise CommandFailed(ExitCode.UNREACHABLE, "the members did not give their state in time") from silence
        except CommandRefused as refusal:
            raise CommandFailed(ExitCode.REFUSED, str(refusal)) from refusal
        time.sleep(MERGE_SECONDS)
        records += cluster.drain()
    finally:
        cluster.close()
    reported = (record for record in records if not isinstance(record.event, ConnectionChanged))  # that one is ours
    records = [record for record in reported if record.at <= snapshot.at_us]
    run = write_past(out, f"{cluster.name}-copy", records)
    with failing_as(ExitCode.BAD_INPUT, OSError, about="--out"):
        write_copy(out, snapshot)
    say(f"go on with it: quarterdeck console --simulate {shlex.quote(str(out))}")
    document = {
        "run": run,
        "at_seconds": snapshot.at_us / 1e6,
        "members": [member.configuration.label for member in snapshot.members],
        "not_told": {silent.configuration.label: silent.why for silent in snapshot.untold},
        "in_flight": len(snapshot.in_flight),
        "records": len(records),
    }
    write_document(document, output)


def write_past(out: Path, name: str, records: list[Record]) -> str:
    """Put `records` into a journal in the folder; the name of its run."""
    run = new_run(name)
    with recording(out, run) as writer:
        assert writer is not None
        for record in records:
            writer.append(msgspec.structs.replace(record, run=run))
    return run
