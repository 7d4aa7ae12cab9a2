"""The package travels: campaigns on a standalone cluster and through Spark Connect find what a plain loop here finds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from quarterdeck.backend.pipeline.campaign.attempt import attempt
from quarterdeck.backend.pipeline.campaign.plan import Campaign, PlannedRun, digest
from tests.pipeline.campaign.test_command import end_of, wait_for_chunks
from tests.pipeline.spark.local_clusters import clean_environment, connect_server, standalone, worker_python

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]

SEEDS = range(1, 101)
WHERE = """
import sys
from quarterdeck.backend.pipeline.spark.session import start_session

def where(batches):
    import importlib.util, os, msgspec, pyarrow as pa
    import quarterdeck.backend.simulation.swarm_testing.trial as trial
    seen = [trial.__file__, os.getcwd(), msgspec.__file__, str(importlib.util.find_spec("quarterdeck.cli"))]
    for batch in batches:
        yield pa.RecordBatch.from_pylist([{"text": text} for text in seen])

session = start_session(**{sys.argv[1]: sys.argv[2]})
for row in session.range(0, 1, 1, 1).mapInArrow(where, "text string").collect():
    print(row.text)
session.stop()
"""
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def expected() -> str:
    planned = Campaign(sizes=(3, 5))
    return digest(attempt(planned, PlannedRun(0, seed)) for seed in SEEDS)


def program(arguments: list[str], environment: Mapping[str, str], cwd: Path) -> str:
    """What a program of ours prints that runs from elsewhere."""
    with running(arguments, environment, cwd) as process:
        printed, said = process.communicate()
    assert process.returncode == 0, said
    return printed


@contextmanager
def running(arguments: list[str], environment: Mapping[str, str], cwd: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment, cwd=cwd, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()


def campaign(seeds: str, out: Path, *where: str) -> list[str]:
    words = f"-m quarterdeck campaign run --swarm --members 3-5 --seeds {seeds} --out"
    return [*words.split(), str(out), *where]


def campaign_digest(out: Path, environment: Mapping[str, str], cwd: Path, *where: str) -> str:
    summary = json.loads(program(campaign(f"{SEEDS[0]}:{SEEDS[-1]}", out, *where), environment, cwd))
    assert summary["runs"] == len(SEEDS)
    return str(summary["digest"])


def assert_shipped(said: str) -> None:
    """Workers import the package from the zip file, the rest from what is installed, and nothing from the source tree."""
    module, cwd, packed, front = said.splitlines()
    assert ".zip/quarterdeck/backend/simulation/swarm_testing/trial.py" in module
    assert str(REPOSITORY) not in module
    assert not Path(cwd).is_relative_to(REPOSITORY)
    assert "msgspec" in packed
    assert front == "None", "screens and commands stay here"


def test_a_standalone_cluster_of_two_workers(tmp_path: Path, expected: str) -> None:
    environment = clean_environment(PYSPARK_PYTHON=str(worker_python(tmp_path)), SPARK_LOCAL_IP="127.0.0.1")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with standalone(tmp_path) as master:
        assert_shipped(program(["-c", WHERE, "master", master], environment, elsewhere))
        found = campaign_digest(tmp_path / "out", environment, elsewhere, "--master", master)
    assert found == expected
    used = [log for log in tmp_path.glob("work-*/*/*/stderr") if "Running task" in log.read_text(errors="replace")]
    assert len({log.relative_to(tmp_path).parts[0] for log in used}) == 2, "both workers had tasks"


def test_a_cluster_that_loses_all_executors_starts_others(tmp_path: Path) -> None:
    environment = clean_environment(PYSPARK_PYTHON=str(worker_python(tmp_path)), SPARK_LOCAL_IP="127.0.0.1")
    out = tmp_path / "out"
    with standalone(tmp_path) as master:
        with running(campaign("600", out, "--master", master), environment, tmp_path) as driver:
            wait_for_chunks(driver, out, 1)
            killed = executors_below(tmp_path)
            for executor in killed:
                os.kill(executor, signal.SIGKILL)
            printed, said = end_of(driver, out)
    assert len(killed) == 2
    assert driver.returncode == 0, said
    assert json.loads(printed)["verdicts"]["ok"] == 600


def executors_below(folder: Path) -> list[int]:
    """The processes of executors whose working directory lies there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            if b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes():
                if (process / "cwd").resolve().is_relative_to(folder):
                    found.append(int(process.name))
    return found


def test_spark_connect(tmp_path: Path, expected: str) -> None:
    pytest.importorskip("grpc")
    worker_python(tmp_path)
    environment = clean_environment()
    with connect_server(tmp_path) as remote:
        assert_shipped(program(["-c", WHERE, "remote", remote], environment, tmp_path))
        assert campaign_digest(tmp_path / "out", environment, tmp_path, "--remote", remote) == expected
