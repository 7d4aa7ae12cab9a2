"""Putting the tables of some runs in the place of older ones: all of them, or none.

What is new is built in a directory of its own beside the tables. Renaming the order into that directory decides: before, the
new is thrown away; after, whoever comes next finishes what was begun. Each table's directory of a run is put in place by one
rename, so that no reader ever finds half of one.

That is so for directories of this machine. At an address (`HadoopPath`) there is no lock, and some file systems rename a
directory file by file: what was broken off is finished all the same, but a reader may find half of a run, and two writers
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
LOCK = ".lock"
ORDER = "order.json"
MANIFEST = "_store.json"
RUN_PREFIX = "run="
PIPELINE = "pipeline tables"
"""The maker of a store, unless another is named."""


class StoreRefused(ValueError):
    """The directory cannot take tables; the message says why and what to do."""


class TableManifest(Struct, frozen=True):
    """What a store is made of: the files that are in it, each with its stamp, and the form of its tables.

    `maker`: whose tables these are, whom alone they concern.
    """

    form: str
    files: dict[str, tuple[int, int]]
    maker: str = PIPELINE
    behind: dict[str, int] = {}
    """By run that grows, how many of its events were added since its tables were made of them."""


class Order(Struct, frozen=True):
    """What is to be put in place: of each table all runs named here, present or gone."""

    runs: tuple[str, ...]
    tables: tuple[str, ...]
    manifest: TableManifest


def read_manifest(store: Place, maker: str = PIPELINE) -> TableManifest | None:
    """What the store at `store` consists of; None when there is none.

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
    """A directory to build in, while nobody else writes into `store`; what an earlier writer left is seen to first.

    Raises `StoreRefused` when the place holds something else, or is being written.
    """
    existed = store.exists()
    check(store, tables, maker)
    store.mkdir(parents=True, exist_ok=True)
    with _alone(store):
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
def _alone(store: Place) -> Iterator[None]:
    """Nobody else writes into a directory of this machine meanwhile. Raises `StoreRefused`."""
    if not isinstance(store, Path):
        yield
        return
    with (store / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as busy:
            raise StoreRefused(f"{store}: somebody else is writing tables there; try again later") from busy
        yield


def commit(store: Place, building: Place, order: Order) -> None:
    """Put what stands in `building`, table by table and run by run, into `store`."""
    draft = building / f"{ORDER}.draft"
    draft.write_bytes(msgspec.json.encode(order))
    if isinstance(draft, Path):
        with draft.open("rb") as file:
            os.fsync(file.fileno())
    rename(draft, building / ORDER)
    _carry_out(store, building, order)


def finish(store: Place) -> None:
    """Finish what an interrupted writer had decided, and throw away what it had not."""
    for building in _found(store, f"{BUILDING}*"):
        if (building / ORDER).exists():
            _carry_out(store, building, msgspec.json.decode((building / ORDER).read_bytes(), type=Order))
        else:
            remove(building)


def remove(place: Place) -> None:
    """Remove a directory with all that is in it, where there is one."""
    if isinstance(place, Path):
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.remove()


def directories_by_run(table: Place) -> dict[str, str]:
    """The names of the directories in `table`, by the run that each holds."""
    return {unquote(one.name.removeprefix(RUN_PREFIX)): one.name for one in _found(table, f"{RUN_PREFIX}*")}


def stored_bytes(table: Place, runs: Collection[str] | None = None) -> int:
    """Bytes that `table` takes; only of these `runs`, if any are named."""
    return sum(part.stat().st_size for part in stored_files(table, runs))


def stored_files(table: Place, runs: Collection[str] | None = None) -> list[Place]:
    """The files of `table`; only those of these `runs`, if any are named."""
    wanted = (name for run, name in directories_by_run(table).items() if runs is None or run in runs)
    return [part for name in wanted for part in _found(table / name, "*.parquet")]


def _found(directory: Place, pattern: str) -> list[Place]:
    """What is in the directory and fits the pattern, in order."""
    return sorted([*directory.glob(pattern)], key=str)


def _carry_out(store: Place, building: Place, order: Order) -> None:
    """Do what `order` says; what is done already is left as it is, so this may be begun again at any point."""
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
                rename(building / table / new[run], store / table / new[run])
            elif run in there and not (placed / there[run]).exists():
                _set_aside(store / table / there[run], old / table)
    draft = building / f"{MANIFEST}.draft"
    draft.write_bytes(msgspec.json.encode(order.manifest))
    rename(draft, store / MANIFEST)
    rename(building / ORDER, building / f"{ORDER}.done")
    remove(building)


def _set_aside(directory: Place, old: Place) -> None:
    if isinstance(directory, Path):
        place = old / uuid4().hex
        place.mkdir()
        rename(directory, place / directory.name)
    else:  # to rename may be to copy, and this is not needed any more
        directory.remove()


def rename(one: Place, target: Place) -> None:
    """The file or directory in another place, both of one kind."""
    one.rename(target)  # type: ignore[arg-type]


def check(store: Place, tables: tuple[str, ...], maker: str = PIPELINE) -> None:
    """Only what is a store of this maker, or has none of these tables, may become one. Raises `StoreRefused`."""
    if store.exists() and not store.is_dir():
        raise StoreRefused(f"{store} is not a directory")
    if read_manifest(store, maker) is None and not any(store.glob(f"{BUILDING}*")):
        for table in tables:
            if (store / table).exists():
                raise StoreRefused(f"{store / table} exists and is no table of this pipeline; choose another directory")
