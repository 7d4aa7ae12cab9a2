"""What a campaign on Spark costs over a plain loop, and what a second core gives. One JSON line on stdout."""

from __future__ import annotations

import argparse
import json
import os
import time

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
        began = time.perf_counter()
        for wave in play(session, campaign, errands):
            rows += wave
        wall = time.perf_counter() - began
        cpu = sum(row.cpu_seconds for row in rows)
        name = master.replace("[", "_").partition(",")[0]
        result |= {f"{name}_wall_s": round(wall, 2), f"{name}_cpu_s": round(cpu, 2)}
        result[f"{name}_over_plain"] = round(wall / plain_seconds, 2)
        assert digest(rows) == digest(plain)
        session.stop()
    result["load"] = [round(load_before, 1), round(os.getloadavg()[0], 1)]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
