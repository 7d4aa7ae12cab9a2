"""From a key to its paint while 960 migrations run: run ``python -m tests.bench.key_latency``; prints one JSON object.

A simulated cluster of five loses a member and gets it back, and its records reach the console when they happened, on a pty.
In each view the cursor goes up and down. Told by view: the CPU time of the console between a key and the end of the next
paint, the wall time of that, and how long single callbacks held the event loop, in CPU time, the longest last. CPU times are
what counts on a machine that has other work too. ``--check`` exits with 1 over budget.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from quarterdeck.app.console import Console
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions.events import MigrationDecided
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.simulation.simulated_driver import simulate
from tests.app.fakes.fake_cluster import FakeCluster
from tests.bench.console_budget import Terminal
from tests.picture.played_scenarios import MemoryJournal

STORY = """
title: Migrations
summary: A member dies and comes back, and everything moves twice.
members: [athens, byzantium, cyrene, delphi, euphesus]
settings: {hazelcast.partition.count: 1200, hazelcast.partition.migration.interval: 0.012}
steps:
  - expect: {within: 20s, one-cluster: true, version-at-least: 5}
  - do: {arrange: athens}
  - expect: {within: 60s, safe: true}
  - do: {kill: euphesus}
  - expect: {within: 120s, safe: true}
  - do: {start: euphesus}
  - do: {wait: 5s}
  - expect: {within: 120s, safe: true, balanced: true}
"""
VIEWS = {"overview": "", "members": "2", "partitions": "4", "migrations": "5", "events": "8"}
"""With the keys that open them."""

SIZE = (160, 50)
SECONDS = 11.0
"""Of the twelve in which migrations run."""
KEY_MS_P50, KEY_MS_P95 = 5, 30


class MigratingCluster(FakeCluster):
    """Hands out each record when its time has come."""

    def __init__(self) -> None:
        journal = MemoryJournal()
        outcome = simulate(read_scenario(STORY, "migrations"), seed=1, journal=journal, run="migrations")
        assert outcome.passed, outcome
        self._records = journal.records
        super().__init__(list(dict.fromkeys(record.member for record in self._records)))
        self._begun = 0.0
        self._place = 0

    def now_us(self) -> int:
        return int((time.monotonic() - self._begun) * 1e6) if self._begun else 0

    def drain(self) -> list[Record]:
        self._begun = self._begun or time.monotonic()
        first, now_us = self._place, self.now_us()
        while self._place < len(self._records) and self._records[self._place].at <= now_us:
            self._place += 1
        return list(self._records[first : self._place])

    @property
    def migrated(self) -> int:
        return sum(isinstance(record.event, MigrationDecided) for record in self._records[: self._place])


class WatchedConsole(Console):
    """Writes down when a key came and when the next paint was done."""

    def __init__(self, cluster: MigratingCluster) -> None:
        super().__init__(cluster)
        self.cpu_ms: list[float] = []
        self.wall_ms: list[float] = []
        self._pressed: tuple[float, float] | None = None

    async def on_event(self, event: object) -> None:
        from textual.events import Key

        if isinstance(event, Key) and not event.is_forwarded:
            self._pressed = time.thread_time(), time.monotonic()
        await super().on_event(event)  # type: ignore[arg-type]

    def _display(self, screen: object, renderable: object) -> None:
        super()._display(screen, renderable)  # type: ignore[arg-type]
        if self._pressed is not None and renderable is not None:
            cpu, wall = self._pressed
            self.cpu_ms.append(1e3 * (time.thread_time() - cpu))
            self.wall_ms.append(1e3 * (time.monotonic() - wall))
            self._pressed = None


def show_console(report: Path) -> None:
    """The measured process."""
    cluster = MigratingCluster()
    console = WatchedConsole(cluster)
    held: list[float] = []
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        before = time.thread_time()
        run(handle)
        held.append(1e3 * (time.thread_time() - before))

    def tell() -> None:
        told = {
            "cpu_ms": console.cpu_ms,
            "wall_ms": console.wall_ms,
            "held_ms": sorted(held)[-20:],
            "migrated": cluster.migrated,
        }
        report.write_text(json.dumps(told))
        console.exit()

    def settle() -> None:
        gc.collect()
        gc.freeze()  # as the console does when it is on the screen
        console.call_later(begin)

    def begin() -> None:
        held.clear()
        console.cpu_ms.clear()
        console.wall_ms.clear()

    asyncio.Handle._run = timed  # type: ignore[method-assign]
    console.call_later(lambda: console.set_timer(1.0, settle))
    console.call_later(lambda: console.set_timer(SECONDS, tell))
    console.run()


def measure(view: str) -> dict[str, object]:
    """The keys of one view."""
    draw = random.Random(1)
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        terminal = Terminal([__file__, "--show", report.name], *SIZE)
        try:
            terminal.press(VIEWS[view].encode())
            painted, begun, down = terminal.swallow(1.0), time.monotonic(), True
            while not Path(report.name).stat().st_size and time.monotonic() - begun < 3 * SECONDS:
                terminal.press(b"\x1b[B" if down else b"\x1b[A")
                down = not down
                painted += terminal.swallow(0.1 + draw.random() * 0.1)
            told = json.loads(Path(report.name).read_text())
        finally:
            terminal.close()
    cpu, wall = sorted(told["cpu_ms"]), sorted(told["wall_ms"])
    return {
        "keys": len(cpu),
        "cpu_ms_p50": round(statistics.median(cpu), 1),
        "cpu_ms_p95": round(cpu[int(len(cpu) * 0.95)], 1),
        "wall_ms_p50": round(statistics.median(wall), 1),
        "wall_ms_p95": round(wall[int(len(wall) * 0.95)], 1),
        "held_ms_most": [round(held_ms, 1) for held_ms in told["held_ms"][-5:]],
        "migrations": told["migrated"],
        "kilobytes_per_second": round(painted / 1e3 / SECONDS, 1),
    }


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--show", type=Path, help="be the measured process")
    arguments.add_argument("--only", choices=VIEWS)
    arguments.add_argument("--check", action="store_true", help="exit with 1 over budget")
    chosen = arguments.parse_args()
    if chosen.show:
        show_console(chosen.show)
        return 0
    found = {view: measure(view) for view in VIEWS if chosen.only in (None, view)}
    print(json.dumps(found))
    over = any(
        float(str(value["cpu_ms_p50"])) > KEY_MS_P50 or float(str(value["cpu_ms_p95"])) > KEY_MS_P95
        for value in found.values()
    )
    return int(over and chosen.check)


if __name__ == "__main__":
    sys.exit(main())
