"""How long it takes to open members' logs of some size, and with how much memory.

    python -m tests.bench.log_reading [MEGABYTES] [SHARE]

Five members log for days: what a healthy member says again and again, an application beside it with its stack traces, and now
and then a recorded split and merge. SHARE is how much of all bytes is of such an incident, in percent.
"""

from __future__ import annotations

import re
import resource
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

from quarterdeck.backend.hazelcast.logs.run_reader import RecordsRead, RunRead, read_run

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
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 100
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "incident"
        place.mkdir()
        write_logs(place, megabytes, share / 100)
        size = sum(file.stat().st_size for file in place.iterdir())
        began = time.perf_counter()
        records = observations = 0
        for news in read_run(place):
            if isinstance(news, RecordsRead):
                records += len(news.records)
            elif isinstance(news, RunRead):
                observations = len(news.story.observations)
        took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    speed = f"{size / 1e6:.0f} MB in {took:.2f} s, {size / took / 1e6:.0f} MB/s"
    print(f"{speed}; {records} records, {observations} observations; {peak:.0f} MB of memory")


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
