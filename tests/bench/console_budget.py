"""What the console costs under load, on a real terminal driver: run ``python tests/bench/console_budget.py``.

For each of some settings (size of the terminal, members, events a second) the console runs on a pty of its own, in a process of
its own. Prints one JSON object: CPU time per wall second without and of the making of the load, the time from a key to its paint,
from the start of the process to the first paint, the bytes painted a second, and the resident memory. ``--only`` picks one
setting, ``--view`` another view, ``--hour`` adds an hour of reference load as fast as it goes, for the memory after it,
``--check`` exits with 1 over budget. ``--against TREE`` measures the console of another work tree by turns with this one,
``--repeat`` times: on a machine that has other work only what was measured side by side can be compared.
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import json
import os
import pty
import random
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SAME_ROW = rb"(?:(?!\x1b\[\d+;\d+H).){0,160}?"
"""Output that does not move to another place of the screen."""
CURSOR = re.compile(
    rb"\x1b\[(?:[5-9]|1\d);1H(?:(?!\x1b\[\d+;\d+H).){0,160}?" + "▸".encode() + SAME_ROW + rb"(m\d+)\b", re.S
)
"""The row under the cursor of the pane at the upper left, by the label of its member."""
HEADER_MARK = re.compile(b"members ")
LONGEST_MARK = 400
SETTLE_SECONDS = 3.0
STARTS = 5
"""Starts that the time to the first paint is the median of."""
HOUR_SECONDS = 3_600
MINUTE_US = 60_000_000
REPORT_SECONDS = 0.5
TIMEOUT_SECONDS = 30.0


class Setting(NamedTuple):
    width: int
    height: int
    members: int
    events_a_second: int
    source: str
    """`live` clusters are judged while they run; `remote` ones are not."""

    @property
    def name(self) -> str:
        return f"{self.width}x{self.height} {self.members} members {self.events_a_second}/s {self.source}"


class Budget(NamedTuple):
    cpu_percent: float
    key_ms_p50: float = 4
    key_ms_p95: float = 25


SETTINGS: dict[Setting, Budget] = {
    Setting(160, 50, 100, 500, "live"): Budget(6),
    Setting(160, 50, 100, 500, "remote"): Budget(6),
    Setting(300, 80, 100, 500, "remote"): Budget(8),
    Setting(160, 50, 1_000, 500, "remote"): Budget(7),
    Setting(300, 80, 1_000, 500, "remote"): Budget(9),
    Setting(160, 50, 100, 5_000, "remote"): Budget(7),
    Setting(300, 80, 1_000, 5_000, "remote"): Budget(10),
}
"""With their budgets: keys have to be as quick in a storm."""

FIRST_PAINT = {"first_paint_ms": 450, "first_paint_cpu_ms": 300}
RESIDENT_MB = 120


class LoadedCluster:
    """Makes, at each drain, the records that came due since the last one. `speed` lets its clock run faster than the real one.

    Of ten events four are lists and suspicions, far more than in a cluster that is well, so that there is something to paint.
    With `seldom_lists` each member has a new list only once a minute, which is still often: they are what is kept of a run.
    """

    name, writable = "bench", True

    def __init__(
        self,
        setting: Setting,
        report: Path,
        *,
        speed: float = 1.0,
        seconds: float = float("inf"),
        seldom_lists: bool = False,
    ) -> None:
        from quarterdeck.backend.core.address import Address
        from quarterdeck.backend.core.events import Record
        from quarterdeck.backend.core.membership import events
        from quarterdeck.backend.core.membership.views.identity import Member

        self.source = setting.source
        self.labels: Sequence[str] = [f"m{place}" for place in range(setting.members)]
        self.made = 0
        self.making_seconds = 0.0
        """CPU time that went into making records."""
        self._rate, self._speed, self._end_us = setting.events_a_second, speed, seconds * 1e6
        self._events, self._record = events, Record
        self._addresses = [Address(f"10.0.{place // 250}.{place % 250}:5701") for place in range(setting.members)]
        self._list = tuple(Member(address, f"life-{place}", place) for place, address in enumerate(self._addresses))
        self._seq = [0] * setting.members
        self._begun = time.monotonic()
        self._versions = [2] * setting.members
        self._seldom_lists = seldom_lists
        self._report, self._reported = report, 0.0
        master = self._addresses[0]
        alone = events.ListInstalled(1, "lineage", master, self._list[:1], master, "unknown", "first list")
        self._backlog = [
            *(self._make(place, events.MemberStarted(one, False, ())) for place, one in enumerate(self._addresses)),
            self._make(0, alone),
            *(self._list_at(place) for place in range(setting.members)),
        ]

    def now_us(self) -> int:
        return int(min((time.monotonic() - self._begun) * 1e6 * self._speed, self._end_us))

    @property
    def over(self) -> bool:
        return self.now_us() >= self._end_us

    def drain(self) -> list[object]:
        begun = time.process_time()
        made, self._backlog = self._backlog, []
        due = self.now_us() * self._rate // 1_000_000
        while self.made < due:
            made.append(self._next())
            self.made += 1
        self.making_seconds += time.process_time() - begun
        if time.monotonic() - self._reported >= REPORT_SECONDS:
            self._reported = time.monotonic()
            self._write_report()
        return made

    def _write_report(self) -> None:
        written = self._report.with_suffix(".new")
        written.write_text(json.dumps({"making_seconds": self.making_seconds, "made": self.made, "over": self.over}))
        written.replace(self._report)

    def execute(self, command: object) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def close(self) -> None: ...

    def _next(self) -> object:
        """Of ten events six are only told, two are lists, and two are about suspicions."""
        place, kind = self.made * 7 % len(self.labels), self.made % 10
        suspect = (place + 1) % len(self.labels)
        if kind < 6 or (kind < 8 and self._seldom_lists and self._versions[place] - 2 >= self.now_us() // MINUTE_US):
            return self._make(place, self._events.ListRejected(self.made, self._addresses[0], "an older list"))
        if kind < 8:
            self._versions[place] += 1
            return self._list_at(place)
        about = (self._addresses[suspect], f"life-{suspect}")
        if kind == 8:
            return self._make(place, self._events.SuspicionRaised(*about, "no heartbeat for 4 s"))
        place = (self.made - 1) * 7 % len(self.labels)
        suspect = (place + 1) % len(self.labels)
        return self._make(
            place, self._events.SuspicionCleared(self._addresses[suspect], f"life-{suspect}", "it was heard again")
        )

    def _list_at(self, place: int) -> object:
        master = self._addresses[0]
        version = self._versions[place]
        return self._make(
            place,
            self._events.ListInstalled(version, "lineage", master, self._list, master, "unknown", "load of the bench"),
        )

    def _make(self, place: int, event: object) -> object:
        self._seq[place] += 1
        now = self.now_us()
        return self._record("bench", self.labels[place], f"life-{place}", self._seq[place], now, now, event)  # type: ignore[arg-type]


def show_console(setting: Setting, report: Path, *, hour: bool) -> None:
    """The measured process: the console on whatever terminal it was given. Writes down what only it can know."""
    from quarterdeck.app.run import run_console

    gc.disable()  # as the command line does, until the console is on the screen
    # An hour at the rate at which a console takes records in at most, so that it has some time left to paint.
    speed = 20_000 / setting.events_a_second if hour else 1.0
    cluster = LoadedCluster(
        setting, report, speed=speed, seconds=HOUR_SECONDS if hour else float("inf"), seldom_lists=hour
    )
    run_console(cluster)  # type: ignore[arg-type]


class Terminal:
    """A console on a pty."""

    def __init__(self, arguments: Sequence[str], width: int, height: int, tree: Path = ROOT) -> None:
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(tree)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # every start but the first finds modules compiled
        begun = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=follower, stdout=follower, stderr=follower, env=environment, start_new_session=True, cwd=tree,
        )  # fmt: skip
        os.close(follower)
        self.first_paint_seconds = self.read_until(HEADER_MARK, TIMEOUT_SECONDS) - begun
        self.first_paint_cpu_seconds = self.cpu_seconds

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.leader)

    def press(self, keys: bytes) -> None:
        os.write(self.leader, keys)

    def read_until(self, mark: re.Pattern[bytes], timeout_seconds: float) -> float:
        """When `mark` stood in the output, on the monotonic clock."""
        return self.read_change(mark, timeout_seconds, None)[0]

    def read_change(
        self, mark: re.Pattern[bytes], timeout_seconds: float, former: bytes | None
    ) -> tuple[float, bytes | None]:
        """When `mark` stood in the output with another first group than `former`, on the monotonic clock, and that group."""
        seen, end = b"", time.monotonic() + timeout_seconds
        while time.monotonic() < end:
            if select.select([self.leader], [], [], 0.5)[0]:
                seen = seen[-LONGEST_MARK:] + os.read(self.leader, 65_536)
                for found in mark.finditer(seen):
                    named = found[1] if mark.groups else None
                    if former is None or named != former:
                        return time.monotonic(), named
        raise SystemExit(f"no {mark.pattern!r} within {timeout_seconds:g} s; the last output: {seen[-300:]!r}")

    def swallow(self, seconds: float) -> int:
        size, end = 0, time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.leader], [], [], left)[0]:
                size += len(os.read(self.leader, 65_536))
        return size

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_mb(self) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1_000  # type: ignore[index]

    def told(self, report: Path) -> dict[str, float]:
        """What the console wrote down last; waits for the first time."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while not report.stat().st_size:
            if time.monotonic() > end:
                raise SystemExit(f"the console reports nothing within {TIMEOUT_SECONDS:g} s")
            self.swallow(REPORT_SECONDS)
        return dict(json.loads(report.read_text()))


