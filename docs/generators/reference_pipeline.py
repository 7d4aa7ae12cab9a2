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

`quarterdeck pipeline tables PATH... --out DIR` makes tables of journals: one folder for each, with a few Parquet files of many
runs each. Times are microseconds on the run's clock unless said otherwise; `utc` is a timestamp. The time of something that never
happened is null. Spark makes them unless `--engine here` is given. The command prints how many rows each table has now.

When you run the command again, it updates only runs with new records, even if these come from another place. It adds the new
records to `events` and `quarantine`, as if all had been read at once. It reads a finished file once. All other tables need the
whole run, so the command makes them again from the run's `events`. Where there are many small files, it puts them together. A
store that another version made is made again from the stored lines.

| `--format` | `parquet`, the default here | `delta`, the default at addresses |
| --- | --- | --- |
| a table | a folder that DuckDB, Polars, pandas and Spark read | a table of Delta Lake |
| writers | one at a time | several at once: each merges its records by run, incarnation and number |
| one that dies | all tables are old or all new: one link leads to them | as `updates` says; the next writer finishes |
| what was before | kept until the next update | every version, until it is vacuumed |
| the account | `DIR/_store.json`: files read, form and files of the tables | the table `updates`, below |

`quarterdeck audit`, `pipeline metrics` and `quarterdeck.spark.register`
read a store of either format, without jars. Each row of `updates` has the number and the time (`at`) of an update, the `form` of
the tables, the `files` that were read for it (`place`, `size_bytes`, `changed`), and the `versions` of all tables after it
(`table`, `version`). Other programs read a table as of now or of a version:

```python
import duckdb, polars
from deltalake import DeltaTable

updates = DeltaTable("tables/updates").to_pandas().sort_values("number")
last_but_one = {entry["table"]: entry["version"] for entry in updates["versions"].iloc[-2]}
before = DeltaTable("tables/views", version=last_but_one["views"]).to_pandas()
events = DeltaTable("tables/events").to_pyarrow_dataset()
duckdb.sql("SELECT run, count(*) FROM events GROUP BY run")
polars.scan_delta("tables/suspicions").filter(polars.col("cleared_at").is_null()).collect()
```

Do not read such a table as a folder of Parquet files: those of older versions are in it too.
`DeltaTable(…).vacuum(dry_run=False)` removes what no version of the last seven days has.
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
