"""`quarterdeck campaign run` as people run it, on Spark: it is killed, and goes on; it is interrupted, and says so."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]

FAILING = """title: Nobody waits for this
members: [a, b]
steps:
  - do: {wait: 3s}
  - expect: {version-at-least: 900}
"""
LIMIT_SECONDS = 300
"""Until a driver writes its first rows, or more of them: others may run beside it."""
PROGRESS = re.compile(r"\d+ of \d+ runs, [\d.]+ a second")
REPOSITORY = Path(__file__).parents[3]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "quarterdeck", "campaign", "run", *map(str, arguments)]


@contextmanager
def started(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command(*arguments),
        cwd=REPOSITORY,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finished(out: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    with started(*arguments, "--out", out) as driver:
        printed, said = end_of(driver, out)
        return subprocess.CompletedProcess(driver.args, driver.returncode, printed, said)


def end_of(driver: subprocess.Popen[str], out: Path) -> tuple[str, str]:
    """What a driver has printed and said at its end, for which it has time as long as it writes rows."""
    wait_until(
        lambda: driver.poll() is not None, lambda: f"{len(chunks(out))} chunks", limit_seconds=LIMIT_SECONDS,
        progress=lambda: chunks(out),
    )  # fmt: skip
    return driver.communicate()


def chunks(out: Path) -> list[Path]:
    return sorted((out / "verdicts").glob("chunk-*.parquet"))  # not one that is being written


def wait_for_chunks(process: subprocess.Popen[str], out: Path, count: int) -> None:
    def are_there() -> bool:
        assert process.poll() is None, process.communicate()[1]
        return len(chunks(out)) >= count

    wait_until(are_there, limit_seconds=LIMIT_SECONDS)


def java_of(driver: int) -> int:
    children = Path(f"/proc/{driver}/task/{driver}/children").read_text().split()
    (java,) = (child for child in children if Path(f"/proc/{child}/comm").read_text().strip() == "java")
    return int(java)


def told(stderr: str) -> list[str]:
    """What was said besides how far the campaign is: neither Java nor Spark may add words of their own."""
    return [line for line in stderr.splitlines() if not PROGRESS.match(line)]


def test_a_driver_that_is_killed_loses_only_what_was_under_way(tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = ("--swarm", "--members", "3-4", "--seeds", "1500", "--master", "local[2,4]")
    with started(*plan, "--out", out) as driver:
        wait_for_chunks(driver, out, 1)  # the other waves are long under way
        driver.send_signal(signal.SIGKILL)
    kept = {path: path.read_bytes() for path in chunks(out)}
    before = sum(pq.read_metadata(path).num_rows for path in kept)
    assert 0 < before < 1500, "it was killed in the middle"
    (out / "verdicts" / ".building-9").write_bytes(b"PAR1 torn")

    refused = finished(out, *plan)
    assert refused.returncode == 2
    assert f"{out} holds this campaign already; add --resume" in refused.stderr
    resumed = finished(out, *plan, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    summary = json.loads(resumed.stdout)
    assert (summary["runs"], summary["verdicts"]["ok"] + summary["verdicts"]["unknown"]) == (1500, 1500)
    assert summary["took"]["runs"] == 1500 - before
    assert {path: path.read_bytes() for path in kept} == kept
    seeds = [seed for path in chunks(out) for seed in pq.read_table(path, columns=["seed"])["seed"].to_pylist()]
    assert sorted(seeds) == list(range(1, 1501))
    assert json.loads((out / "summary.json").read_text())["digest"] == summary["digest"]
    assert "1500 of 1500 runs, " in resumed.stderr


def test_an_interrupt_ends_it_and_keeps_what_there_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with started("--swarm", "--members", "3-4", "--seeds", "5000", "--out", out) as driver:
        wait_for_chunks(driver, out, 1)
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
        said = end_of(driver, out)[1]
    assert driver.returncode == 130, said
    assert told(said) == [f"interrupted; go on with --resume: {out}"]
    assert chunks(out)


def test_when_java_is_killed_one_line_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = ("--swarm", "--members", "3-4", "--seeds", "1500", "--master", "local[2,4]")
    with started(*plan, "--out", out) as driver:
        wait_for_chunks(driver, out, 1)  # the other waves are long under way
        os.kill(java_of(driver.pid), signal.SIGKILL)
        printed, said = end_of(driver, out)
    assert driver.returncode == 3, said
    assert printed == ""
    assert told(said) == [
        "quarterdeck: Spark failed in the midst of work: its Java process has ended; "
        f"what came back is kept; go on with --resume: {out}"
    ]
    kept = {path: path.read_bytes() for path in chunks(out)}
    resumed = finished(out, *plan, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    verdicts = json.loads(resumed.stdout)["verdicts"]
    assert verdicts["ok"] + verdicts["unknown"] == 1500
    assert {path: path.read_bytes() for path in kept} == kept


def test_failures_are_told_with_what_runs_them_again(tmp_path: Path) -> None:
    file = tmp_path / "failing.yaml"
    file.write_text(FAILING)
    done = finished(tmp_path / "out", "--scenario", file, "--seeds", "1:4", "-o", "table")
    assert done.returncode == 1, done.stderr
    assert "4 x expectation every version is at least 900" in done.stderr
    assert f"  reproduce: quarterdeck simulate {file} --seed 1" in done.stderr
    assert "signature" in done.stdout
    small = tmp_path / "out" / "failures" / "seed-1.yaml"
    assert small.read_text().startswith("# Under seed 1: expectation every version is at least 900: step 2: ")
    assert len(list((tmp_path / "out" / "journals").iterdir())) >= 4


def test_a_master_that_is_none(tmp_path: Path) -> None:
    done = finished(tmp_path / "out", "--swarm", "--seeds", "2", "--master", "nonsense")
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1].startswith("quarterdeck: nonsense: ")
    assert "Traceback" not in done.stderr
