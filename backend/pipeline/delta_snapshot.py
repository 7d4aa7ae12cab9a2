"""A store of Delta Lake's tables as one update left it: which version of each table belongs to it. Imports no Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from quarterdeck.backend.pipeline.address import Address
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing

if TYPE_CHECKING:
    from deltalake import DeltaTable

UPDATES = "updates"
"""The table with a row for each update of the store, the last of which is made last."""


@dataclass(frozen=True)
class DeltaSnapshot:
    """The state of the store at `address` after so many updates."""

    address: Address
    number: int
    form: str
    versions: Mapping[str, int]
    """The version of each table."""

    @cached_property
    def known(self) -> dict[str, tuple[int, int]]:
        """The files that were read so far, by place, with their stamps."""
        rows = updates_of(self.address)[: self.number]
        return {file["place"]: (file["size_bytes"], file["changed"]) for row in rows for file in row["files"]}

    def files(self, table: str) -> list[Address]:
        if table not in self.versions:
            return []
        return files_of(self.address / table, open_table(self.address / table, self.versions[table]))


def newest(address: Address) -> DeltaSnapshot | None:
    """Return the state of the store after its last update, or None if there is no store of Delta's tables."""
    if not (address / UPDATES / "_delta_log").is_dir():
        return None
    rows = updates_of(address)
    if not rows:
        return DeltaSnapshot(address, 0, "", {})
    versions = {row["table"]: row["version"] for row in rows[-1]["versions"]}
    return DeltaSnapshot(address, len(rows), rows[-1]["form"], versions)


def updates_of(address: Address) -> list[dict[str, Any]]:
    """Return the rows of the table of updates, in order."""
    rows: list[dict[str, Any]] = open_table(address / UPDATES).to_pyarrow_table().sort_by("number").to_pylist()
    return rows


def open_table(place: Address, version: int | None = None) -> DeltaTable:
    """Open a table, as it was at a version or as it is now. Raises `PipelineMissing` and OSError."""
    with needing_delta():
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    try:
        return DeltaTable(place.delta_uri, version, place.delta_options)
    except DeltaError as problem:
        raise OSError(5, f"no table of Delta Lake that can be read ({problem})", str(place)) from problem


def files_of(place: Address, table: DeltaTable) -> list[Address]:
    """Return the Parquet files of a version of the table at `place`."""
    paths = table.get_add_actions()["path"].to_pylist()
    return [place / unquote(path) for path in sorted(paths)]


@contextmanager
def needing_delta() -> Iterator[None]:
    """Raise `PipelineMissing` where the package is not installed that reads and writes tables of Delta Lake."""
    try:
        yield
    except ModuleNotFoundError as problem:
        raise PipelineMissing(
            "tables at addresses, and --format delta, need one more package: "
            "install 'quarterdeck[spark]'; in a clone, run `make pipeline`"
        ) from problem
