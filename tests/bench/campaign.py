"""What a campaign on Spark costs over a plain loop, and what a second core gives. One JSON line on stdout."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from backend.pipeline.campaign.attempt import attempt
from backend.pipeline.campaign.plan import Campaign, in_order
from backend.pipeline.campaign.verdicts import VerdictRow, digest
from backend.pipeline.campaign.waves import play
from backend.pipeline.session import parallelism, start_session

MEMBERS = (3, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    seeds = parser.parse_args().seeds
    campaign = Campaign(sizes=MEMBERS)
    errands = in_order(campaign, range(1, seeds + 1))
    load_before = os.getloadavg()[0]

    began = time.perf_counter()
    plain = [attempt(campaign, errand) for errand in errands]
    plain_seconds = time.perf_counter() - began
    result: dict[str, object] = {
        "benchmark": "campaign",
        "seeds": seeds,
        "plain_wall_s": round(plain_seconds, 2),
        "plain_cpu_s": round(sum(row.cpu_seconds for row in plain), 2),
    }
    for master in ("local[1,4]", "local[2,4]"):
        session = start_session(master, profile="throughput")
        parallelism(session)
        warm = in_order(campaign, range(seeds + 1, seeds + 11))
        list(play(session, campaign, warm))  # workers have started and imported what they need
        rows: list[VerdictRow] = []
        spent, began = cpu_seconds_of_all(), time.perf_counter()
        for wave in play(session, campaign, errands):
            rows += wave
        wall, spent = time.perf_counter() - began, cpu_seconds_of_all() - spent
        seeds_cpu = sum(row.cpu_seconds for row in rows)
        name = master.replace("[", "_").partition(",")[0]
        result |= {f"{name}_wall_s": round(wall, 2), f"{name}_wall_over_plain": round(wall / plain_seconds, 2)}
        # On a busy machine only this says what Spark adds: Java, workers and driver, besides the runs themselves.
        result |= {f"{name}_cpu_s": round(spent, 2), f"{name}_cpu_over_runs": round(spent / seeds_cpu, 2)}
        assert digest(rows) == digest(plain)
        session.stop()
    result["load"] = [round(load_before, 1), round(os.getloadavg()[0], 1)]
    print(json.dumps(result))


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
