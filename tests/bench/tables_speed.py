"""What the tables of a journal cost, and an update after 1 % more of it; one line of JSON.

The journal is that of `audit_speed`: simulated runs under many names. Each command runs in a process of its own, after one over a
single run that warms the caches of files. In ``--rounds`` the measurements are repeated; the least of each counts:
``python tests/bench/tables_speed.py --events 1000000 --rounds 3``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

EVENTS = 50_000
"""`make bench` must not take long; the numbers in the documentation are of a million."""
MORE = 0.01
ROOT = Path(__file__).parents[2]


def measured(journal: Path, out: Path) -> dict[str, float]:
    """Make or update the tables in a process of its own."""
    began = time.perf_counter()
    pid = os.posix_spawn(
        sys.executable,
        [
            sys.executable,
            "-m",
            "quarterdeck",
            "pipeline",
            "tables",
            str(journal),
            "--out",
            str(out),
            "--engine",
            "here",
        ],
        {**os.environ, "PYTHONPATH": str(ROOT)},
        file_actions=[(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)],
    )
    _, status, used = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"the command failed: {os.waitstatus_to_exitcode(status)}")
    seconds = time.perf_counter() - began
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(_peak_bytes(used) / 1e6),
    }


def _peak_bytes(used: resource.struct_rusage) -> int:
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def least(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The least of each measurement."""
    return {name: min(figures[name] for figures in rounds) for name in rounds[0]}


def bench(events: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Make a journal, its tables, and those of 1 % more, as new runs."""
    from tests.bench.audit_speed import make_journal

    made = make_journal(folder / "journal", events)
    runs = sorted((folder / "journal").iterdir())
    late = runs[-max(1, round(len(runs) * MORE)) :]
    measured(runs[0], folder / "warm")
    first, second = [], []
    for _ in range(rounds):
        for run in late:
            run.rename(folder / run.name)
        first.append(measured(folder / "journal", folder / "tables"))
        files = [file for file in (folder / "tables").rglob("*") if file.is_file() and not file.is_symlink()]
        for run in late:
            (folder / run.name).rename(run)
        second.append(measured(folder / "journal", folder / "tables"))
        sizes = sum(file.stat().st_size for file in files if file.exists())
        shutil.rmtree(folder / "tables")
    return {
        "bench": "tables_speed",
        "events": made,
        "mb": round(sum(file.stat().st_size for file in (folder / "journal").rglob("*.jsonl")) / 1e6),
        "first": least(first),
        "after_1_percent_more": least(second),
        "files": len(files),
        "tables_mb": round(sizes / 1e6, 1),
        "load_average": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as temporary:
        print(json.dumps(bench(arguments.events, arguments.rounds, Path(temporary))))
