"""Replaces the tables of a store: all of them, or none.

On this machine, each state of the store is a directory of its own, `.tables-…`, in which unchanged files are links to those of
the state before. `.current` points to the newest; the tables' folders and the manifest lead through it. So renaming that one
link replaces all tables at once, for whoever reads them by their folders, and whenever the process dies. The state before is
kept until the next update, for those who read it.

At an address (`Address`) there are no links and no lock. The new files are put beside the old ones, after an order that says
what belongs to the store: an interrupted commit is finished by the next writer, but a reader may find both meanwhile, and two
writers spoil each other's work.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct

from quarterdeck.backend.pipeline.address import Place

BUILDING = ".building-"
STATE = ".tables-"
CURRENT = ".current"
ORDER = "order.json"
MANIFEST = "_store.json"
PARQUET = ".parquet"
PIPELINE = "pipeline tables"
"""The maker of a store, unless another is named."""


class StoreRefused(ValueError):
    """The directory cannot hold tables; the message says why and what to do."""


class RunBatch(Struct, frozen=True):
    """Files that were made together, one for each table that has rows: `TABLE/NAME.parquet`."""

    runs: tuple[str, ...]
    rows: dict[str, int]
    """By table."""


class TableManifest(Struct, frozen=True):
    """What a store consists of: its source files, each with its stamp, the form of its tables, and its batches by name."""

    form: str
    files: dict[str, tuple[int, int]]
    maker: str = PIPELINE
    """The command that made the tables; no other may change them."""
    behind: dict[str, int] = {}
    """By run that grows, how many of its events were added since its tables were made of them."""
    batches: dict[str, RunBatch] = {}


class Order(Struct, frozen=True):
    """What a store at an address will consist of: its manifest, and by table the names of its files."""

    manifest: TableManifest
    names: dict[str, tuple[str, ...]]


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
def open_for_build(store: Place, tables: Sequence[str], maker: str = PIPELINE) -> Iterator[Place]:
    """Make a directory to build in while no other process writes to `store`, after finishing an interrupted commit.

    Raises `StoreRefused` when the place holds something else, or is being written.
    """
    existed = store.exists()
    check(store, tables, maker)
    store.mkdir(parents=True, exist_ok=True)
    with locked(store / ".lock", StoreRefused(f"{store}: another process is writing tables there; try again later")):
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


def commit(store: Place, building: Place, manifest: TableManifest, kept: Mapping[str, Sequence[str]]) -> None:
    """Make what is in `building`, table by table, and the `kept` files of each table the content of `store`."""
    for table in kept:
        for file in (building / table).glob("*"):
            if not file.name.endswith(PARQUET):
                remove(file)  # what Spark notes beside its files
    if not isinstance(store, Path) or not isinstance(building, Path):
        names = {table: (*old, *(file.name for file in (building / table).glob("*"))) for table, old in kept.items()}
        write_whole(building, ORDER, msgspec.json.encode(Order(manifest, names)))
        _carry_out(store, building)
        return
    for table, names_kept in kept.items():
        (building / table).mkdir(exist_ok=True)
        for name in names_kept:
            _link(store / table / name, building / table / name)
    write_whole(building, MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    state = building.rename(store / f"{STATE}{building.name.removeprefix(BUILDING)}")
    _lead_through(store, [name for name in (*kept, MANIFEST) if not (store / name).exists()])
    draft = store / f"{BUILDING}{CURRENT}"
    draft.symlink_to(state.name)
    draft.rename(store / CURRENT)
    _lead_through(store, (*kept, MANIFEST))


def write_whole(folder: Place, name: str, content: bytes) -> None:
    """Write a file that exists whole or not at all, and that survives a kill once this returns. Raises OSError."""
    draft = folder / f"{BUILDING}{name}"
    try:
        draft.write_bytes(content)
        if isinstance(draft, Path):
            with draft.open("rb") as file:
                os.fsync(file.fileno())
        _rename(draft, folder / name)
    except OSError:
        remove(draft)
        raise


def put(file: Path, place: Place) -> None:
    """Copy a file of this machine to a place. Raises OSError."""
    if isinstance(place, Path):
        shutil.copyfile(file, place)
    else:
        place.put(file)


def remove(place: Place) -> None:
    """Remove a file, or a directory with its content, if it exists."""
    if not isinstance(place, Path):
        place.remove()
    elif place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def check(store: Place, tables: Sequence[str], maker: str = PIPELINE) -> None:
    """Refuse what is neither a store of this maker nor free of these tables. Raises `StoreRefused`."""
    if store.exists() and not store.is_dir():
        raise StoreRefused(f"{store} is not a directory")
    if read_manifest(store, maker) is None and not any(store.glob(f"{BUILDING}*")):
        for table in tables:
            if (store / table).exists():
                raise StoreRefused(f"{store / table} exists and is no table of this pipeline; choose another directory")


def finish(store: Place) -> None:
    """Finish what an interrupted writer had decided, and discard what it had not, and states of the store before the last."""
    current = (store / CURRENT).resolve() if isinstance(store, Path) else None
    if isinstance(store, Path) and current is not None and current.is_dir():
        _lead_through(store, [place.name for place in current.iterdir()])
    for leftover in [*store.glob(f"{BUILDING}*"), *store.glob(f"{STATE}*")]:
        if (leftover / ORDER).exists():
            _carry_out(store, leftover)
        elif current is None or leftover.name != current.name:
            remove(leftover)


def _lead_through(store: Path, names: Sequence[str]) -> None:
    """Make these names in `store` links through the current state, in place of what earlier versions had there."""
    for name in names:
        if not (store / name).is_symlink():
            if (store / name).exists():
                (store / name).rename(store / f"{BUILDING}{uuid4().hex[:12]}")
            (store / name).symlink_to(Path(CURRENT) / name)


def _link(file: Path, place: Path) -> None:
    try:
        place.hardlink_to(file.resolve())
    except OSError:  # not every file system has links
        shutil.copy2(file, place)


def _carry_out(store: Place, building: Place) -> None:
    """Carry out the order in `building`. What is done already is left as it is, so this may be started again at any point."""
    order = msgspec.json.decode((building / ORDER).read_bytes(), type=Order)
    for table, names in order.names.items():
        (store / table).mkdir(exist_ok=True)
        for file in stored_files(building / table):
            _rename(file, store / table / file.name)
        for file in [*(store / table).glob("*")]:
            if file.name not in names:
                remove(file)
    write_whole(store, MANIFEST, msgspec.json.encode(order.manifest))
    remove(building)


def stored_files(folder: Place) -> list[Place]:
    """Return the files of a table."""
    return sorted([*folder.glob(f"*{PARQUET}")], key=str)


def _rename(place: Place, target: Place) -> None:
    place.rename(target)  # type: ignore[arg-type] # both are of one kind
