"""Finishes the files that a dead process left open, without losing a whole line or touching the files of living writers.

A writer holds a lock on its open file. The lock ends with its process, in whatever way, so a file whose lock is free has no
writer any more.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from msgspec import Struct

from quarterdeck.backend.journal import files


class Recovered(Struct, frozen=True):
    """What became of one leftover file. `sealed` is its finished form; None when it held no readable record."""

    file: Path
    sealed: Path | None
    torn_bytes: int
    """Bytes after the last whole line, cut off."""
    reason: str


def recover_open_files(root: Path) -> tuple[Recovered, ...]:
    """Finish every open file under `root` that no living process holds. Raises OSError when the disk refuses."""
    recovered = [_recover(root, path) for path in files.open_files(root / files.OPEN_DIRECTORY)]
    return tuple(report for report in recovered if report is not None)


def lock_if_free(descriptor: int) -> bool:
    """Lock the file unless a living process has the lock. Return whether that succeeded."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_same_file(descriptor: int, path: Path) -> bool:
    """Return whether `path` still leads to the file that `descriptor` has open."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def seal(descriptor: int, path: Path, directory: Path) -> Path:
    """Give the open file at `path` its finished name in `directory`, durably. Never replaces a file."""
    flush_to_disk(descriptor)
    directory.mkdir(parents=True, exist_ok=True)
    name = files.sealed_name(path.name)
    sealed, copy = directory / name, 1
    while sealed.exists():
        copy += 1
        sealed = directory / f"{name.removesuffix(files.SEALED_SUFFIX)}-{copy}{files.SEALED_SUFFIX}"
    path.rename(sealed)
    flush_directory(directory)
    return sealed


def flush_to_disk(descriptor: int) -> None:
    """Call fdatasync, or fsync where the system lacks it."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def flush_directory(directory: Path) -> None:
    """Make a rename into `directory` survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _recover(root: Path, path: Path) -> Recovered | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    except FileNotFoundError:
        return None
    try:
        if not lock_if_free(descriptor) or not is_same_file(descriptor, path):
            return None
        torn_bytes = _cut_torn_line(descriptor, path.read_bytes())
        run = files.run_of_file(path)
        if run is not None:
            sealed = seal(descriptor, path, files.run_directory(root, run))
            reason = f"finished as {sealed.name}" + (f", {torn_bytes} torn bytes cut off" if torn_bytes else "")
            return Recovered(path, sealed, torn_bytes, reason)
        if os.fstat(descriptor).st_size:
            return Recovered(path, None, torn_bytes, "left as it is: none of its lines is a record")
        path.unlink()
        return Recovered(path, None, torn_bytes, "removed: it held no whole line")
    finally:
        os.close(descriptor)


def _cut_torn_line(descriptor: int, content: bytes) -> int:
    """Cut what follows the last whole line and return its length; a record that only lacks its newline gets one."""
    tail = content[content.rfind(b"\n") + 1 :]
    if not tail:
        return 0
    if files.as_record(tail) is not None:
        os.write(descriptor, b"\n")
        return 0
    os.ftruncate(descriptor, len(content) - len(tail))
    return len(tail)
