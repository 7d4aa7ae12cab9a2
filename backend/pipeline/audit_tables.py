"""The tables that an audit writes: the lists and suspicions of the runs that it judged, and its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.address import Place
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.run_reader import RunReader
from quarterdeck.backend.pipeline.schemas import arrow_schema, columns_of
from quarterdeck.backend.pipeline.tables.batches import ARROW, ROWS_A_GROUP, TABLES, needed
from quarterdeck.backend.pipeline.tables.run_events import RunEvents, RunLines

AUDIT_FORMAT = "2"
MADE_OF_EVENTS = ("views", "suspicions")


def make_tables(reader: RunReader, findings: Sequence[Finding]) -> dict[str, pa.Table]:
    """Make the tables that an audit writes. Raises OSError for what cannot be read."""
    of_runs = reader.each(_tables_of_run).values()
    tables = {
        name: pa.concat_tables([ARROW[name].empty_table(), *(made[name] for made in of_runs)])
        for name in MADE_OF_EVENTS
    }
    rows = [msgspec.to_builtins(finding) for finding in findings]
    return tables | {"findings": pa.Table.from_pylist(rows, arrow_schema(columns_of(Finding)))}


def _tables_of_run(run: str, lines: RunLines) -> dict[str, pa.Table]:
    events = RunEvents(needed(lines.events(run)[1]))
    return {name: TABLES[name].arrow(events) for name in MADE_OF_EVENTS}


def write_tables(tables: Mapping[str, pa.Table], out_dir: Place, writer: str) -> None:
    """Replace the tables of an earlier audit: here all of them or none, at an address one after the other.

    Raises `StoreRefused` and OSError.
    """
    manifest = commit.TableManifest(AUDIT_FORMAT, {}, writer)
    if not isinstance(out_dir, Path):
        commit.check(out_dir, tuple(tables), writer)
        (out_dir / commit.MANIFEST).write_bytes(msgspec.json.encode(manifest))
        for name, table in tables.items():
            content = pa.BufferOutputStream()
            _write_table(table, content)
            (out_dir / name / f"{name}{commit.PARQUET}").write_bytes(content.getvalue())
        return
    with commit.open_for_build(out_dir, tuple(tables), writer) as building:
        for name, table in tables.items():
            (building / name).mkdir()
            _write_table(table, building / name / f"{name}{commit.PARQUET}")
        commit.commit(out_dir, building, manifest, dict.fromkeys(tables, ()))


def _write_table(table: pa.Table, file: Any) -> None:
    pq.write_table(table, file, compression="zstd", row_group_size=ROWS_A_GROUP)
