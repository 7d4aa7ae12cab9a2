"""`quarterdeck pipeline`: tables and metrics of journals, and the audit of one while it is written, here or on Spark."""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from quarterdeck.backend.picture.text.formatting import counted
from quarterdeck.cli.commands.run_options import stopping
from quarterdeck.cli.commands.spark.engine_options import (
    ConfOption,
    EngineOption,
    MasterOption,
    RemoteOption,
    chosen_engine,
)
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

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.spark.engine import Engine
    from quarterdeck.backend.pipeline.streaming.journal_follower import FindingsChange


def stream(
    path: Annotated[
        str, argument("A journal, or one run=… directory in it; with --master also kafka://HOST:PORT/TOPIC.", "PATH")
    ],
    once: Annotated[bool, flag("Audit what is new since the last time, then end.", "--once")] = False,
    findings: Annotated[
        Path | None,
        option("Where findings are kept; findings.jsonl beside the runs if not given; a table on Spark.", "FILE"),
    ] = None,
    checkpoint: Annotated[
        Path | None, option("Where the stream keeps its checkpoint; _stream beside the runs.", "DIR")
    ] = None,
    trigger_ms: Annotated[int, option("How often to look for new files.", "MS", min=100)] = 500,
    engine: EngineOption = "auto",
    master: MasterOption = "",
    conf: ConfOption = None,
    forget_hours: Annotated[
        float, option("On Spark: forget a run of which nothing has come for so long.", "HOURS", min=0.01)
    ] = 24.0,
    output: FormatOption = Format.JSONL,
) -> None:
    """Audit a journal as it grows, until Ctrl-C. What is found is printed and kept in findings.jsonl beside the runs.

    Prints JSON lines, or sentences with `-o table`.
    After a restart it goes on where it was. Exits with 1 when `--once` leaves a violation in that file, with 4 when the stream
    dies.
    """
    if output not in (Format.JSONL, Format.TABLE):
        raise BadUsage(f"-o {output}: a stream of records is printed as jsonl or table")
    from quarterdeck.backend.pipeline.streaming import stream as streaming

    chosen = chosen_engine(engine, master, "", conf)
    if chosen.is_spark or "://" in path:
        _stream_on_spark(path, findings, checkpoint, chosen, once, trigger_ms, forget_hours, output)
        return
    stop = threading.Event()
    with stopping(stop), failing_as(ExitCode.REFUSED, OSError):
        where = streaming.stream_paths(Path(path), findings, checkpoint)
        say(f"audits {where.root} as it grows; findings go to {where.findings}" + ("" if once else "; Ctrl-C ends it"))
        show = partial(_print_change, output)
        done = streaming.stream(where, stop=stop, on_change=show, on_message=say, once=once, look_ms=trigger_ms)
    bad = f", {done.problems} of them no records" if done.problems else ""
    say(f"{counted(done.lines, 'line')} read{bad}; {_violations(done.violations)} in {done.findings}")
    _exit(once, done.violations)


def _violations(number: int) -> str:
    return counted(number, "violation") if number else "no violations"


def _exit(once: bool, violations: int) -> None:
    if not once:
        raise typer.Exit(ExitCode.INTERRUPTED)
    fail_if(violations)


def _stream_on_spark(
    path: str,
    findings: Path | None,
    checkpoint: Path | None,
    engine: Engine,
    once: bool,
    trigger_ms: int,
    forget_hours: float,
    output: Format,
) -> None:
    from quarterdeck.backend.journal.files import RUN_PREFIX
    from quarterdeck.backend.pipeline.spark.requirements import needing_packages
    from quarterdeck.backend.pipeline.streaming.stream import CHECKPOINTS

    if "://" not in path:
        place = Path(path).resolve()
        beside = place.parent / CHECKPOINTS / place.name if place.name.startswith(RUN_PREFIX) else place / CHECKPOINTS
    elif findings is None or checkpoint is None:
        raise BadUsage(f"{path}: name --findings and --checkpoint, for there is no place beside it")
    else:
        beside = Path()
    table, state = findings or beside / "findings", checkpoint or beside / "spark"
    stop = threading.Event()
    with failing_as(ExitCode.REFUSED, OSError), stopping(stop):
        with needing_packages():
            from quarterdeck.backend.pipeline.streaming.spark_stream import stream_on_spark
        say(f"audits {path} on Spark as it grows; findings go to {table}" + ("" if once else "; Ctrl-C ends it"))
        done = stream_on_spark(
            path,
            str(table),
            str(state),
            engine=engine,
            stop=stop,
            once=once,
            trigger_ms=trigger_ms,
            forget_hours=forget_hours,
            on_change=partial(_print_change, output),
            on_message=say,
        )
    bad = f", {counted(done.quarantined, 'line that is no record', 'lines that are no records')} beside it"
    say(f"{_violations(done.violations)} in {table}{bad if done.quarantined else ''}")
    _exit(once, done.violations)