def loaded(setting: Setting, report: Path, *, hour: bool = False, tree: Path = ROOT) -> Terminal:
    """A console under the load of `setting`, which writes into `report` what the load itself costs."""
    arguments = [__file__, "--show", json.dumps(setting), "--report", str(report), *(["--hour"] * hour)]
    return Terminal(arguments, setting.width, setting.height, tree)


def measure(setting: Setting, seconds: float, view: str, tree: Path = ROOT) -> dict[str, object]:
    """CPU, latency and memory; in another view than the first one no latency, as it may have no such rows."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        terminal = loaded(setting, Path(report.name), tree=tree)
        try:
            terminal.press(view.encode())
            terminal.swallow(SETTLE_SECONDS)
            making = terminal.told(Path(report.name))["making_seconds"]
            cpu, wall = terminal.cpu_seconds, time.monotonic()
            latencies, painted = press_keys(terminal, seconds) if not view else ([], terminal.swallow(seconds))
            cpu, wall = terminal.cpu_seconds - cpu, time.monotonic() - wall
            making = terminal.told(Path(report.name))["making_seconds"] - making
            resident = terminal.resident_mb
        finally:
            terminal.close()
    found: dict[str, object] = {
        "setting": setting.name,
        "cpu_percent": round(100 * (cpu - making) / wall, 1),
        "load_percent": round(100 * making / wall, 1),
        "kilobytes_per_second": round(painted / wall / 1000, 1),
        "resident_mb": round(resident, 1),
    }
    if latencies:
        ranked = sorted(latencies)
        found |= {
            "key_ms_p50": round(1000 * statistics.median(ranked), 1),
            "key_ms_p95": round(1000 * ranked[int(len(ranked) * 0.95)], 1),
            "keys": len(ranked),
        }
    return found


def press_keys(
    terminal: Terminal,
    seconds: float,
    cursor: re.Pattern[bytes] = CURSOR,
) -> tuple[list[float], int]:
    """Keys at random moments; the cursor goes to and fro between the first two rows, of which `cursor` has the names."""
    draw = random.Random(1)
    latencies: list[float] = []
    painted = 0
    terminal.press(b"g")
    terminal.swallow(1.0)
    end, down, at = time.monotonic() + seconds, True, None
    while time.monotonic() < end:
        painted += terminal.swallow(0.15 + draw.random() * 0.1)
        pressed = time.monotonic()
        # The row that the cursor left may be repainted, but without its mark.
        terminal.press(b"\x1b[B" if down else b"g")
        painted_at, at = terminal.read_change(cursor, 5.0, at)
        latencies.append(painted_at - pressed)
        down = not down
    return latencies, painted


def first_paint(setting: Setting, tree: Path = ROOT) -> dict[str, float]:
    """The medians of some starts of `quarterdeck console` on five new members: what they took, and how much of a processor."""
    walls, cpus = [], []
    for _ in range(1 + STARTS):
        terminal = Terminal(["-m", "quarterdeck", "console", "--no-journal"], setting.width, setting.height, tree)
        walls.append(terminal.first_paint_seconds)
        cpus.append(terminal.first_paint_cpu_seconds)
        terminal.close()
    return {
        "first_paint_ms": round(1000 * statistics.median(walls[1:])),
        "first_paint_cpu_ms": round(1000 * statistics.median(cpus[1:])),
    }


def resident_after_an_hour(setting: Setting) -> dict[str, object]:
    """Memory when an hour of the load has gone through."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        terminal = loaded(setting, Path(report.name), hour=True)
        try:
            begun = terminal.resident_mb
            while not terminal.told(Path(report.name))["over"]:
                terminal.swallow(1.0)
            terminal.swallow(SETTLE_SECONDS)
            return {
                "setting": setting.name,
                "events": terminal.told(Path(report.name))["made"],
                "resident_mb_before": round(begun, 1),
                "resident_mb": round(terminal.resident_mb, 1),
                "cpu_seconds": round(terminal.cpu_seconds, 1),
            }
        finally:
            terminal.close()


