"""`quarterdeck pipeline`: tables and metrics of journals, here or on Spark."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from quarterdeck.cli.commands.spark.stream import stream
from quarterdeck.cli.commands.spark.campaign import MasterOption, RemoteOption, failing_without_spark, require_one_spark
from quarterdeck.cli.exits import BadUsage
from quarterdeck.cli.output import Format, FormatOption, argument, option, say, write_document, write_rows

group = typer.Typer(help="Tables, metrics and a running audit of journals.", rich_markup_mode=None)
group.command()(stream)


class By(StrEnum):
    RUN = "run"
    SCENARIO = "scenario"
    SETTINGS = "settings"
    ALL = "all"


class TableForm(StrEnum):
    PARQUET = "parquet"
    DELTA = "delta"


@group.command("tables")
def make_tables(
    paths: Annotated[list[str], argument("Journals, folders of runs, or files.", "PATH...")],
    out: Annotated[str, option("Where the tables are, or will be.", "DIR")],
    table_form: Annotated[
        TableForm | None,
        option(
            "Tables of Delta Lake, which several processes may write at once, or Parquet files: as they are there, "
            "else Delta at an address and Parquet here.",
            None,
            "--format",
        ),
    ] = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Make tables of journals, or bring them up to date: only runs with anything new are touched."""
    import msgspec

    from quarterdeck.backend.journal.files import NoJournal
    from quarterdeck.backend.pipeline.commit import StoreRefused
    from quarterdeck.backend.pipeline.spark.requirements import needing_packages

    with failing_without_spark(NoJournal, StoreRefused, OSError):
        with needing_packages():
            from quarterdeck.backend.pipeline.tables.store import update_store
        folded = update_store(paths, out, table_form.value if table_form else "")
    write_document(msgspec.to_builtins(folded), output)
    say(
        f"{len(folded.runs) or 'no'} runs brought up to date in {out}, of {folded.files_read} files that were not read before"
    )


@group.command("metrics")
def print_metrics(
    paths: Annotated[list[str], argument("Journals, folders of runs, files; or one directory of tables.", "PATH...")],
    by: Annotated[By, option("How samples are grouped for percentiles.")] = By.RUN,
    table: Annotated[str, option("Print the rows of one table instead, such as splits or detection.", "NAME")] = "",
    master: MasterOption = "",
    remote: RemoteOption = "",
    output: FormatOption = Format.TABLE,
) -> None:
    """Measure what journals tell: how long faults went unnoticed, members disagreed, data was out of reach."""
    from quarterdeck.backend.journal.files import NoJournal
    from quarterdeck.backend.pipeline.commit import StoreRefused
    from quarterdeck.backend.pipeline.metrics.measuring import MAX_ROWS, TABLE_NAMES, measure

    if table and table not in TABLE_NAMES:
        raise BadUsage(f"--table: there is no {table!r}; one of {', '.join(TABLE_NAMES)}")
    require_one_spark(master, remote)
    with failing_without_spark(NoJournal, StoreRefused, OSError):
        measured = measure(paths, by.value, table, master=master, remote=remote)
    write_rows(
        ({name: _short(value, output) for name, value in row.items()} for row in measured.rows),
        measured.columns,
        output,
    )
    if measured.is_cut:
        say(f"there are more; these are the first {MAX_ROWS} rows")
    if measured.quarantined:
        say(f"{measured.quarantined} lines are not records and were left out")


def _short(value: object, output: Format) -> object:
    """Return a number as people read it, where people read."""
    if output is not Format.TABLE or not isinstance(value, float):
        return value
    return int(value) if value.is_integer() else round(value, 3)
