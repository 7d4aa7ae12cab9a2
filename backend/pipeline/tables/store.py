"""Tables on disk: a few Parquet files for each, made of journals in one pass and updated as more of them arrives.

The lines of the journals are kept unchanged in the tables `events` and `quarantine`; all others are made of `events`.
So a file is read once. Lines that come later, from another member or another place, are folded in as if all had been
read at once. Rows of other runs are not touched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.address import Address, Place, address_of, place_of
from quarterdeck.backend.pipeline.audit_input import resolve_input
from quarterdeck.backend.pipeline.commit import StoreRefused
from quarterdeck.backend.pipeline.delta_snapshot import DeltaSnapshot, newest
from quarterdeck.backend.pipeline.judging.lines import NO_RUN
from quarterdeck.backend.pipeline.tables.batches import ARROW, SCHEMAS, known_columns
from quarterdeck.backend.pipeline.tables.delta_store import update_delta
from quarterdeck.backend.pipeline.tables.parquet_store import update_parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = sha256(
    "".join(f"{name} {columns.simpleString()}\n" for name, columns in SCHEMAS.items()).encode()
).hexdigest()[:16]
"""The form of the tables: a store of another form is made anew from the lines that it keeps."""


class StoreUpdate(Struct, frozen=True):
    """The result of an update. `runs` are those of the lines that were read."""

    files_read: int
    files_known: int
    runs: tuple[str, ...]
    records: int
    """Of those runs, as is `quarantined`."""
    quarantined: int
    tables: dict[str, int] = {}
    """How many rows each table has now, of all runs."""


TableFormat = Literal["", "parquet", "delta"]
"""How a store keeps its tables. Empty: as it does; a new one in files of Parquet here, in tables of Delta Lake at an address."""


def update_store(paths: Sequence[Path | str], store: Path | str, table_format: TableFormat = "") -> StoreUpdate:
    """Update the tables at `store` with the journals at `paths`; what came from others before is kept.

    New lines of a run are added to its events. The tables that are made of events need the whole run: they are made anew from its
    kept events.

    `paths` and `store` may be addresses, where only finished files are read. Several processes may write to tables of Delta Lake
    at the same time.

    Raises `NoJournal`, `StoreRefused`, `PipelineMissing`, or OSError. Whatever fails, and whenever the process dies, all tables
    are either as they were, or as they should be.
    """
    place = _place(store, table_format)
    with tempfile.TemporaryDirectory(prefix="quarterdeck-tables-") as folder:
        found = resolve_input(paths, Path(folder), "journal")
        if found.kind == "store":
            raise NoJournal(f"{found.paths[0]}: holds tables; expected the journals that they are made of")
        if isinstance(place, Address):
            counts, files_read, files_known, rows = update_delta(place, found, FORMAT)
        else:
            counts, files_read, files_known, rows = update_parquet(place, found, FORMAT)
    records, quarantined = (sum(count[which] for count in counts.values()) for which in (0, 1))
    runs = sorted(
        run for run, (records_of_run, _) in counts.items() if records_of_run or run != NO_RUN
    )  # no stray lines
    return StoreUpdate(files_read, files_known, tuple(runs), records, quarantined, rows)


def _place(store: Path | str, table_format: TableFormat) -> Place:
    """Return where tables of this format are, those of Delta as an address. Raises `StoreRefused` for another format."""
    place = place_of(store)
    if isinstance(place, Address):
        if table_format == "parquet":
            raise StoreRefused(f"{store}: tables at an address are Delta's; leave --format out")
        return place
    address = address_of(f"file://{place.resolve()}")
    is_delta = newest(address) is not None
    if is_delta if table_format == "parquet" else table_format == "delta" and commit.read_manifest(place) is not None:
        raise StoreRefused(f"{place} holds tables of the other format; choose another directory")
    return address if is_delta or table_format == "delta" else place


def read_table(spark: SparkSession, store: Path | DeltaSnapshot, name: str) -> DataFrame:
    """Read the table `name` of the store with the columns that this version knows: missing ones are null, others are left out."""
    schema = SCHEMAS[name]
    if isinstance(store, Path):
        return spark.read.schema(schema).parquet(f"{store}/{name}").select(schema.names)
    from quarterdeck.backend.pipeline.spark.arrow import in_tasks, tasks_in

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file in tasks_in(batches):
            with file.open() as content:
                for batch in pq.ParquetFile(content).iter_batches():
                    yield from known_columns(pa.Table.from_batches([batch]), ARROW[name]).to_batches()

    return in_tasks(spark, store.files(name), read, schema)