def over_budget(found: dict[str, object], budget: Budget) -> list[str]:
    """What is above its budget, in words."""
    return [
        f"{found['setting']}: {name} {found[name]} > {limit:g}"
        for name, limit in budget._asdict().items()
        if name in found and float(str(found[name])) > limit
    ]


def compare(settings: Sequence[Setting], chosen: argparse.Namespace) -> None:
    """Print a line for each turn of each tree, with the load at that moment."""
    trees = (ROOT, chosen.against.resolve())
    for setting in settings:
        for tree in trees * chosen.repeat:
            run = measure(setting, chosen.seconds, chosen.view, tree)
            print(json.dumps({"tree": tree.name, "load": round(os.getloadavg()[0], 1), **run}), flush=True)
    for tree in trees * chosen.repeat * (chosen.only is None):
        run = first_paint(settings[0], tree)
        print(json.dumps({"tree": tree.name, "load": round(os.getloadavg()[0], 1), **run}), flush=True)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--show", help="be the measured process")
    arguments.add_argument("--report", type=Path)
    arguments.add_argument("--seconds", type=float, default=8.0)
    arguments.add_argument("--only", type=int, help="the number of one setting, from 0")
    arguments.add_argument("--view", default="", help="the key of a view to open first")
    arguments.add_argument("--against", type=Path, help="another work tree to measure by turns with this one")
    arguments.add_argument("--repeat", type=int, default=2)
    arguments.add_argument("--hour", action="store_true", help="also an hour of reference load")
    arguments.add_argument("--check", action="store_true", help="exit with 1 over budget")
    chosen = arguments.parse_args()
    if chosen.show:
        show_console(Setting(*json.loads(chosen.show)), chosen.report, hour=chosen.hour)
        return 0
    settings = list(SETTINGS) if chosen.only is None else [list(SETTINGS)[chosen.only]]
    if chosen.against is not None:
        compare(settings, chosen)
        return 0
    runs = [measure(setting, chosen.seconds, chosen.view) for setting in settings]
    too_much = [
        text for setting, run in zip(settings, runs, strict=True) for text in over_budget(run, SETTINGS[setting])
    ]
    found: dict[str, object] = {"load_average": round(os.getloadavg()[0], 1), "runs": runs}
    if chosen.only is None:
        found |= first_paint(settings[0])
        too_much += [
            f"{name} {found[name]} > {most}" for name, most in FIRST_PAINT.items() if float(str(found[name])) > most
        ]
    if chosen.hour:
        found["after_an_hour"] = hour = resident_after_an_hour(settings[0])
        if float(str(hour["resident_mb"])) > RESIDENT_MB:
            too_much.append(f"memory after an hour {hour['resident_mb']} MB > {RESIDENT_MB}")
    print(json.dumps({**found, "over_budget": too_much}))
    return bool(too_much) if chosen.check else 0


if __name__ == "__main__":
    sys.exit(main())
