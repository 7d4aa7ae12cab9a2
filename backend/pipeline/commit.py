"""Replaces the tables of some runs: all of them, or none.

New tables are built in a directory of their own beside the old ones. Renaming the order into that directory decides: before, the
new tables are discarded; after, the next writer finishes what was begun. Each table's directory of a run is replaced by one
rename, so that no reader ever finds half of one.

That holds for directories of this machine. At an address (`HadoopPath`) there is no lock, and some file systems rename a
directory file by file: an interrupted commit is finished all the same, but a reader may find half of a run, and two writers
spoil each other's work.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote
from uuid import uuid4

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.spark.hadoop_path import HadoopPath

Place: TypeAlias = "Path | HadoopPath"
"""A file or directory, of this machine or at an address."""

BUILDING = ".building-"
ORDER = "order.json"
MANIFEST = "_store.json"
RUN_PREFIX = "run="
PIPELINE = "pipeline tables"
"""The maker of a store, unless another is named."""


class StoreRefused(ValueError):
    """The directory cannot hold tables; the message says why and what to do."""


class TableManifest(Struct, frozen=True):
    """What a store consists of: its source files, each with its stamp, and the form of its tables."""

    form: str
    files: dict[str, tuple[int, int]]
    maker: str = PIPELINE
    """The command that made the tables; no other may change them."""
    behind: dict[str, int] = {}
    """By run that grows, how many of its events were added since its tables were made of them."""


class Order(Struct, frozen=True):
    """What is to be replaced: of each table all runs named here, present or gone."""

    runs: tuple[str, ...]
    tables: tuple[str, ...]
    manifest: TableManifest


def read_manifest(store: Place, maker: str = PIPELINE) -> TableManifest | None:
    """Read what the store at `store` consists of. Return None when there is none.

    Raises `StoreRefused` when it cannot be read, or is another maker's.
    """
    try:
        manifest = msgspec.json.decode((store / MANIFEST).read_bytes(), type=TableManifest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.MsgspecError as problem:
        raise StoreRefused(f"{store / MANIFEST}: {problem}; remove the directory and make the tables anew") from problem
    if manifest.maker != maker:
        raise StoreRefused(f"{store} holds the tables of `quarterdeck {manifest.maker}`; choose another directory")
    return manifest


@contextmanager
def open_for_build(store: Place, tables: tuple[str, ...], maker: str = PIPELINE) -> Iterator[Place]:
    """Make a directory to build in while no other process writes to `store`, after finishing an interrupted commit.

    Raises `StoreRefused` when the place holds something else, or is being written.
    """
    existed = store.exists()
    check(store, tables, maker)
    store.mkdir(parents=True, exist_ok=True)
    busy = StoreRefused(f"{store}: another process is writing tables there; try again later")
    with locked(store / ".lock", busy):
        finish(store)
        building = store / f"{BUILDING}{uuid4().hex[:12]}"
        building.mkdir()
        try:
            yield building
        finally:
            if not (building / ORDER).exists():  # else it is decided, and will be finished
                remove(building)
            if not existed and not (store / MANIFEST).exists() and not any(store.glob(f"{BUILDING}*")):
                remove(store)


@contextmanager
def locked(lock: Place, busy: Exception) -> Iterator[None]:
    """Lock out other processes of this machine. Raises `busy` if one holds the lock, which ends with its process."""
    if not isinstance(lock, Path):
        yield
        return
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            raise busy from problem
        yield


def commit(store: Place, building: Place, order: Order) -> None:
    """Put what is in `building`, table by table and run by run, into `store`."""
    write_whole(building, ORDER, msgspec.json.encode(order))
    _carry_out(store, building, order)


def write_whole(folder: Place, name: str, content: bytes) -> None:
    """Write a file that exists whole or not at all, and that survives a kill once this returns. Raises OSError."""
    draft = folder / f"{BUILDING}{name}"
    draft.write_bytes(content)
    if isinstance(draft, Path):
        with draft.open("rb") as file:
            os.fsync(file.fileno())
    _rename(draft, folder / name)


def remove(place: Place) -> None:
    """Remove a file, or a directory with its content, if it exists."""
    if not isinstance(place, Path):
        place.remove()
    elif place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def directories_by_run(table: Place) -> dict[str, str]:
    """Return the names of the directories in `table`, by the run that each holds."""
    return {unquote(found.name.removeprefix(RUN_PREFIX)): found.name for found in _found(table, f"{RUN_PREFIX}*")}


def stored_bytes(table: Place, runs: Collection[str] | None = None) -> int:
    """Return the size of `table`; only of these `runs`, if any are named."""
    return sum(part.stat().st_size for part in stored_files(table, runs))


def stored_files(table: Place, runs: Collection[str] | None = None) -> list[Place]:
    """Return the files of `table`; only those of these `runs`, if any are named."""
    wanted = (name for run, name in directories_by_run(table).items() if runs is None or run in runs)
    return [part for name in wanted for part in _found(table / name, "*.parquet")]


def check(store: Place, tables: tuple[str, ...], maker: str = PIPELINE) -> None:
    """Refuse what is neither a store of this maker nor free of these tables. Raises `StoreRefused`."""
    if store.exists() and not store.is_dir():
        raise StoreRefused(f"{store} is not a directory")
    if read_manifest(store, maker) is None and not any(store.glob(f"{BUILDING}*")):
        for table in tables:
            if (store / table).exists():
                raise StoreRefused(f"{store / table} exists and is no table of this pipeline; choose another directory")


def _found(directory: Place, pattern: str) -> list[Place]:
    return sorted([*directory.glob(pattern)], key=str)


def finish(store: Place) -> None:
    """Finish what an interrupted writer had decided, and discard what it had not."""
    for building in _found(store, f"{BUILDING}*"):
        if (building / ORDER).exists():
            _carry_out(store, building, msgspec.json.decode((building / ORDER).read_bytes(), type=Order))
        else:
            remove(building)


def _carry_out(store: Place, building: Place, order: Order) -> None:
    """Carry out `order`. What is done already is left as it is, so this may be started again at any point."""
    old = building / "old"
    for table in order.tables:
        (store / table).mkdir(exist_ok=True)
        (old / table).mkdir(parents=True, exist_ok=True)
        there, new = directories_by_run(store / table), directories_by_run(building / table)
        placed = old / table / "placed"
        placed.mkdir(exist_ok=True)
        for run in order.runs:
            if run in new:
                if run in there:
                    _set_aside(store / table / there[run], old / table)
                (placed / new[run]).write_bytes(b"")
                _rename(building / table / new[run], store / table / new[run])
            elif run in there and not (placed / there[run]).exists():
                _set_aside(store / table / there[run], old / table)
    draft = building / f"{MANIFEST}.draft"
    draft.write_bytes(msgspec.json.encode(order.manifest))
    _rename(draft, store / MANIFEST)
    _rename(building / ORDER, building / f"{ORDER}.done")
    remove(building)


def _set_aside(directory: Place, old: Place) -> None:
    if isinstance(directory, Path):
        place = old / uuid4().hex
        place.mkdir()
        _rename(directory, place / directory.name)
    else:  # a rename may be a copy, and this is not needed any more
        directory.remove()


def _rename(place: Place, target: Place) -> None:
    place.rename(target)  # type: ignore[arg-type] # both are of one kind
