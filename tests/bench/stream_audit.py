"""How long after an event the stream has its finding, and what the stream costs, as one line of JSON.

Five members write about 1,000 events a second; each second one of them installs a list that does not contain it. The stream
runs as an operator runs it. Run it as ``python tests/bench/stream_audit.py --seconds 60``, with ``--master local[2]`` on Spark,
and with ``--kafka`` too from a topic instead of files: broker and producer come from Maven.
With ``--backlog 1000000`` it is measured instead how long so many events take that are there already.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2]))

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import ListInstalled, MasterChanged
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.journal.writer import JournalWriter
from tests.pipeline.streaming.kafka_broker import jars_of, kafka_broker, produce, with_connector

ROOT = Path(__file__).parents[2]
SECONDS = 15
MEMBERS = 5
EVENTS_PER_SECOND = 1_000
STEP_SECONDS = 0.01
IDLE_SECONDS = 10
TIMEOUT_SECONDS = 120
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
RUN = "bench"
ADDRESS = Address("10.0.0.9:5701")
STRANGER = (Member(ADDRESS, "stranger", 1, False),)


class TopicWriter:
    """Writes records to the topic ``journal`` by Kafka's own producer, with the member as the key."""

    PRODUCER = "org.apache.kafka:kafka-tools:4.1.0"

    def __init__(self, broker: str, stack: ExitStack) -> None:
        classes = ":".join(map(str, jars_of(self.PRODUCER)))
        command = ["java", "-Xmx128m", "-cp", classes, "org.apache.kafka.tools.ConsoleProducer", "--topic", "journal"]
        command += ["--bootstrap-server", broker, "--property", "parse.key=true", "--timeout", "1"]
        process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL))
        assert process.stdin is not None
        self._lines = process.stdin

    def append(self, record: Record) -> None:
        self._lines.write(record.member.encode() + b"\t" + msgspec.json.encode(record) + b"\n")
        self._lines.flush()


class Members:
    """What is written, and when each event that breaks a rule was."""

    def __init__(self, writers: Sequence[JournalWriter | TopicWriter]) -> None:
        self._writers = writers
        self._seqs = [0] * MEMBERS
        self._began_us = time.time_ns() // 1_000
        self.written = 0
        self.broken_us: dict[tuple[str, int], int] = {}

    def quiet(self, place: int) -> None:
        self._append(place, MasterChanged(ADDRESS, "bench"))

    def break_rule(self, place: int) -> None:
        """Install a list without oneself."""
        version = len(self.broken_us) + 1
        utc_us = self._append(place, ListInstalled(version, "bench/1", ADDRESS, STRANGER, ADDRESS, "unknown", "bench"))
        self.broken_us[f"uuid-{place}", self._seqs[place]] = utc_us

    def _append(self, place: int, event: Event) -> int:
        self._seqs[place] += 1
        self.written += 1
        utc_us = time.time_ns() // 1_000
        at_us = utc_us - self._began_us
        self._writers[place].append(Record(RUN, f"n{place}", f"uuid-{place}", self._seqs[place], at_us, utc_us, event))
        return utc_us


class Findings:
    """Follows the file of findings; when each was seen first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        self.seen_us: dict[tuple[str, int], int] = {}

    def look(self) -> None:
        if not self._path.exists() or self._path.stat().st_size == self._size:
            return
        now_us = time.time_ns() // 1_000
        content = self._path.read_bytes()
        self._size = len(content)
        for line in content[: content.rfind(b"\n") + 1].splitlines():
            one = msgspec.json.decode(line)
            if one["rule"] == "view integrity":
                self.seen_us.setdefault((one["uuid"], one["seq"]), now_us)

    def wait_for(self, number: int) -> None:
        give_up = time.monotonic() + TIMEOUT_SECONDS
        while len(self.seen_us) < number and time.monotonic() < give_up:
            self.look()
            time.sleep(STEP_SECONDS)


def cpu_seconds(pid: int) -> float:
    """Of a process and all its descendants, also of those that have ended and were waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS_PER_SECOND + sum(map(cpu_seconds, children))


def place_of(root: Path, broker: str) -> list[str]:
    """The arguments that say what the stream reads, and where it keeps what."""
    if not broker:
        return [str(root)]
    return [f"kafka://{broker}/journal", "--findings", str(root / "findings"), "--checkpoint", str(root / "state")]


