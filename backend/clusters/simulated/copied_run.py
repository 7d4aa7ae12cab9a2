"""A copy of a cluster on disk: a folder with the snapshot, and beside it the journal of what had happened before."""

from __future__ import annotations

from pathlib import Path

import msgspec

from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.snapshots import BadSnapshot

SNAPSHOT_FILE = "cluster.snapshot"
FORM = 1


class BadCopy(ValueError):
    """A folder that holds no copy that can be gone on with. The message names the file and what is wrong."""


class _Copy(msgspec.Struct, frozen=True):
    form: int
    snapshot: ClusterSnapshot


_DECODER = msgspec.msgpack.Decoder(_Copy)


def is_copy(folder: Path) -> bool:
    """Whether there is a snapshot in this folder."""
    return (folder / SNAPSHOT_FILE).is_file()


def write_copy(folder: Path, snapshot: ClusterSnapshot) -> None:
    """Put the snapshot into the folder. Raises OSError."""
    (folder / SNAPSHOT_FILE).write_bytes(msgspec.msgpack.encode(_Copy(FORM, snapshot)))


def read_copy(folder: Path) -> ClusterSnapshot:
    """Return the snapshot in the folder; every member in it can be gone on with.

    Raises:
        BadCopy: The snapshot cannot be read.
        OSError: The file cannot be read.
    """
    file = folder / SNAPSHOT_FILE
    try:
        snapshot = _DECODER.decode(file.read_bytes()).snapshot
        for member in snapshot.members:
            MemberMachine.restored(member.state, member.configuration)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, BadSnapshot) as problem:
        raise BadCopy(f"{file}: is not a snapshot of this version: {problem}") from problem
    if not snapshot.members:
        raise BadCopy(f"{file}: no member has told its state")
    return snapshot