def _print_change(output: Format, change: FindingsChange) -> None:
    for finding in change.added:
        if output is Format.JSONL:
            write_line(msgspec.json.encode(finding).decode())
        else:
            at = f"{finding.run} at {finding.at / 1_000_000:.3f} s"
            write_line(f"{finding.severity}: {finding.rule} in {at}: {finding.detail}")
    sys.stdout.flush()
    for finding in change.withdrawn:
        say(f"does not hold any more: {finding.rule} in {finding.run}: {finding.detail}")


group = typer.Typer(help="Tables, metrics and a running audit of journals.", rich_markup_mode=None)
group.command()(stream)


@group.command("tables")
def make_tables(
    paths: Annotated[list[str], argument("Journals, folders of runs, or files.", "PATH...")],
    out: Annotated[str, option("Where the tables are, or will be.", "DIR")],
    table_form: Annotated[
        Literal["parquet", "delta"] | None,
        option(
            "Tables of Delta Lake, which several processes may write at once, or Parquet files: as they are there, "
            "else Delta at an address and Parquet here.",
            None,
            "--format",
        ),
    ] = None,
    engine: EngineOption = "auto",
    master: MasterOption = "",
    conf: ConfOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Make tables of journals, or bring them up to date: only runs with anything new are touched."""
    from quarterdeck.backend.pipeline.spark.requirements import needing_packages

    chosen = chosen_engine(engine, master, "", conf)
    with failing_as(ExitCode.BAD_INPUT, OSError):
        with needing_packages():
            from quarterdeck.backend.pipeline.tables.store import update_store
        folded = update_store(paths, out, table_form or "", chosen)
    write_document(msgspec.to_builtins(folded), output)
    fresh = counted(folded.files_read, "file that was not read before", "files that were not read before")
    runs = counted(len(folded.runs), "run") if folded.runs else "no runs"
    say(f"{runs} brought up to date in {out}, of {fresh}")


@group.command("metrics")
def print_metrics(
    paths: Annotated[list[str], argument("Journals, folders of runs, files; or one directory of tables.", "PATH...")],
    by: Annotated[
        Literal["run", "scenario", "settings", "all"], option("How samples are grouped for percentiles.")
    ] = "run",
    table: Annotated[str, option("Print the rows of one table instead, such as splits or detection.", "NAME")] = "",
    engine: EngineOption = "auto",
    master: MasterOption = "",
    remote: RemoteOption = "",
    conf: ConfOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Measure what journals show: how long faults went unnoticed, members disagreed, data was out of reach."""
    from quarterdeck.backend.pipeline.metrics.measuring import MAX_ROWS, TABLE_NAMES, measure

    if table and table not in TABLE_NAMES:
        raise BadUsage(f"--table: there is no {table!r}; one of {', '.join(TABLE_NAMES)}")
    chosen = chosen_engine(engine, master, remote, conf)
    with failing_as(ExitCode.BAD_INPUT, OSError):
        measured = measure(paths, by, table, chosen)
    rows = ({name: _short(value, output) for name, value in row.items()} for row in measured.rows)
    write_rows(rows, measured.columns, output)
    if measured.is_cut:
        say(f"there are more; these are the first {MAX_ROWS} rows")
    if measured.quarantined:
        say(f"left out: {counted(measured.quarantined, 'line that is no record', 'lines that are no records')}")


def _short(value: object, output: Format) -> object:
    """Return a number as people read it, where people read."""
    if output is not Format.TABLE or not isinstance(value, float):
        return value
    return int(value) if value.is_integer() else round(value, 3)
