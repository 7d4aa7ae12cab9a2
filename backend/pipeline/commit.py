"""Replaces the tables of a store: all of them, or none.

On this machine, each state of the store is a directory of its own, `.tables-…`, in which unchanged files are links to those of
the state before. `.current` points to the newest; the tables' folders and the manifest lead through it. So renaming that one
link replaces all tables at once, for readers of the folders, and whenever the process dies. The state before is
kept until the next update, for those who read it.

At addresses there are neither links nor locks; tables there are those of `tables.delta_store`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct

from quarterdeck.backend.journal.files import NoJournal, journal_files
from quarterdeck.backend.pipeline.address import Place

BUILDING = ".building-"
STATE = ".tables-"
CURRENT = ".current"
MANIFEST = "_store.json"
PARQUET = ".parquet"
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
    tables: dict[str, list[str]] = {}
    """By table, the names of its files; empty in stores of earlier versions."""


def read_manifest(store: Place, maker: str | None = PIPELINE) -> TableManifest | None:
    """Read what the store at `store` consists of. Return None when there is none.

    Raises `StoreRefused` when it cannot be read, or is that of another maker than the one named.
    """
    try:
        manifest = msgspec.json.decode((store / MANIFEST).read_bytes(), type=TableManifest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.MsgspecError as problem:
        raise StoreRefused(f"{store / MANIFEST}: {problem}; remove the directory and make the tables anew") from problem
    if maker is not None and manifest.maker != maker:
        raise StoreRefused(f"{store} holds the tables of `quarterdeck {manifest.maker}`; choose another directory")
    return manifest


def files_of(store: Path, table: str) -> list[Path]:
    """Return the files of a table of the store. Raises `StoreRefused` where one is gone: its rows would be missed silently."""
    state = (store / CURRENT).resolve() if (store / CURRENT).exists() else store  # which no update changes
    manifest = read_manifest(state, None)
    files = [store / file.relative_to(state) for file in sorted((state / table).rglob(f"*{PARQUET}"))]
    if manifest is not None and (gone := set(manifest.tables.get(table, ())) - {file.name for file in files}):
        raise StoreRefused(
            f"{store / table / min(gone)}: the file is gone; remove the directory and make the tables anew"
        )
    return files


@contextmanager
def open_for_build(store: Path, tables: Sequence[str], maker: str = PIPELINE) -> Iterator[Path]:
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
            remove(building)
            if not existed and not (store / MANIFEST).exists():
                remove(store)


@contextmanager
def locked(lock: Path, busy: Exception) -> Iterator[None]:
    """Lock out other processes of this machine. Raises `busy` if one holds the lock, which ends with its process."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            raise busy from problem
        yield


def commit(store: Path, building: Path, manifest: TableManifest, kept: Mapping[str, Sequence[str]]) -> None:
    """Make what is in `building`, table by table, and the `kept` files of each table the content of `store`."""
    for table in kept:
        (building / table).mkdir(exist_ok=True)
    for table, names_kept in kept.items():
        for name in names_kept:
            _link(store / table / name, building / table / name)
    names = {table: sorted(file.name for file in (building / table).iterdir()) for table in kept}
    content = msgspec.json.encode(msgspec.structs.replace(manifest, tables=names))
    write_whole(building, MANIFEST, msgspec.json.format(content))
    state = building.rename(store / f"{STATE}{building.name.removeprefix(BUILDING)}")
    _lead_through(store, [name for name in (*kept, MANIFEST) if not (store / name).exists()])
    draft = store / f"{BUILDING}{CURRENT}"
    draft.symlink_to(state.name)
    draft.rename(store / CURRENT)
    _lead_through(store, (*kept, MANIFEST))


def write_whole(folder: Path, name: str, content: bytes) -> None:
    """Write a file that exists whole or not at all, and that survives a kill once this returns. Raises OSError."""
    draft = folder / f"{BUILDING}{name}"
    try:
        draft.write_bytes(content)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.rename(folder / name)
    except OSError:
        remove(draft)
        raise


def remove(place: Path) -> None:
    """Remove a file, or a directory with its content, if it exists."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def check(store: Place, tables: Sequence[str], maker: str = PIPELINE) -> None:
    """Refuse what is neither a store of this maker nor free of these tables. Raises `StoreRefused`."""
    if store.exists() and not store.is_dir():
        raise StoreRefused(f"{store} is not a directory")
    is_being_built = isinstance(store, Path) and any(store.glob(f"{BUILDING}*"))
    if read_manifest(store, maker) is None and not is_being_built:
        for table in tables:
            if (store / table).exists():
                raise StoreRefused(f"{store / table} exists and is no table of this pipeline; choose another directory")
        if isinstance(store, Path) and store.is_dir():
            with suppress(NoJournal):
                journal_files(store)
                raise StoreRefused(f"{store} holds a journal, which tables would hide; choose another directory")


def finish(store: Path) -> None:
    """Discard what an interrupted writer has left, and states of the store before the last."""
    current = (store / CURRENT).resolve()
    if current.is_dir():
        _lead_through(store, [place.name for place in current.iterdir()])
    for link in store.iterdir():
        if link.is_symlink() and not link.exists():  # of a table that has another name now
            link.unlink()
    for leftover in [*store.glob(f"{BUILDING}*"), *store.glob(f"{STATE}*")]:
        if leftover.name != current.name:
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
