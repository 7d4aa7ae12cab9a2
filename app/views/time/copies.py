"""Simulated copies of running clusters, each in a tab beside the real one."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from functools import partial

from quarterdeck.app.cluster_opener import OpenedCluster
from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.simulated.copied_cluster import CopiedCluster
from quarterdeck.backend.clusters.snapshot_source import SnapshotSource
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands.commands import Command, CommandRefused
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.text.formatting import one_line

SETTLING_SECONDS = 0.4
"""How long after the snapshot the records of that moment may still be on their way to the console."""


class Copies:
    """Takes snapshots of clusters, and opens copies that go on from them. The past comes along from the session."""

    def __init__(self, console: ConsoleInterface) -> None:
        self._console = console

    def take(self, session: ConsoleSession, cluster: SnapshotSource, command: Command | None) -> None:
        """Open a copy of `cluster` as it is now, and do `command` in it. Whoever watches never waits for the members."""
        self._console.show_message("the members are asked what they know …")
        asked = cluster.snapshot()
        asked.add_done_callback(lambda told: self._console.call_later(self._told, session, command, told) and None)

    def _told(self, session: ConsoleSession, command: Command | None, told: Future[ClusterSnapshot]) -> None:
        try:
            snapshot = told.result()
        except (CommandRefused, CancelledError) as refusal:
            self._console.show_message(f"no copy: {refusal}", error=True)
            return
        self._console.set_timer(SETTLING_SECONDS, partial(self._open, session, command, snapshot))

    def _open(self, session: ConsoleSession, command: Command | None, snapshot: ClusterSnapshot) -> None:
        copy = CopiedCluster(snapshot, name=f"{snapshot.name}-copy-{snapshot.at_us / SECOND_US:.1f}s")
        starting = copy.execute(command) if command is not None else None
        self._console.open_tab(OpenedCluster(copy, starting), copy.name, past=session.tape.copy_to(snapshot.at_us))
        _, *told = copy.notes()
        self._console.show_message(one_line("; ".join(["esc goes back to the real one", *told])))
