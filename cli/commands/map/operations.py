"""`quarterdeck map`: use the distributed map of a running cluster, or of one that runs as long as the command.

`map export` and `map import` bring the entries of maps to a folder, and back into a cluster.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from quarterdeck.backend.commands.catalogue import CommandDescription
from quarterdeck.backend.core.commands import CallMap, CommandRefused
from quarterdeck.backend.core.operations import Size
from quarterdeck.cli.commands.map.session import (
    DEFAULT_VALUE_BYTES,
    DESCRIPTIONS,
    MAP_WORDS,
    MapSession,
    ScriptLine,
    ScriptLoad,
    answer_as_data,
    map_session,
    read_script,
)
from quarterdeck.cli.commands.run_options import ProcessesOption, PropertyOption
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.opening import asked
from quarterdeck.cli.exits import BadUsage, CommandFailed, ExitCode, fail_if, failing_as
from quarterdeck.cli.output import Format, FormatOption, argument, option, say, write_document, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.remote.map_backup import ExportFolder


MembersOption = Annotated[int, option("How many members to start.", min=1, max=100)]


def _in_utf8(word: str) -> str:
    """`word` as it was given. Raises `typer.BadParameter` when the shell gave bytes that are no UTF-8."""
    try:
        word.encode()
    except UnicodeEncodeError:
        raise typer.BadParameter(f"{word!r} is not valid UTF-8") from None
    return word


WordArgument = Annotated[str, typer.Argument(callback=_in_utf8)]
MapOption = Annotated[str, option("The name of the map.", "NAME", "--map", callback=_in_utf8)]
KeysOption = Annotated[int, option("Put this many entries first: key-0, key-1 and so on.", min=0)]
ValueBytesOption = Annotated[int, option("How long the values of those entries are.", min=0)]
JournalOption = Annotated[
    Path | None, option("Record the cluster and each operation into this folder.", "DIR", "--journal")
]

DEFAULT_MEMBERS = 3
DEFAULT_MAP = "default"
DEFAULT_ENTRIES = 100_000

ROW_COLUMNS = ("line", "do", "map", "key", "value", "size", "problem")

group = typer.Typer(
    help="Use a distributed map: of a running cluster, or of one that is started for the command and ends with it.",
    rich_markup_mode=None,
)


HELP = {
    "put": "Store VALUE under KEY; print what was there before.",
    "get": "Print the value under KEY.",
    "remove": "Remove KEY; print the value that was there.",
    "size": "Print how many entries the map has.",
    "keys": "Print all keys of the map, sorted.",
}


def _add_operation(description: CommandDescription) -> None:
    """Add the command that asks for one operation: its arguments are those of the catalogue, but the map is an option."""

    def ask(
        connection: ConnectionTarget,
        name: MapOption = DEFAULT_MAP,
        keys: KeysOption = 0,
        members: MembersOption = DEFAULT_MEMBERS,
        processes: ProcessesOption = False,
        properties: PropertyOption = None,
        output: FormatOption = Format.JSON,
        **words: str,
    ) -> None:
        values = {
            argument.name: words[argument.name].encode() if argument.kind == "bytes" else words[argument.name]
            for argument in arguments
        }
        call = description.make({"member": "", "map": name, **values})
        assert isinstance(call, CallMap)
        with map_session(members, properties, processes=processes, connection=connection) as session:
            if problem := session.load(name, keys)["problem"]:
                raise CommandFailed(ExitCode.CHECK_FAILED, f"--keys: {problem}")
            answer = session.ask(call.operation)
        write_document(answer_as_data(call.operation, answer), output)
        fail_if(answer.problem)

    arguments = [detail for detail in description.details if detail.name != "map"]
    *options, _ = inspect.signature(ask, eval_str=True).parameters.values()
    words = [
        inspect.Parameter(argument.name, inspect.Parameter.KEYWORD_ONLY, annotation=WordArgument)
        for argument in arguments
    ]
    given = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    ask.__signature__ = inspect.Signature(words + given)  # type: ignore[attr-defined]
    group.command(description.word, help=HELP[description.word])(with_connection(ask))


for _word in MAP_WORDS:
    _add_operation(DESCRIPTIONS[_word])


@group.command()
@with_connection
def load(
    connection: ConnectionTarget,
    name: MapOption = DEFAULT_MAP,
    keys: KeysOption = DEFAULT_ENTRIES,
    value_bytes: ValueBytesOption = DEFAULT_VALUE_BYTES,
    members: MembersOption = DEFAULT_MEMBERS,
    processes: ProcessesOption = False,
    properties: PropertyOption = None,
    rate: Annotated[
        float | None, option("Instead, ask for so many operations a second, until --for or Ctrl-C.")
    ] = None,
    skew: Annotated[float, option("With --rate: ask for the first keys more often; 9 is a lot.")] = 0,
    reads: Annotated[float, option("With --rate: the share of reads; the rest are puts.")] = 0.5,
    seconds: Annotated[float | None, option("With --rate: stop after this time.", "SECONDS", "--for", min=0)] = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Put many entries, 500 at a time, count them, and print how fast that was; or make traffic at an even rate."""
    if rate is None and (skew, reads, seconds) != (0, 0.5, None):
        raise BadUsage("--skew, --reads and --for go with --rate")
    said = {"rate": rate, "keys": keys, "bytes": value_bytes, "skew": skew, "reads": reads, "map": name}
    said |= {} if seconds is None else {"for": f"{seconds:f}s"}
    with map_session(members, properties, processes=processes, connection=connection) as session:
        if rate is not None:
            with failing_as(ExitCode.BAD_INPUT, ValueError):
                row = session.make_traffic(said)
            write_document({"members": len(session.running), **row}, output)
            fail_if(row["problem"])
            return
        row = session.load(name, keys, value_bytes)
        counted = session.ask(Size(name))
    problem = row["problem"] or counted.problem
    write_document({"members": len(session.running), **row, "size": counted.size, "problem": problem}, output)
    fail_if(problem)


