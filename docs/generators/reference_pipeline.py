"""Write the reference of the pipeline's tables, which only repeats what their schemas say.

Run it as ``python -m docs.generators.reference_pipeline``; a test tells when the page is out of date. It needs the extra
`pipeline`.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql.types import ArrayType, DataType, StructType

from quarterdeck.backend.pipeline.data_sources import MEANINGS
from quarterdeck.backend.pipeline.metrics.registry import METRICS
from quarterdeck.backend.pipeline.metrics.summary import SUMMARY
from quarterdeck.backend.pipeline.tables.registry import TABLES
from quarterdeck.backend.pipeline.tables.store import EVENTS, QUARANTINE

PAGE = Path(__file__).parents[1] / "reference" / "tables.md"
LONGEST_TYPE = 40

ENVELOPE = MEANINGS | {"event": f"{MEANINGS['event']}. See [events](events.md)"}


def page() -> str:
    """The whole page."""
    parts = [
        HEADING,
        _section("events", "every record once: the journal as it is, without repetitions", EVENTS),
        _section("quarantine", "lines that are no records, or contradict one", QUARANTINE),
        *(_section(one.name, one.meaning, one.schema) for one in TABLES.values()),
        METRICS_HEADING,
        _section("summary", "percentiles of everything that was measured", SUMMARY),
        *(_section(one.name, one.meaning, one.schema) for one in METRICS.values()),
        "This page is written by `python -m docs.generators.reference_pipeline`.\n",
    ]
    return "\n".join(parts)


HEADING = """# Tables

`quarterdeck pipeline tables PATH... --out DIR` makes them of journals: Parquet, one directory for each table and in it one for
each run (`DIR/views/run=…/`). Times are microseconds on the run's clock unless said otherwise; a time that never came is null.

Made again, only runs with anything new are touched, also when it comes from another place: what is new is added to `events` and
`quarantine`, as if all had been read at once. A finished file is read once; the lines that are kept are read again only where a
new one contradicts a record, or a file changes in which some were no records. All other tables need the whole run, and are made
anew of its `events`: at each `pipeline tables`, but with `pipeline stream --out` only when the run has grown by a quarter since,
and at the end. The tables of a run are replaced together; if the process dies they are as they were, or the next one finishes
what was decided. A store can be read by other versions: columns that it lacks are null, and the next `quarterdeck pipeline
tables` makes it anew from the lines that it keeps.
"""

METRICS_HEADING = """# Metrics

`quarterdeck pipeline metrics PATH...` prints `summary`, and with `--table NAME` one of the others. What they mean and how they
are measured: [metrics](../spark/metrics.md).
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
