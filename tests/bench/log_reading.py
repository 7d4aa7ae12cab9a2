"""How long it takes to open members' logs of some size, and with how much memory; one line of JSON.

Five members log for days: what a healthy member says again and again, an application beside it with its stack traces, and now
and then a recorded split and merge: ``python tests/bench/log_reading.py --megabytes 1000``. Everything is read in
one process.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from quarterdeck.backend.judgement.observations.run_reader import RecordsRead, RunRead, read_run

RECORDING = Path(__file__).parents[1] / "hazelcast" / "logs" / "data" / "split-and-merge-log4j2"
STAMP = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})", re.MULTILINE)
PREFIX = "{at} [ INFO] [hz.focused.HealthMonitor] [c.h.i.d.HealthMonitor]: [{member}]:5701 [dev] [5.3.8] "
HEALTH = PREFIX + (
    "processors=4, physical.memory.total=15.5G, physical.memory.free=1.2G, heap.memory.used=1.1G, heap.memory.max=4.0G, "
    "thread.count=80, thread.peakCount=93, cluster.timeDiff=0, event.q.size=0, executor.q.async.size=0, "
    "operations.completed.count=123456, connection.active.count=4, client.connection.count=0\n"
)
ORDER = "{at} [ INFO] [http-nio-8080-exec-3] [o.e.shop.OrderController]: "
APPLICATION = ORDER + "order 1234567 of customer 88123 was accepted in 12 ms\n"
TRACE = ORDER + (
    "payment refused\njava.lang.IllegalStateException: card expired\n"
    + "\tat org.example.shop.PaymentService.charge(PaymentService.java:123) ~[shop.jar:1.2]\n" * 20
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=float, default=10)
    arguments.add_argument("--incident-percent", type=float, default=1)
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "incident"
        place.mkdir()
        write_logs(place, asked.megabytes, asked.incident_percent / 100)
        size = sum(file.stat().st_size for file in place.iterdir())
        began = time.perf_counter()
        records = observations = 0
        for news in read_run(place):
            if isinstance(news, RecordsRead):
                records += len(news.records)
            elif isinstance(news, RunRead):
                observations = len(news.story.observations)
        took = time.perf_counter() - began
    told = {
        "megabytes": round(size / 1e6, 1),
        "seconds": round(took, 2),
        "megabytes_per_second": round(size / took / 1e6, 1),
        "records": records,
        "observations": observations,
        "peak_memory_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    print(json.dumps(told))


def write_logs(place: Path, megabytes: float, share: float) -> None:
    """Logs of five members, each of its part of the bytes."""
    for log in sorted(RECORDING.glob("h*.log")):
        incident = log.read_text()
        member = f"10.77.0.{log.name[1]}"
        stamps = STAMP.findall(incident)
        first = datetime.fromisoformat(stamps[0][0])
        calm_bytes = len(incident) * (1 - share) / share
        with (place / log.name).open("w") as out:
            shift = timedelta()
            while out.tell() < megabytes * 1e6 / 5:
                out.write(moved(incident, shift))
                at, written = first + shift + timedelta(minutes=5), 0
                while written < calm_bytes:
                    text = ""
                    for number in range(400):
                        pattern = HEALTH if number % 20 == 0 else TRACE if number % 50 == 1 else APPLICATION
                        text += pattern.format(at=f"{at:%Y-%m-%d %H:%M:%S},{number:03d}", member=member)
                    written += out.write(text)
                    at += timedelta(seconds=1)
                shift += timedelta(hours=1)


def moved(text: str, shift: timedelta) -> str:
    """The same, said that much later."""
    return STAMP.sub(lambda found: f"{datetime.fromisoformat(found[1]) + shift:%Y-%m-%d %H:%M:%S},{found[2]}", text)


if __name__ == "__main__":
    main()
