"""What the console costs under load, on a real terminal driver: run ``python tests/bench/console_load.py``.

Two hundred members, each row changing five times a second, plus a hundred further events a second, on a 160x50 pty, for some
ten seconds. Prints one JSON object: CPU time of the console process per wall second, the time from a key to its paint, and
the time from the start of the process to its first paint. The load is made inside the measured process and is part of it.
"""

from __future__ import annotations

import argparse
import fcntl
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
import termios
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

WIDTH, HEIGHT = 160, 50
MEMBERS = 200
CHANGES_A_SECOND = 5
LINES_A_SECOND = 100
HEADER_MARK = re.compile(b"observer")
SAME_ROW = rb"(?:(?!\x1b\[\d+;\d+H).){0,160}?"
"""Output that does not move to another place of the screen."""
CURSOR_ON_FIRST, CURSOR_ON_SECOND = (
    re.compile("▸".encode() + SAME_ROW + label, re.S) for label in (rb"m0\b", rb"m1\b")
)
LONGEST_MARK = 400
SETTLE_SECONDS = 2.0


class LoadedCluster:
    """Makes, at each drain, the records that came due since the last one."""

    name, source, writable = "bench", "simulated", True

    def __init__(self) -> None:
        from backend.core import events
        from backend.core.address import Address
        from backend.core.events import Record
        from backend.core.membership.identity import Member

        self.labels: Sequence[str] = [f"m{place}" for place in range(MEMBERS)]
        self._events, self._record = events, Record
        self._addresses = [Address(f"10.0.{place // 250}.{place % 250}:5701") for place in range(MEMBERS)]
        self._list = tuple(Member(address, f"life-{place}", place) for place, address in enumerate(self._addresses))
        self._seq = [0] * MEMBERS
        self._begun = time.monotonic()
        self._changes = self._lines = 0
        self._backlog = [
            self._make(place, events.MemberStarted(address, False, ())) for place, address in enumerate(self._addresses)
        ]

    def now_us(self) -> int:
        return int((time.monotonic() - self._begun) * 1_000_000)

    def drain(self) -> list[object]:
        made, self._backlog = self._backlog, []
        elapsed = time.monotonic() - self._begun
        while self._changes < elapsed * MEMBERS * CHANGES_A_SECOND:
            made.append(self._change(self._changes))
            self._changes += 1
        while self._lines < elapsed * LINES_A_SECOND:
            place = self._lines * 7 % MEMBERS
            made.append(self._make(place, self._events.ListRejected(self._lines, self._addresses[0], "an older list")))
            self._lines += 1
        return made

    def execute(self, command: object) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def close(self) -> None: ...

    def _change(self, number: int) -> object:
        place, master = number % MEMBERS, self._addresses[0]
        version = number // MEMBERS + 1
        return self._make(
            place, self._events.ListInstalled(version, "lineage", master, self._list, master, "load of the bench")
        )

    def _make(self, place: int, event: object) -> object:
        self._seq[place] += 1
        now = self.now_us()
        return self._record("bench", self.labels[place], f"life-{place}", self._seq[place], now, now, event)  # type: ignore[arg-type]


def show_console() -> None:
    """The measured process: the console on whatever terminal it was given."""
    from app.console import run_console

    run_console(LoadedCluster())  # type: ignore[arg-type]


def measure(seconds: float) -> dict[str, float]:
    """Run the console on a pty of its own and press the arrow keys at random moments."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    begun = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, __file__, "--show"],
        stdin=follower, stdout=follower, stderr=follower, env=environment, start_new_session=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    os.close(follower)
    try:
        first_paint = _read_until(leader, HEADER_MARK, 20.0) - begun
        _swallow(leader, SETTLE_SECONDS)
        cpu_before, wall_before = _cpu_seconds(child.pid), time.monotonic()
        latencies, painted = _press_keys(leader, seconds)
        cpu, wall = _cpu_seconds(child.pid) - cpu_before, time.monotonic() - wall_before
    finally:
        child.kill()
        child.wait()
        os.close(leader)
    ranked = sorted(latencies)
    return {
        "cpu_percent": round(100 * cpu / wall, 1),
        "key_to_paint_ms_p50": round(1000 * statistics.median(ranked), 1),
        "key_to_paint_ms_p95": round(1000 * ranked[int(len(ranked) * 0.95)], 1),
        "first_paint_ms": round(1000 * first_paint, 0),
        "kilobytes_per_second": round(painted / wall / 1000, 1),
        "keys": len(ranked),
    }


def _press_keys(leader: int, seconds: float) -> tuple[list[float], int]:
    draw = random.Random(1)
    latencies: list[float] = []
    painted = 0
    end, down = time.monotonic() + seconds, True
    while time.monotonic() < end:
        painted += _swallow(leader, 0.15 + draw.random() * 0.1)
        pressed = time.monotonic()
        # The cursor goes to and fro between two rows; the row that it left may be repainted, but without its mark.
        os.write(leader, b"\x1b[B" if down else b"\x1b[A")
        latencies.append(_read_until(leader, CURSOR_ON_SECOND if down else CURSOR_ON_FIRST, 5.0) - pressed)
        down = not down
    return latencies, painted


def _read_until(leader: int, mark: re.Pattern[bytes], patience_seconds: float) -> float:
    """When `mark` stood in the output, on the monotonic clock."""
    seen, end = b"", time.monotonic() + patience_seconds
    while time.monotonic() < end:
        if select.select([leader], [], [], 0.5)[0]:
            seen = seen[-LONGEST_MARK:] + os.read(leader, 65_536)
            if mark.search(seen):
                return time.monotonic()
    raise SystemExit(f"no {mark.pattern!r} within {patience_seconds:g} s")


def _swallow(leader: int, seconds: float) -> int:
    size, end = 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([leader], [], [], left)[0]:
            size += len(os.read(leader, 65_536))
    return size


def _cpu_seconds(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--show", action="store_true", help="be the measured process")
    arguments.add_argument("--seconds", type=float, default=10.0)
    chosen = arguments.parse_args()
    if chosen.show:
        show_console()
    else:
        print(json.dumps(measure(chosen.seconds)))
