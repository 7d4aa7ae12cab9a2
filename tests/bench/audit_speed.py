"""How long the audit of a valid journal takes, in this process and on Spark, beside DuckDB and Polars; one line of JSON.

The journal is made of simulated runs, each under many names, with violations planted in some of them. The audit judges every
rule. DuckDB and Polars are asked the five questions that can be asked in SQL, with the columns told, not guessed, and read the
files anew for each. Every engine runs in a process of its own. The whole table of the documentation, on a calm machine:
``python tests/bench/audit_speed.py --events 1000000,10000000 --table``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

EVENTS = 50_000
"""`make bench` must not take long; the numbers in the documentation are of 1 and 10 million."""
SCENARIOS = ("p-issue-5444-master", "p-issue-5444-master", "p-issue-5444-master", "p-merge-latest-update", "figure-5")
SEEDS = 4
PLANTED_EVERY = 10
ENGINES = ("here", "spark local[1]", "spark local[2]", "duckdb", "polars")
SAMPLE_SECONDS = 0.1
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
ROOT = Path(__file__).parents[2]

Answers = dict[str, int]
"""By question, how many findings."""


# The journal


def make_journal(root: Path, events: int) -> int:
    """Write at least so many records as runs; how many there are."""
    import msgspec
    from msgspec.structs import replace

    from tests.pipeline.rules.broken_journals import simulated

    made = run_number = 0
    while made < events:
        scenario = SCENARIOS[run_number % len(SCENARIOS)]
        records = list(simulated(scenario, run_number // len(SCENARIOS) % SEEDS))
        if run_number % PLANTED_EVERY == 0:
            records = planted(records, run_number // PLANTED_EVERY % 3)
        run = f"bench-{run_number:06d}"
        directory = root / f"run={run}"
        directory.mkdir(parents=True)
        lines = b"".join(msgspec.json.encode(replace(record, run=run)) + b"\n" for record in records)
        (directory / "world-000001.jsonl").write_bytes(lines)
        made, run_number = made + len(records), run_number + 1
    return made


def planted(records: list[Any], which: int) -> list[Any]:
    """With one violation: a record that is missing, a list that is no newer, or one without the member that installs it."""
    from msgspec.structs import replace

    from quarterdeck.backend.core.membership.events import ListInstalled

    place = next(place for place in reversed(range(len(records))) if isinstance(records[place].event, ListInstalled))
    listed, last = records[place], records[-1]
    if which == 0:
        return records[: place - 1] + records[place:]
    seq = 1 + max(record.seq for record in records if record.uuid == listed.uuid)
    others = tuple(member for member in listed.event.members if member.uuid != listed.uuid)
    event = listed.event if which == 1 else replace(listed.event, version=listed.event.version + 1, members=others)
    return [*records, replace(listed, seq=seq, at=last.at, utc=last.utc, event=event, because=None)]


# The audit


def audit_here(files: Path) -> Answers:
    from quarterdeck.backend.pipeline import audit as module

    module.IN_PROCESS_BYTES = sys.maxsize
    return _counts(module.audit([files]))


def audit_on_spark(files: Path, master: str) -> Answers:
    from quarterdeck.backend.pipeline.audit import audit
    from quarterdeck.backend.pipeline.spark.engine import Engine

    return _counts(audit([files], engine=Engine(master=master)))


def _counts(result: Any) -> Answers:
    return dict(Counter(finding.rule for finding in result.findings))


# The questions, in SQL for DuckDB and by hand for Polars


LISTS = """
    (SELECT run, uuid, seq, records.at AS moment, event.version AS version, event.lineage AS lineage, event.author AS author,
    [member.uuid for member in event.members] AS uuids FROM records WHERE event.kind = 'list-installed') AS lists"""
QUESTIONS = {
    "version": f"""
        SELECT count(*) FROM (SELECT version, lag(version) OVER (PARTITION BY run, uuid ORDER BY seq) AS older FROM {LISTS})
        AS steps WHERE version <= older""",
    "view integrity": f"SELECT count(*) FROM {LISTS} WHERE NOT array_contains(uuids, uuid)",
    "unique content": f"""
        SELECT count(*) FROM (SELECT run, lineage, version FROM {LISTS}
        GROUP BY run, lineage, version HAVING count(DISTINCT uuids) > 1) AS several""",
    "numbering": """
        SELECT count(*) FROM (SELECT seq, lag(seq, 1, 0) OVER (PARTITION BY run, uuid ORDER BY seq) AS older FROM records)
        AS steps WHERE seq <> older + 1""",
    "one author": f"""
        SELECT count(*) FROM (SELECT author, first_value(author) OVER (PARTITION BY run, lineage ORDER BY moment) AS first_author
        FROM {LISTS}) AS authors WHERE author <> first_author""",
}


def ask_duckdb(files: Path) -> Answers:
    import duckdb

    connection = duckdb.connect()
    columns = {
        **{"run": "VARCHAR", "uuid": "VARCHAR", "seq": "BIGINT", "at": "BIGINT"},
        "event": "STRUCT(kind VARCHAR, version BIGINT, lineage VARCHAR, author VARCHAR, members STRUCT(uuid VARCHAR)[])",
    }
    connection.execute(
        f"CREATE VIEW records AS SELECT * FROM "
        f"read_json('{files}/*/*.jsonl', format='newline_delimited', hive_partitioning=false, columns={columns})"
    )

    def ask(sql: str) -> int:
        row = connection.execute(sql).fetchone()
        assert row is not None
        return int(row[0])

    return {question: ask(sql) for question, sql in QUESTIONS.items()}


def ask_polars(files: Path) -> Answers:
    import polars as pl

    event = pl.Struct(
        {
            **{"kind": pl.String, "version": pl.Int64, "lineage": pl.String, "author": pl.String},
            "members": pl.List(pl.Struct({"uuid": pl.String})),
        }
    )
    schema: Any = {"run": pl.String, "uuid": pl.String, "seq": pl.Int64, "at": pl.Int64, "event": event}
    every = pl.scan_ndjson(str(files / "*" / "*.jsonl"), schema=schema)
    field = pl.col("event").struct.field
    lists = every.filter(field("kind") == "list-installed").select(
        *("run", "uuid", "seq", "at"),
        *(field(name) for name in ("version", "lineage", "author")),
        field("members").list.eval(pl.element().struct.field("uuid")).alias("uuids"),
    )
    before = pl.col("version").shift().over(["run", "uuid"], order_by="seq")
    previous = pl.col("seq").shift(fill_value=0).over(["run", "uuid"], order_by="seq")
    first = pl.col("author").first().over(["run", "lineage"], order_by="at")
    contents = lists.with_columns(pl.col("uuids").list.join(",")).group_by("run", "lineage", "version")
    questions = {
        "version": lists.filter(pl.col("version") <= before),
        "view integrity": lists.filter(~pl.col("uuids").list.contains(pl.col("uuid"))),
        "unique content": contents.agg(pl.col("uuids").n_unique().alias("several")).filter(pl.col("several") > 1),
        "numbering": every.select("run", "uuid", "seq").filter(pl.col("seq") != previous + 1),
        "one author": lists.filter(pl.col("author") != first),
    }
    return {
        question: int(rows.select(pl.len()).collect(engine="streaming").item()) for question, rows in questions.items()
    }


def answer(engine: str, files: Path) -> None:
    """Print the answers of one engine."""
    if engine.startswith("spark"):
        answers = audit_on_spark(files, engine.removeprefix("spark "))
    else:
        answers = {"here": audit_here, "duckdb": ask_duckdb, "polars": ask_polars}[engine](files)
    print(json.dumps(answers), flush=True)


# One engine in a process of its own


def measured(command: list[str], environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Run a program that prints a line of JSON, and watch the memory and the processor time of its processes meanwhile."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**environment, "POLARS_MAX_THREADS": "2"}, cwd=ROOT,
    )  # fmt: skip
    peak_bytes, cpu_seconds = 0, dict[int, float]()
    while process.poll() is None:
        used = dict(_processes(process.pid))
        peak_bytes = max(peak_bytes, sum(bytes_ for bytes_, _ in used.values()))
        cpu_seconds.update((pid, seconds) for pid, (_, seconds) in used.items())
        time.sleep(SAMPLE_SECONDS)
    seconds = time.perf_counter() - began
    assert process.stdout is not None and process.stderr is not None
    if process.returncode:
        return {"failed": process.stderr.read().strip().splitlines()[-1:]}
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(sum(cpu_seconds.values()), 1),
        "peak_mb": round(peak_bytes / 1e6),
        "found": json.loads(process.stdout.read().splitlines()[-1]),
    }


def _processes(pid: int) -> Iterator[tuple[int, tuple[int, float]]]:
    """A process and all its descendants, each with its resident bytes and its processor time in seconds."""
    try:
        place = Path(f"/proc/{pid}")
        resident = int((place / "statm").read_text().split()[1]) * PAGE_BYTES
        fields = (place / "stat").read_text().rpartition(")")[2].split()
        children = [
            int(child) for task in (place / "task").iterdir() for child in (task / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return
    yield pid, (resident, (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND)
    for child in children:
        yield from _processes(child)


def compare(events: int, directory: Path, engines: tuple[str, ...], say: Callable[[str], None]) -> dict[str, Any]:
    """Make the journal and let every engine answer."""
    made = make_journal(directory, events)
    size_bytes = sum(file.stat().st_size for file in directory.rglob("*.jsonl"))
    results = {}
    for engine in engines:
        results[engine] = measured([__file__, "--answer", engine, "--dir", str(directory)])
        say(f"{engine}: {results[engine]}")
    found = [result["found"] for result in results.values() if "found" in result]
    alike = ("version", "view integrity", "numbering")
    return {
        "bench": "audit_speed",
        "events": made,
        "mb": round(size_bytes / 1e6),
        "differ": [rule for rule in alike if len({counts.get(rule, 0) for counts in found}) > 1],
        **results,
        "load_average": round(os.getloadavg()[0], 1),
    }


def in_markdown(measurement: dict[str, Any]) -> str:
    """The measurement as a table for people, with how much faster two workers are than one."""
    lines = [
        f"{measurement['events']:,} events, {measurement['mb']} MB, load average {measurement['load_average']}",
        "",
        "| engine | seconds | of processor time | greatest memory |",
        "|---|---|---|---|",
    ]
    measured_of = {engine: measurement[engine] for engine in ENGINES if "seconds" in measurement.get(engine, ())}
    for engine, one in measured_of.items():
        lines.append(f"| {engine} | {one['seconds']} | {one['cpu_seconds']} | {one['peak_mb']} MB |")
    one, two, plain = (measured_of.get(engine) for engine in ("spark local[1]", "spark local[2]", "here"))
    if one and two:
        lines += ["", f"two workers: {one['seconds'] / two['seconds']:.2f} times one"]
    if two and plain:
        lines += [f"Spark's processor time: {two['cpu_seconds'] / plain['cpu_seconds']:.2f} times the plain loop's"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", default=str(EVENTS), help="how many; several numbers are separated by commas")
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--engines", default=",".join(ENGINES), help="only these, separated by commas")
    parser.add_argument("--table", action="store_true", help="also say it as a table, on stderr")
    parser.add_argument("--answer", choices=ENGINES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        answer(arguments.answer, arguments.dir)
    else:
        chosen = tuple(arguments.engines.split(","))
        for count in map(int, arguments.events.split(",")):
            with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as temporary:
                place = (arguments.dir or Path(temporary)) / str(count)
                measurement = compare(count, place, chosen, lambda text: print(text, file=sys.stderr))
            print(json.dumps(measurement))
            if arguments.table:
                print(in_markdown(measurement), file=sys.stderr)
