"""The commands of `quarterdeck cluster` that change something: join lists, cluster state, faults.

What takes the name of the cluster at the console takes it here too: typed at a terminal, else as `--confirm NAME`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from quarterdeck.backend.core.commands.catalogue import CATALOGUE, description_of
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.exits import CommandFailed, ExitCode
from quarterdeck.cli.output import Format, FormatOption, say, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.core.commands.commands import Command
    from quarterdeck.cli.commands.cluster.session import ClusterSession

MemberOption = Annotated[
    str | None,
    typer.Option(
        "--member", metavar="NAME", help="The member to send it to, by label or address; the master by default."
    ),
]

JOIN_LIST_COLUMNS = ("member", "join_list")
STATE_COLUMNS = ("member", "cluster_state", "node_state")
FAULT_WORDS = tuple(dict.fromkeys(one.word for one in CATALOGUE if one.role == "fault" and one.http is not None))


class ActingSession(Protocol):
    """A cluster that is reached, whatever kind it is."""

    @property
    def discovered_members(self) -> Mapping[str, object]:
        """By label."""
        ...

    def member(self, wanted: str | None, what: str) -> str:
        """Return the member to ask for `what`."""
        ...


join_lists = typer.Typer(help="The join lists of the members.", rich_markup_mode=None)


@join_lists.command("get")
@with_connection
def get_join_list(connection: ConnectionTarget, output: FormatOption = Format.TABLE) -> None:
    """Print where every member looks for its cluster."""
    if connection.is_hazelcast:
        from quarterdeck.cli.commands.cluster import hazelcast_answers as answers

        write_rows(answers.join_list_rows(answers.visit(connection)), JOIN_LIST_COLUMNS, output)
        return
    from quarterdeck.cli.commands.cluster.session import run_session

    async def collect(session: ClusterSession) -> list[dict[str, object]]:
        return [
            {
                "member": label,
                "join_list": [session.name_of(address) for address in facts.join_list],
                "addresses": facts.join_list,
            }
            for label, facts in session.present.items()
        ]

    write_rows(run_session(connection, collect), JOIN_LIST_COLUMNS, output)


@join_lists.command("set")
@with_connection
def set_join_list(
    connection: ConnectionTarget,
    entries: Annotated[list[str], typer.Argument(metavar="MEMBER|HOST:PORT...", help="The whole new list.")],
    member: MemberOption = None,
) -> None:
    """Give a cluster a new join list; it reaches every member of it."""
    from quarterdeck.backend.core.commands.commands import SetJoinList

    words = tuple(word for entry in entries for word in entry.split(",") if word)
    _do(connection, lambda session: SetJoinList(session.member(member, "the join list"), words))


@with_connection
def state(
    connection: ConnectionTarget,
    new: Annotated[str | None, typer.Argument(metavar="[NEW]", help="ACTIVE, FROZEN, PASSIVE or NO_MIGRATION.")] = None,
    member: MemberOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print the state of the cluster as every member holds it, or ask for a NEW one."""
    from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
    from quarterdeck.backend.core.commands.commands import ChangeState
    from quarterdeck.cli.commands.cluster.session import run_session

    if new is not None:
        wanted = next((one for one in CLUSTER_STATES if one == new.upper()), None)
        if wanted is None:
            raise CommandFailed(
                ExitCode.BAD_INPUT, f"NEW: there is no state {new!r}; write one of {', '.join(CLUSTER_STATES)}"
            )
        _do(connection, lambda session: ChangeState(session.member(member, "the state"), wanted))
        return
    if connection.is_hazelcast:
        from quarterdeck.cli.commands.cluster import hazelcast_answers as answers

        write_rows(answers.state_rows(answers.visit(connection)), STATE_COLUMNS, output)
        return

    async def collect(session: ClusterSession) -> list[dict[str, object]]:
        return [
            {"member": label, "cluster_state": facts.cluster_state, "node_state": facts.node_state}
            for label, facts in session.present.items()
        ]

    write_rows(run_session(connection, collect), STATE_COLUMNS, output)


@with_connection
def fault(
    connection: ConnectionTarget,
    words: Annotated[
        list[str], typer.Argument(metavar="WHAT...", help=f"As at the console's prompt: {', '.join(FAULT_WORDS)} …")
    ],
) -> None:
    """Inject faults and heal them, in the words of the console's prompt: cut a b one-way; partition 'a,b | c'; heal."""
    if words[0] not in FAULT_WORDS:
        from quarterdeck.backend.documents.yaml_document import did_you_mean

        hint = did_you_mean(words[0], FAULT_WORDS)
        raise CommandFailed(ExitCode.BAD_INPUT, f"there is no fault {words[0]!r}; {hint}")
    _do(connection, lambda session: _command_of(session, " ".join(words)))


@with_connection
def do(
    connection: ConnectionTarget,
    words: Annotated[list[str], typer.Argument(metavar="WHAT...", help="A line of the console's prompt.")],
    confirm: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The cluster's name, to confirm a command that stops all of it; asked for by default."
        ),
    ] = "",
) -> None:
    """Run a command of the console's prompt: stop athens; search athens; arrange athens."""
    _do(connection, lambda session: _command_of(session, " ".join(words)), confirm)


@with_connection
def kill(connection: ConnectionTarget, name: Annotated[str, typer.Argument(help="The member's label.")]) -> None:
    """End a member's process without a goodbye."""
    _do(connection, lambda session: _command_of(session, f"kill {name}"))


def register(group: typer.Typer) -> None:
    group.add_typer(join_lists, name="join-list")
    group.command()(state)
    group.command()(fault)
    group.command()(do)
    group.command()(kill)


def _command_of(session: ActingSession, line: str) -> Command:
    """Return the command that `line` of the prompt stands for.

    Raises:
        CommandFailed: The line is none.
    """
    from quarterdeck.app.actions.action import EVERYTHING
    from quarterdeck.app.commands.grammar import BadLine, ConsoleRequest, parse_line

    try:
        parsed = parse_line(line, tuple(session.discovered_members), allowed=EVERYTHING)
    except BadLine as problem:
        raise CommandFailed(ExitCode.BAD_INPUT, str(problem)) from problem
    if isinstance(parsed, ConsoleRequest):
        raise CommandFailed(ExitCode.BAD_INPUT, f"{line.split()[0]} is for the console alone")
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
        raise CommandFailed(ExitCode.BAD_INPUT, f"{asked} Say so with --confirm {name}, the name of the cluster")
    if confirmed.strip() != name:
        raise CommandFailed(ExitCode.BAD_INPUT, f"nothing was done: the cluster is {name}, not {confirmed.strip()}")


def _do(connection: ConnectionTarget, command_for: Callable[[ActingSession], Command], confirmed: str = "") -> None:
    if connection.is_hazelcast:
        from quarterdeck.cli.commands.cluster.hazelcast_answers import act as act_on_hazelcast

        act_on_hazelcast(connection, command_for, lambda command, name: require_name(command, name, confirmed))
        say("done")
        return
    from quarterdeck.cli.commands.cluster.session import run_session

    async def act(session: ClusterSession) -> None:
        command = command_for(session)
        require_name(command, connection.label or next(iter(session.present.values())).cluster_name, confirmed)
        await session.do(command)

    run_session(connection.require_writable(), act)
    say("done")
