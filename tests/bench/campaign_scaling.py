"""What a campaign on Spark costs over a plain loop, and what a second core gives. One JSON line on stdout."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from quarterdeck.backend.pipeline.campaign.attempt import attempt
from quarterdeck.backend.pipeline.campaign.driver import run_waves
from quarterdeck.backend.pipeline.campaign.plan import Campaign, PlannedRun, VerdictRow, digest, in_order
from quarterdeck.backend.pipeline.spark.session import start_session
from tests.pipeline.spark.local_clusters import standalone, worker_python

MEMBERS = (3, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--standalone", action="store_true", help="also on a standalone cluster of two workers")
    options = parser.parse_args()
    campaign = Campaign(sizes=MEMBERS)
    requests = in_order(campaign, range(1, options.seeds + 1))
    load_before = os.getloadavg()[0]

    tell(f"{options.seeds} seeds in a plain loop")
    began = time.perf_counter()
    plain = [attempt(campaign, request) for request in requests]
    plain_seconds = time.perf_counter() - began
    result: dict[str, object] = {
        "benchmark": "campaign",
        "seeds": options.seeds,
        "plain_wall_s": round(plain_seconds, 2),
        "plain_cpu_s": round(sum(row.cpu_seconds for row in plain), 2),
    }
    for master in ("local[1,4]", "local[2,4]"):
        name = master.replace("[", "_").partition(",")[0]
        result |= measured(name, master, campaign, requests, plain, plain_seconds)
    if options.standalone:
        with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as folder:
            os.environ["PYSPARK_PYTHON"] = str(worker_python(Path(folder)))
            with standalone(Path(folder)) as master:
                result |= measured("standalone_2", master, campaign, requests, plain, plain_seconds)
    result["digest"] = digest(plain)
    result["load"] = [round(load_before, 1), round(os.getloadavg()[0], 1)]
    print(json.dumps(result))


def measured(
    name: str,
    master: str,
    campaign: Campaign,
    requests: Sequence[PlannedRun],
    plain: Sequence[VerdictRow],
    plain_seconds: float,
) -> dict[str, object]:
    """The planned runs once more on `master`, which must find what the plain loop found."""
    tell(f"the same on {master}, after {plain_seconds:.0f} s of the plain loop")
    session = start_session(master)
    greatest = max(request.seed for request in requests)
    warm = in_order(campaign, range(greatest + 1, greatest + 11))
    list(run_waves(session, campaign, warm))  # workers have started and imported what they need
    rows: list[VerdictRow] = []
    spent, began = cpu_seconds_of_all(), time.perf_counter()
    for wave in run_waves(session, campaign, requests):
        rows += wave
        tell(f"{len(rows)} of {len(requests)} after {time.perf_counter() - began:.0f} s")
    wall, spent = time.perf_counter() - began, cpu_seconds_of_all() - spent
    session.stop()
    if digest(rows) != digest(plain):
        raise SystemExit(f"{master} found something else than a plain loop")
    seeds_cpu = sum(row.cpu_seconds for row in rows)
    return {
        f"{name}_wall_s": round(wall, 2),
        f"{name}_wall_over_plain": round(wall / plain_seconds, 2),
        # On a busy machine only this says what Spark adds: Java, workers and driver, besides the runs themselves.
        f"{name}_cpu_s": round(spent, 2),
        f"{name}_cpu_over_runs": round(spent / seeds_cpu, 2),
    }


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cpu_seconds_of_all() -> float:
    """CPU time of this process and all that came of it: Java, Spark's workers, and their children. Linux only."""
    ticks: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        ticks[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {pid for pid, (parent, _) in ticks.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks[pid][1] for pid in ours) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
