"""`quarterdeck map`: use the distributed map of a running cluster, or of one that lives as long as the command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.commands.console import PresetName, read_settings
from quarterdeck.cli.commands.map.script import DEFAULT_VALUE_BYTES, Line, Load, read_script
from quarterdeck.cli.commands.map.session import MapSession, answer_as_data, map_session
from quarterdeck.cli.commands.run_options import ProcessesOption
from quarterdeck.cli.configuration.connection import Connection, with_connection
from quarterdeck.cli.exits import CommandFailed, ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, say, write_document, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.core.data.calls.operations import Operation

MembersOption = Annotated[int, typer.Option(min=1, max=100, help="How many members to start.")]


def _in_utf8(word: str) -> str:
    """`word` as it was given. Raises `typer.BadParameter` when the shell gave bytes that are no UTF-8."""
    try:
        word.encode()
    except UnicodeEncodeError:
        raise typer.BadParameter(f"{word!r} is not valid UTF-8") from None
    return word


KeyArgument = Annotated[str, typer.Argument(callback=_in_utf8)]
ValueArgument = Annotated[str, typer.Argument(callback=_in_utf8)]
MapOption = Annotated[str, typer.Option("--map", metavar="NAME", help="The name of the map.", callback=_in_utf8)]
KeysOption = Annotated[int, typer.Option(min=0, help="Put so many entries first: key-0, key-1 and so on.")]
ValueBytesOption = Annotated[int, typer.Option(min=0, help="How long the values of those entries are.")]
PropertyOption = Annotated[
    list[str] | None, typer.Option("--property", metavar="NAME=VALUE", help="Set a hazelcast.* property.")
]
JournalOption = Annotated[
    Path | None,
    typer.Option("--journal", metavar="DIR", help="Record the cluster and each operation into this folder."),
]

DEFAULT_MEMBERS = 3
DEFAULT_MAP = "default"
DEFAULT_ENTRIES = 100_000

ROW_COLUMNS = ("line", "do", "map", "key", "value", "size", "problem")

group = typer.Typer(
    help="Use a distributed map: of a running cluster, or of one that is started for the command and ends with it.",
    rich_markup_mode=None,
)


@group.command()
@with_connection
def put(
    connection: Connection,
    key: KeyArgument,
    value: ValueArgument,
    name: MapOption = DEFAULT_MAP,
    keys: KeysOption = 0,
    members: MembersOption = DEFAULT_MEMBERS,
    processes: ProcessesOption = False,
    properties: PropertyOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Store VALUE under KEY; print what was there before."""
    from quarterdeck.backend.core.data.calls.operations import Put

    once(Put(name, key, value.encode()), Load(name, keys), members, processes, properties, connection, output)


