"""Write the reference of the pipeline's tables, which only repeats what their schemas say.

Run it as ``python -m docs.generators.reference_pipeline``; a test tells when the page is out of date. It needs the extra
`pipeline`.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql.types import ArrayType, DataType, StructType

from quarterdeck.backend.pipeline.data_sources import MEANINGS
from quarterdeck.backend.pipeline.metrics.summary import METRICS, SUMMARY
from quarterdeck.backend.pipeline.tables.batches import EVENTS, QUARANTINE, TABLES

PAGE = Path(__file__).parents[1] / "reference" / "tables.md"
LONGEST_TYPE = 40

ENVELOPE = MEANINGS | {"event": f"{MEANINGS['event']}. See [events](events.md)"}


def page() -> str:
    """The whole page."""
    parts = [
        HEADING,
        _section("events", "every record once: the journal as it is, without repetitions", EVENTS),
        _section("quarantine", "lines that are no records, or contradict one", QUARANTINE),
        *(_section(table.name, table.meaning, table.schema) for table in TABLES.values()),
        METRICS_HEADING,
        _section("summary", "percentiles of everything that was measured", SUMMARY),
        *(_section(metric.name, metric.meaning, metric.schema) for metric in METRICS.values()),
        "This page is written by `python -m docs.generators.reference_pipeline`.\n",
    ]
    return "\n".join(parts)


HEADING = """# Tables

`quarterdeck pipeline tables PATH... --out DIR` makes Parquet tables of journals: one folder for each table, with a few files of
many runs each (`DIR/views/*.parquet`). DuckDB, Polars, pandas and Spark read a table by its folder, also an empty one. Times are
microseconds on the run's clock unless said otherwise; `utc` is a timestamp. The time of something that never happened is null.

The command needs no Spark: it makes all tables in one pass over the lines, and prints how many rows each of them has now.
`DIR/_store.json` is the account: the files that were read with size and time, and by batch (a file of that name in each table)
its runs and its rows.

When you run the command again, it updates only runs with new records, even if these come from another place. It adds the new
records to `events` and `quarantine`, as if all had been read at once. It reads a finished file once. It reads stored lines again
only if a new line contradicts a record, or if a file changes that had unreadable lines. All other tables need the whole run, so
the command makes them again from the run's `events`; `pipeline stream --out` does so only when the run has grown by a quarter,
and at the end. Where there are many small files, it puts them together. All tables are replaced at once: whenever the process
dies, they are either all old or all new, because their folders lead through one link, `DIR/.current`. What was there before is
kept until the next update. At an address such as `s3a://…` there are no links: there a reader may find old and new files for a
moment. Spark fetches and puts the tables then, and this process makes them. Other versions can read the tables: columns that
are missing are null, and the next `quarterdeck pipeline tables` makes them again from the stored lines.
"""

METRICS_HEADING = """# Metrics

`quarterdeck pipeline metrics PATH...` prints `summary`, and with `--table NAME` one of the others.
[Metrics](../spark/metrics.md) says what they mean and how they are measured.
"""


def _section(name: str, meaning: str, schema: StructType) -> str:
    rows = []
    for field in schema.fields:
        told = field.metadata.get("comment") or ENVELOPE[field.name]
        rows.append(f"| `{field.name}` | {_shown(field.dataType)} | {told} |")
        if isinstance(field.dataType, ArrayType) and isinstance(field.dataType.elementType, StructType):
            inner = [one for one in field.dataType.elementType.fields if "comment" in one.metadata]
            rows += [
                f"| `{field.name}.{one.name}` | {_shown(one.dataType)} | {one.metadata['comment']} |" for one in inner
            ]
    table = "\n".join(rows)
    return f"## `{name}`\n\n{meaning[0].upper()}{meaning[1:]}.\n\n| column | type | meaning |\n| --- | --- | --- |\n{table}\n"


def _shown(kind: DataType) -> str:
    text = kind.simpleString()
    return text if len(text) <= LONGEST_TYPE else text.partition("<")[0]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