@group.command("run")
@with_connection
def run_script(
    connection: ConnectionTarget,
    file: Annotated[Path, argument("The lines to do; - reads them from stdin.", "FILE|-")],
    members: MembersOption = DEFAULT_MEMBERS,
    processes: ProcessesOption = False,
    properties: PropertyOption = None,
    journal: JournalOption = None,
    output: FormatOption = Format.JSONL,
) -> None:
    """Run lines of commands on one cluster and print a result for each. Exits with 1 when an operation had a problem.

    A line is one of: put MAP KEY VALUE, get MAP KEY, remove MAP KEY, size MAP, keys MAP, load MAP COUNT [VALUE_BYTES],
    start MEMBER, stop MEMBER, kill MEMBER. Members are called n1, n2 and so on. Nothing is done before all lines are read.
    """
    with failing_as(ExitCode.BAD_INPUT, OSError, UnicodeDecodeError, about=str(file)):
        text = (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode()
    lines = read_script(text, "stdin" if str(file) == "-" else str(file))
    problems: list[str] = []
    with map_session(members, properties, processes=processes, journal=journal, connection=connection) as session:
        write_rows(results(session, lines, problems), ROW_COLUMNS, output)
    for problem in problems:
        say(problem)
    fail_if(problems)


def results(session: MapSession, lines: list[ScriptLine], problems: list[str]) -> Iterator[dict[str, object]]:
    """Do line after line; what is not done stands in `problems` as well. Raises `CommandFailed` for a line that is refused."""
    for line in lines:
        try:
            match line.wanted:
                case ScriptLoad(name, entries, value_bytes):
                    row = session.load(name, entries, value_bytes)
                case CallMap(_, operation):
                    row = answer_as_data(operation, session.ask(operation))
                case command:
                    session.do(command)
                    row = dict(msgspec.to_builtins(command))
        except CommandRefused as refusal:
            raise CommandFailed(ExitCode.REFUSED, f"line {line.number}: {refusal}") from refusal
        if row.get("problem"):
            problems.append(f"line {line.number}: {row['problem']}")
        yield {"line": line.number, **row}


FolderArgument = Annotated[Path, argument("The folder of the export.", "DIR")]
MapChoice = Annotated[str, option("Only this map; all by default.", "NAME", "--map")]


@group.command("export")
@with_connection
def export_command(
    connection: ConnectionTarget, folder: FolderArgument, name: MapChoice = "", output: FormatOption = Format.JSON
) -> None:
    """Write all maps, or one, into a folder: JSON lines for each partition, as it is at one moment, with checksums.

    Members go on serving. Run it again after an interruption: it goes on with the partitions that are missing.
    """
    from quarterdeck.backend.clusters.remote.map_backup import export_maps

    target = connection.require_http_api()
    with failing_as(ExitCode.BAD_INPUT, OSError):
        exported = asked(target, lambda client: export_maps(client, list(target.urls), folder, name))
    write_document(_counted(exported), output)


@group.command("import")
@with_connection
def import_command(
    connection: ConnectionTarget, folder: FolderArgument, name: MapChoice = "", output: FormatOption = Format.JSON
) -> None:
    """Store all entries of an export, or those of one map, in place of what is there under their keys.

    Nothing is stored before the whole export is checked. Run it again after an interruption: it goes on with the next partition.
    """
    from quarterdeck.backend.clusters.remote.map_backup import ExportFolder, import_maps

    target = connection.require_http_api().require_writable()
    with failing_as(ExitCode.BAD_INPUT, OSError):
        exported = ExportFolder.opened(folder)
        stored = asked(target, lambda client: import_maps(client, list(target.urls), exported, name))
    write_document(_counted(exported) | {"stored": stored}, output)


def _counted(exported: ExportFolder) -> dict[str, object]:
    files = exported.files.values()
    return {
        "folder": str(exported.path),
        "cluster": exported.head.cluster,
        "map": exported.head.map or None,
        "partitions": len(files),
        "entries": sum(file.entries for file in files),
        "bytes": sum(file.bytes for file in files),
    }
