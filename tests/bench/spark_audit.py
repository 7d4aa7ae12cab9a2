"""The same questions about one journal, asked of Spark on one and two cores, of DuckDB and of Polars; one line of JSON.

The journal is made here, with violations planted in it, so that every answer is known beforehand. Each engine runs in a
process of its own and reads the files anew for each question, with the columns told, not guessed. Run it as
``python tests/bench/spark_audit.py --events 1000000``; the files are made under --dir, or in a directory that goes afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

EVENTS = 50_000
"""`make bench` must not take long; the numbers in the documentation are of 1 and 10 million."""
EVENTS_PER_FILE = 200_000
EVENTS_PER_RUN = 500_000
MEMBERS = 8
QUIET_EVENTS = 9
"""After each list of a member."""
PLANTED_EVERY_ROUNDS = 40
PLANTS = ("version", "view integrity", "unique content", "numbering", "one author")
ENGINES = ("spark local[1]", "spark local[2]", "duckdb", "polars")
SAMPLE_SECONDS = 0.05
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

Answer = tuple[int, float]
"""How many findings, and the seconds that it took."""


# The journal


def make_journal(directory: Path, events: int) -> dict[str, int]:
    """Write `events` records, or a few more; how many findings there are of each question."""
    expected = dict.fromkeys(PLANTS, 0)
    lines: list[str] = []
    written = files = 0
    for line in _records(events, expected):
        lines.append(line)
        if len(lines) == EVENTS_PER_FILE:
            (directory / f"bench-{files:06d}.jsonl").write_text("".join(lines))
            written, files = written + len(lines), files + 1
            lines.clear()
    (directory / f"bench-{files:06d}.jsonl").write_text("".join(lines))
    return expected


def _records(events: int, expected: dict[str, int]) -> Iterator[str]:
    draw = Random(7)
    made = run_number = 0
    while made < events:
        run_number += 1
        for line in _run(f"run-{run_number}", min(EVENTS_PER_RUN, events - made), draw, expected):
            made += 1
            yield line


def _run(run: str, events: int, draw: Random, expected: dict[str, int]) -> Iterator[str]:
    """One run: round after round every member installs the next list, and then is quiet."""
    uuids = [f"{run}-member-{place}-{draw.getrandbits(64):016x}" for place in range(MEMBERS)]
    listed = [_member(uuid, place) for place, uuid in enumerate(uuids)]
    everybody = ",".join(listed)
    seqs = [0] * MEMBERS
    at = made = version = 0
    while made < events:
        version += 1
        plant = draw.choice(PLANTS) if version > 1 and draw.randrange(PLANTED_EVERY_ROUNDS) == 0 else ""
        victim = draw.randrange(1, MEMBERS)
        for place, uuid in enumerate(uuids):
            is_victim = plant != "" and place == victim
            members, author = everybody, 0
            if is_victim:
                expected[plant] += 1
                if plant == "view integrity":
                    expected["unique content"] += 1
                    members = ",".join(listed[:place] + listed[place + 1 :])
                elif plant == "unique content":
                    members = ",".join(listed[::-1])
                elif plant == "numbering":
                    seqs[place] += 1
                elif plant == "one author":
                    author = place
            bodies = [_list(run, version, members, author)]
            if is_victim and plant == "version":
                bodies.append(_list(run, version - 1, everybody, 0))
            bodies += [_late(other % MEMBERS) for other in range(QUIET_EVENTS)]
            for body in bodies:
                seqs[place] += 1
                at += 37
                made += 1
                yield (
                    f'{{"run":"{run}","member":"n{place}","uuid":"{uuid}","seq":{seqs[place]},"at":{at},'
                    f'"utc":{1_700_000_000_000_000 + at},"event":{body}}}\n'
                )


def _member(uuid: str, place: int) -> str:
    return f'{{"address":"10.0.0.{place}:5701","uuid":"{uuid}","join_version":{place},"lite":false,"zone":""}}'


def _list(run: str, version: int, members: str, author: int) -> str:
    return (
        f'{{"kind":"list-installed","version":{version},"lineage":"{run}/1","master":"10.0.0.0:5701","members":[{members}],'
        f'"author":"10.0.0.{author}:5701","cause":"published"}}'
    )


def _late(place: int) -> str:
    return (
        f'{{"kind":"heartbeat-late","address":"10.0.0.{place}:5701","over":true,"silence":1200000,"timeout":5000000}}'
    )


# The questions, in SQL for Spark and DuckDB. `uuids` are the members' of a list, as each engine spells it.

LISTS = """
    (SELECT run, uuid, seq, records.at AS moment, event.version AS version, event.lineage AS lineage, event.author AS author,
    {uuids} AS uuids FROM records WHERE event.kind = 'list-installed') AS lists"""
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
SPARK_COLUMNS = (
    "run string, uuid string, seq bigint, at bigint, "
    "event struct<kind string, version bigint, lineage string, author string, members array<struct<uuid string>>>"
)


def ask_spark(files: Path, master: str, told: Callable[[], None]) -> dict[str, Answer]:
    from quarterdeck.backend.pipeline.spark.session import spark_session

    with spark_session(master, profile="throughput", conf={"spark.sql.shuffle.partitions": "8"}) as spark:
        spark.read.schema(SPARK_COLUMNS).json(str(files / "bench-000000.jsonl")).createOrReplaceTempView("records")
        spark.sql("SELECT count(*) FROM records").collect()
        told()
        spark.read.schema(SPARK_COLUMNS).json(str(files)).createOrReplaceTempView("records")

        def ask(question: str) -> int:
            sql = QUESTIONS[question].format(uuids="transform(event.members, one -> one.uuid)")
            return int(spark.sql(sql).collect()[0][0])

        return {question: _timed(lambda: ask(question)) for question in QUESTIONS}  # noqa: B023


def ask_duckdb(files: Path, told: Callable[[], None]) -> dict[str, Answer]:
    import duckdb

    connection = duckdb.connect()
    columns = {
        **{"run": "VARCHAR", "uuid": "VARCHAR", "seq": "BIGINT", "at": "BIGINT"},
        "event": "STRUCT(kind VARCHAR, version BIGINT, lineage VARCHAR, author VARCHAR, members STRUCT(uuid VARCHAR)[])",
    }

    def view(pattern: str) -> None:
        connection.execute(
            "CREATE OR REPLACE VIEW records AS SELECT * FROM "
            f"read_json('{files / pattern}', format='newline_delimited', columns={columns})"
        )

    def ask(sql: str) -> int:
        row = connection.execute(sql).fetchone()
        assert row is not None
        return int(row[0])

    view("bench-000000.jsonl")
    ask("SELECT count(*) FROM records")
    told()
    view("*.jsonl")
    uuids = "[one.uuid for one in event.members]"
    return {question: _timed(lambda: ask(sql.format(uuids=uuids))) for question, sql in QUESTIONS.items()}  # noqa: B023


def ask_polars(files: Path, told: Callable[[], None]) -> dict[str, Answer]:
    import polars as pl

    event = pl.Struct(
        {
            **{"kind": pl.String, "version": pl.Int64, "lineage": pl.String, "author": pl.String},
            "members": pl.List(pl.Struct({"uuid": pl.String})),
        }
    )
    schema: Any = {"run": pl.String, "uuid": pl.String, "seq": pl.Int64, "at": pl.Int64, "event": event}

    def records(pattern: str) -> pl.LazyFrame:
        return pl.scan_ndjson(str(files / pattern), schema=schema)

    def counted(rows: pl.LazyFrame) -> int:
        return int(rows.select(pl.len()).collect(engine="streaming").item())

    counted(records("bench-000000.jsonl"))
    told()
    every = records("*.jsonl")
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
    return {question: _timed(lambda: counted(rows)) for question, rows in questions.items()}  # noqa: B023


def _timed(ask: Callable[[], int]) -> Answer:
    began = time.perf_counter()
    return ask(), time.perf_counter() - began


# One engine in a process of its own


def answer(engine: str, files: Path) -> None:
    """Print when there was a first result, and then all answers."""

    def told() -> None:
        print("first", flush=True)

    if engine.startswith("spark"):
        answers = ask_spark(files, engine.removeprefix("spark "), told)
    else:
        answers = {"duckdb": ask_duckdb, "polars": ask_polars}[engine](files, told)
    print(json.dumps(answers), flush=True)


def measured(engine: str, files: Path, expected: dict[str, int], events: int) -> dict[str, Any]:
    """Let an engine answer, and watch the memory of its processes meanwhile."""
    environment = {**os.environ, "POLARS_MAX_THREADS": "2"}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, __file__, "--answer", engine, "--dir", str(files)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    os.set_blocking(process.stdout.fileno(), False)
    first_seconds, peak_bytes = 0.0, 0
    while process.poll() is None:
        peak_bytes = max(peak_bytes, resident_bytes(process.pid))
        if not first_seconds and process.stdout.readline():
            first_seconds = time.perf_counter() - began
        time.sleep(SAMPLE_SECONDS)
    rest = process.stdout.read().splitlines()
    if process.returncode:
        return {"failed": process.stderr.read().strip().splitlines()[-1:]}
    answers: dict[str, Answer] = json.loads(rest[-1])
    wrong = {name: found for name, (found, _) in answers.items() if found != expected[name]}
    seconds = sum(took for _, took in answers.values())
    return {
        "first_result_seconds": round(first_seconds, 1),
        "seconds": {name: round(took, 2) for name, (_, took) in answers.items()},
        "rows_per_second": round(events * len(answers) / seconds),
        "peak_mb": round(peak_bytes / 1e6),
        **({"wrong": wrong} if wrong else {}),
    }


def resident_bytes(pid: int) -> int:
    """Of a process and all its descendants."""
    try:
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return resident + sum(map(resident_bytes, children))


def compare(events: int, directory: Path) -> dict[str, Any]:
    """Make the journal and let every engine answer."""
    directory.mkdir(parents=True, exist_ok=True)
    expected = make_journal(directory, events)
    size_bytes = sum(file.stat().st_size for file in directory.glob("*.jsonl"))
    return {
        "bench": "spark_audit",
        "events": events,
        "mb": round(size_bytes / 1e6),
        "findings": expected,
        **{engine: measured(engine, directory, expected, events) for engine in ENGINES},
        "load_average": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--answer", choices=ENGINES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        answer(arguments.answer, arguments.dir)
    else:
        with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as temporary:
            print(json.dumps(compare(arguments.events, arguments.dir or Path(temporary))))
