"""Temporary folders that go with their process: what a killed one leaves is removed by the next one."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "quarterdeck-pipeline-"
LOCK = ".lock"
"""Each folder has a file of this name, which its process holds locked."""


@contextmanager
def staging_folder(parent: Path | None = None) -> Iterator[Path]:
    """Make a folder that is removed after the block, and remove those of processes that were killed. Raises OSError.

    It is in `parent`, hidden, or else in the machine's folder for temporary files.
    """
    prefix = PREFIX if parent is None else f".{PREFIX}"
    _remove_leftovers(parent or Path(tempfile.gettempdir()), prefix)
    with (
        tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True) as name,
        (Path(name) / LOCK).open("w") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name)


def _remove_leftovers(parent: Path, prefix: str) -> None:
    for lock in parent.glob(f"{prefix}*/{LOCK}"):
        try:
            with lock.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # its process lives, it is another user's, or it has just gone
            continue
        shutil.rmtree(lock.parent, ignore_errors=True)
