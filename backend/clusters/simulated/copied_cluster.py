"""A simulated copy of a running cluster: it goes on from what the members reported at one moment, to try things in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from quarterdeck.backend.clusters.cluster import Cluster, Source
from quarterdeck.backend.clusters.simulated.simulated_cluster import SimulatedCluster, monotonic_us
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.snapshots import BadSnapshot
from quarterdeck.backend.picture.text.formatting import counted, one_line
from quarterdeck.backend.scenarios.format.scenario import Scenario

SNAPSHOT_FILE = "cluster.snapshot"
FORM = 1


class BadCopy(ValueError):
    """A folder without a usable copy. The message names the file and the mistake."""


class _Copy(msgspec.Struct, frozen=True):
    form: int
    snapshot: ClusterSnapshot


_DECODER = msgspec.msgpack.Decoder(_Copy)


def is_copy(folder: Path) -> bool:
    """Return whether this folder holds a snapshot."""
    return (folder / SNAPSHOT_FILE).is_file()


def write_copy(folder: Path, snapshot: ClusterSnapshot) -> None:
    """Put the snapshot into the folder. Raises OSError."""
    (folder / SNAPSHOT_FILE).write_bytes(msgspec.msgpack.encode(_Copy(FORM, snapshot)))


def read_copy(folder: Path) -> ClusterSnapshot:
    """Return the snapshot in the folder; every member in it can be gone on with.

    Raises `BadCopy` when the snapshot cannot be read, `OSError` when the file cannot.
    """
    file = folder / SNAPSHOT_FILE
    try:
        snapshot = _DECODER.decode(file.read_bytes()).snapshot
        for member in snapshot.members:
            MemberMachine.restored(member.state, member.configuration)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, BadSnapshot) as problem:
        raise BadCopy(f"{file}: is not a snapshot of this version: {problem}") from problem
    if not snapshot.members:
        raise BadCopy(f"{file}: no member has reported its state")
    return snapshot


ASSUMED = "messages take 0.2 to 1 ms, calls of clients and connections are not in the copy"


class CopiedCluster(SimulatedCluster):
    """The cluster of `snapshot`, in simulated time under `seed`. `past`, if given, first gives the earlier records."""

    source: Source = "copy"

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        *,
        seed: int = 1,
        past: Cluster | None = None,
        name: str = "",
        clock_us: Callable[[], int] = monotonic_us,
    ) -> None:
        labels = tuple(configuration.label for configuration in snapshot.configurations)
        nothing = Scenario.model_construct(title=f"a copy of {snapshot.name}", members=labels, steps=())
        super().__init__(nothing, seed, name=name or f"{snapshot.name}-copy", begin=snapshot, clock_us=clock_us)
        self.snapshot_taken = snapshot
        self._past = past
        self._failure = ""
        """Why the copy cannot go on; empty while it can."""

    def drain(self) -> list[Record]:
        """Return the next records, first those of the past; time goes on when these are over."""
        if self._past is not None:
            if records := self._past.drain():
                return [record for record in records if record.at <= self.snapshot_taken.at_us]
            self._past.close()
            self._past = None
        if self._failure:
            return []
        try:
            return super().drain()
        except Exception as failure:  # noqa: BLE001 - a state that came from elsewhere may be one that cannot be
            self._failure = f"✕ the copy ends here, for a member in it failed: {failure!r}"
            return []

    def close(self) -> None:
        if self._past is not None:
            self._past.close()
        super().close()

    def notes(self) -> Sequence[str]:
        """Return the course of its time, the origin of the copy, and its assumptions."""
        return [*filter(None, [self._failure]), *super().notes()[:1], *copy_notes(self.snapshot_taken)]


def copy_notes(snapshot: ClusterSnapshot) -> Sequence[str]:
    """Return the origin of a copy, and its assumptions; one line each."""
    when, reporters = f"{snapshot.at_us / SECOND_US:.3f} s", counted(len(snapshot.members), "member")
    notes = [f"a copy of {one_line(snapshot.name)} as it was at {when}, of {reporters} that reported all"]
    notes += [
        f"{one_line(member.configuration.label)} reported nothing ({one_line(member.why)}): it is silent here until it is killed"
        for member in snapshot.untold
    ]
    notes.append(f"assumed: {ASSUMED}")
    return notes