def measure(root: Path, seconds: int, broker: str, options: list[str]) -> dict[str, object]:
    command = [sys.executable, "-m", "quarterdeck", "pipeline", "stream", *place_of(root, broker), *options]
    with ExitStack() as stack:
        if broker:
            writers: Sequence[JournalWriter | TopicWriter] = [TopicWriter(broker, stack)] * MEMBERS
        else:
            writers = [stack.enter_context(JournalWriter(root, RUN, f"n{place}")) for place in range(MEMBERS)]
        members = Members(writers)
        members.break_rule(0)
        printed, said = (stack.enter_context((root / name).open("wb")) for name in ("printed.txt", "said.txt"))
        stream = subprocess.Popen(command, cwd=ROOT, stdout=printed, stderr=said)
        try:
            findings = Findings(Path(printed.name) if options else root / "findings.jsonl")
            began = time.monotonic()
            findings.wait_for(1)
            first_seconds = time.monotonic() - began
            time.sleep(2)
            idle_cpu = _cpu_share(stream.pid, IDLE_SECONDS, lambda: time.sleep(STEP_SECONDS))
            due = time.monotonic()
            told = due

            def write() -> None:
                nonlocal due, told
                for number in range(round(EVENTS_PER_SECOND * STEP_SECONDS)):
                    members.quiet(number % MEMBERS)
                if time.monotonic() >= told + 1:
                    told += 1
                    members.break_rule(len(members.broken_us) % MEMBERS)
                findings.look()
                due += STEP_SECONDS
                time.sleep(max(0.0, due - time.monotonic()))

            before = members.written
            busy_cpu = _cpu_share(stream.pid, seconds, write)
            rate = (members.written - before) / seconds
            findings.wait_for(len(members.broken_us))
        finally:
            stream.send_signal(signal.SIGINT)
            stream.wait()
    waits = sorted((findings.seen_us[key] - utc_us) / 1e6 for key, utc_us in list(members.broken_us.items())[1:])
    return {
        "bench": "stream_audit",
        "from": "kafka" if broker else "files",
        "events_per_second": round(rate),
        "planted": len(members.broken_us),
        "found": len(findings.seen_us),
        "first_finding_after_start_seconds": round(first_seconds, 1),
        "event_to_finding_seconds": {
            "median": round(median(waits), 2),
            "p95": round(quantiles(waits, n=20)[-1], 2),
            "max": round(waits[-1], 2),
        },
        "cpu_percent_of_a_core": {"idle": round(idle_cpu, 1), "busy": round(busy_cpu, 1)},
        "load_average": round(os.getloadavg()[0], 1),
    }


def measure_backlog(root: Path, events: int, broker: str, options: list[str]) -> dict[str, object]:
    from tests.bench.audit_speed import make_journal

    made = make_journal(root, events)
    if broker:
        produce(broker, root, os.environ)
    command = [sys.executable, "-m", "quarterdeck", "pipeline", "stream", *place_of(root, broker), "--once", *options]
    began, used = time.monotonic(), 0.0
    with (root / "said.txt").open("wb") as said:
        stream = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said)
        while stream.poll() is None:
            used = max(used, cpu_seconds(stream.pid))
            time.sleep(STEP_SECONDS)
    wall_seconds = time.monotonic() - began
    return {
        **{"bench": "stream_audit", "from": "kafka" if broker else "files"},
        **{"backlog": made, "exit_code": stream.returncode},
        **{"seconds": round(wall_seconds, 1), "cpu_seconds": round(used, 1)},
        "load_average": round(os.getloadavg()[0], 1),
    }


def _cpu_share(pid: int, seconds: int, step: Callable[[], None]) -> float:
    began, before = time.monotonic(), cpu_seconds(pid)
    while time.monotonic() < began + seconds:
        step()
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - began)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--master", default="")
    parser.add_argument("--backlog", type=int, default=0)
    parser.add_argument("--kafka", action="store_true")
    arguments = parser.parse_args()
    options = ["--master", arguments.master] if arguments.master else []
    with ExitStack() as keeping:
        place = Path(keeping.enter_context(tempfile.TemporaryDirectory(prefix="quarterdeck-bench-")))
        broker = ""
        if arguments.kafka:
            (place / "kafka").mkdir()
            os.environ.update(with_connector(place / "kafka"))
            broker = keeping.enter_context(kafka_broker(place / "kafka"))
        (place / "journal").mkdir()
        if arguments.backlog:
            result = measure_backlog(place / "journal", arguments.backlog, broker, options)
        else:
            result = measure(place / "journal", arguments.seconds, broker, options)
        print(json.dumps(result))