@group.command()
@with_connection
def get(
    connection: Connection,
    key: KeyArgument,
    name: MapOption = DEFAULT_MAP,
    keys: KeysOption = 0,
    members: MembersOption = DEFAULT_MEMBERS,
    processes: ProcessesOption = False,
    properties: PropertyOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Print the value under KEY."""
    from quarterdeck.backend.core.data.calls.operations import Get

    once(Get(name, key), Load(name, keys), members, processes, properties, connection, output)


@group.command()
@with_connection
def remove(
    connection: Connection,
    key: KeyArgument,
    name: MapOption = DEFAULT_MAP,
    keys: KeysOption = 0,
    members: MembersOption = DEFAULT_MEMBERS,
    processes: ProcessesOption = False,
    properties: PropertyOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Take KEY out; print the value that was there."""
    from quarterdeck.backend.core.data.calls.operations import Remove

    once(Remove(name, key), Load(name, keys), members, processes, properties, connection, output)


@group.command()
@with_connection
def size(
    connection: Connection,
    name: MapOption = DEFAULT_MAP,
    keys: KeysOption = 0,
    members: MembersOption = DEFAULT_MEMBERS,
    processes: ProcessesOption = False,
    properties: PropertyOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Print how many entries the map has."""
    from quarterdeck.backend.core.data.calls.operations import Size

    once(Size(name), Load(name, keys), members, processes, properties, connection, output)


@group.command("keys")
@with_connection
def print_keys(
    connection: Connection,
    name: MapOption = DEFAULT_MAP,
    keys: KeysOption = 0,
    members: MembersOption = DEFAULT_MEMBERS,
    processes: ProcessesOption = False,
    properties: PropertyOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Print all keys of the map, sorted."""
    from quarterdeck.backend.core.data.calls.operations import Keys

    once(Keys(name), Load(name, keys), members, processes, properties, connection, output)


@group.command()
@with_connection
def load(
    connection: Connection,
    name: MapOption = DEFAULT_MAP,
    keys: KeysOption = DEFAULT_ENTRIES,
    value_bytes: ValueBytesOption = DEFAULT_VALUE_BYTES,
    members: MembersOption = DEFAULT_MEMBERS,
    processes: ProcessesOption = False,
    properties: PropertyOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Put many entries, 500 at a time, count them, and print how quick that was."""
    from quarterdeck.backend.core.data.calls.operations import Size

    settings = read_settings(properties or [], PresetName.TRAINING)
    with map_session(members, settings, processes=processes, connection=connection) as session:
        row = session.load(name, keys, value_bytes)
        counted = session.ask(Size(name))
    problem = row["problem"] or counted.problem
    write_document({"members": len(session.running), **row, "size": counted.size, "problem": problem}, output)
    if problem:
        raise typer.Exit(ExitCode.CHECK_FAILED)


@group.command("run")
@with_connection
def run_script(
    connection: Connection,
    file: Annotated[Path, typer.Argument(metavar="FILE|-", help="The lines to do; - reads them from stdin.")],
    members: MembersOption = DEFAULT_MEMBERS,
    processes: ProcessesOption = False,
    properties: PropertyOption = None,
    journal: JournalOption = None,
    output: FormatOption = Format.JSONL,
) -> None:
    """Do line after line on one cluster and print a result for each. Exits with 1 when an operation had a problem.

    A line is one of: put MAP KEY VALUE, get MAP KEY, remove MAP KEY, size MAP, keys MAP, load MAP COUNT [VALUE_BYTES],
    start MEMBER, stop MEMBER, kill MEMBER. Members are called n1, n2 and so on. Nothing is done before all lines are read.
    """
    with failing_as(ExitCode.BAD_INPUT, OSError, UnicodeDecodeError, about=str(file)):
        text = (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode()
    lines = read_script(text, "stdin" if str(file) == "-" else str(file))
    settings = read_settings(properties or [], PresetName.TRAINING)
    problems: list[str] = []
    with map_session(members, settings, processes=processes, journal=journal, connection=connection) as session:
        write_rows(results(session, lines, problems), ROW_COLUMNS, output)
    for problem in problems:
        say(problem)
    if problems:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="map")


def once(
    operation: Operation,
    before: Load,
    members: int,
    processes: bool,
    properties: list[str] | None,
    connection: Connection,
    output: Format,
) -> None:
    """One operation on the cluster that `connection` names, or else on one of its own, after `before`.

    Exits with 1 when it had a problem.
    """
    settings = read_settings(properties or [], PresetName.TRAINING)
    with map_session(members, settings, processes=processes, connection=connection) as session:
        loaded = session.load(before.map, before.entries, before.value_bytes)
        if loaded["problem"]:
            raise CommandFailed(ExitCode.CHECK_FAILED, f"--keys: {loaded['problem']}")
        answer = session.ask(operation)
    write_document(answer_as_data(operation, answer), output)
    if answer.problem:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def results(session: MapSession, lines: list[Line], problems: list[str]) -> Iterator[dict[str, object]]:
    """Do line after line; what is not done is also told in `problems`. Raises `CommandFailed` for a line that is refused."""
    from quarterdeck.backend.core.commands import CommandRefused, KillMember, StartMember, StopMember

    for line in lines:
        try:
            match line.wanted:
                case StartMember(member) | StopMember(member) | KillMember(member):
                    session.do(line.wanted)
                    row: dict[str, object] = {"do": line.wanted.__struct_config__.tag, "member": member}
                case Load(name, entries, value_bytes):
                    row = session.load(name, entries, value_bytes)
                case operation:
                    row = answer_as_data(operation, session.ask(operation))
        except CommandRefused as refusal:
            raise CommandFailed(ExitCode.REFUSED, f"line {line.number}: {refusal}") from refusal
        if row.get("problem"):
            problems.append(f"line {line.number}: {row['problem']}")
        yield {"line": line.number, **row}
