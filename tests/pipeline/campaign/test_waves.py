"""Campaigns on the session of the tests: every kind of loss is a row, and what is kept is kept."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import zipimport
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from quarterdeck.backend.journal.reader import read_journal
from quarterdeck.backend.pipeline.campaign import attempt as attempt_module
from quarterdeck.backend.pipeline.campaign.driver import (
    CampaignProgress,
    CampaignRefused,
    open_campaign,
    run_campaign,
    run_waves,
)
from quarterdeck.backend.pipeline.campaign.plan import Campaign, PlannedRun, VerdictRow, digest, in_order
from quarterdeck.backend.pipeline.spark.session import sources_digest, write_package

SMALL = Campaign(sizes=(3, 4), cpu_seconds=2.0)
FAILING = Campaign(
    scenario="""
title: Nobody waits for this
members: [a, b, c, d]
settings: {hazelcast.heartbeat.interval.seconds: 1, hazelcast.max.no.heartbeat.seconds: 4}
steps:
  - do: {wait: 7s}
  - do: {pause: c}
  - do: {wait: 1s}
  - expect: {within: 1s, one-cluster: true, removed: [c]}
"""
)

# Executors have the package, but not the tests: what is planted travels as it is.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def planted(campaign: Campaign, planned_run: PlannedRun) -> VerdictRow:
    """An attempt in which some seeds do what no seed should."""
    sound = attempt_module._judged

    def judged(campaign: Campaign, planned_run: PlannedRun) -> VerdictRow:
        match planned_run.seed:
            case 3:
                raise KeyError("planted")
            case 5:
                os._exit(7)
            case 7:
                while True:
                    pass
            case 9:
                faulthandler.disable()
                os.kill(os.getpid(), signal.SIGSEGV)
            case 11:
                time.sleep(1_000)
        return sound(campaign, planned_run)

    attempt_module._judged = judged
    try:
        return attempt_module.attempt(campaign, planned_run)
    finally:
        attempt_module._judged = sound


def killing_the_worker_once(marker: str, planned_run: PlannedRun) -> VerdictRow:
    """The parent of this process is Spark's worker: with it the whole task is lost, the first time."""
    if planned_run.seed == 4 and not os.path.exists(marker):  # noqa: PTH110 - pathlib is not among what travels
        with open(marker, "w"):  # noqa: PTH123
            pass
        os.kill(os.getppid(), signal.SIGKILL)
    return VerdictRow(planned_run.variant, planned_run.seed, 3, "ok")


def plain(campaign: Campaign, seeds: range) -> list[VerdictRow]:
    return [attempt_module.attempt(campaign, PlannedRun(0, seed)) for seed in seeds]


@pytest.mark.long
def test_a_campaign_finds_what_a_loop_finds(spark: SparkSession, tmp_path: Path) -> None:
    told: list[CampaignProgress] = []
    summary = run_campaign(spark, SMALL, range(1, 61), tmp_path / "out", on_progress=told.append)
    rows = plain(SMALL, range(1, 61))
    assert summary.digest == digest(rows)
    assert (summary.runs, summary.verdicts["ok"], summary.failures) == (60, 60, ())
    assert summary.events == sum(row.events for row in rows)
    assert told[-1].runs == told[-1].of_runs == 60
    assert told[-1].share == pytest.approx(1)


@pytest.mark.long
def test_whatever_a_seed_does_is_a_row_and_no_failed_job(spark: SparkSession, tmp_path: Path) -> None:
    told: list[CampaignProgress] = []
    summary = run_campaign(
        spark, SMALL, range(1, 31), tmp_path, shrinks=False, on_progress=told.append, attempt=partial(planted, SMALL)
    )
    found = {failure.seeds: (failure.verdict, failure.signature) for failure in summary.failures}
    crash = found.pop((3,))
    assert crash[0] == "crash" and crash[1].startswith("crash KeyError at tests/pipeline/campaign/test_waves.py:")
    assert found == {
        (5,): ("died", "died: exit code 7"),
        (7, 11): ("timeout", "timeout"),
        (9,): ("died", "died: killed by SIGSEGV"),
    }
    assert summary.failures[0].runs == 2, "the most frequent comes first"
    assert summary.verdicts["ok"] == 25
    assert summary.failures[0].reproduce == "quarterdeck swarm --seeds 7:7 --sizes 3:4"
    assert {row.seed for progress in told for row in progress.new_failures} == {3, 5, 7, 9, 11}


@pytest.mark.long
def test_a_lost_worker_costs_a_second_try(spark: SparkSession, tmp_path: Path) -> None:
    attempt = partial(killing_the_worker_once, str(tmp_path / "killed"))
    rows = [row for wave in run_waves(spark, SMALL, in_order(SMALL, range(1, 21)), attempt) for row in wave]
    assert sorted(row.seed for row in rows) == list(range(1, 21))
    assert next(row for row in rows if row.seed == 4).attempt == 1


@pytest.mark.long
def test_resuming_runs_only_what_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    first = run_campaign(spark, SMALL, range(1, 21), tmp_path)
    assert first.took.runs == 20
    again = run_campaign(spark, SMALL, range(1, 21), tmp_path, resume=True)
    assert again.took.runs == 0
    assert again.digest == first.digest
    more = run_campaign(spark, SMALL, range(11, 31), tmp_path, resume=True)
    assert more.took.runs == 10
    assert more.digest == digest(plain(SMALL, range(11, 31)))
    (tmp_path / "verdicts" / "chunk-000001.parquet").unlink()
    assert run_campaign(spark, SMALL, range(1, 21), tmp_path, resume=True).digest == first.digest


@pytest.mark.long
def test_a_folder_of_before_messages_were_counted_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    first = run_campaign(spark, SMALL, range(1, 11), tmp_path)
    for chunk in (tmp_path / "verdicts").iterdir():
        pq.write_table(pq.read_table(chunk).drop_columns(["messages"]), chunk)
    assert run_campaign(spark, SMALL, range(1, 11), tmp_path, resume=True).digest == first.digest
    more = run_campaign(spark, SMALL, range(1, 21), tmp_path, resume=True)
    assert (more.runs, more.took.runs) == (20, 10)
    with open_campaign(tmp_path, SMALL, resume=True) as store:
        assert {row.seed: row.messages is None for row in store.rows()} == {seed: seed <= 10 for seed in range(1, 21)}


@pytest.mark.long
def test_failures_are_recorded_made_small_and_can_be_repeated(spark: SparkSession, tmp_path: Path) -> None:
    from quarterdeck.backend.scenarios.format.reading import load_scenario
    from quarterdeck.backend.simulation.simulated_driver import simulate

    summary = run_campaign(spark, FAILING, range(1, 9), tmp_path, scenario_file="nobody.yaml")
    (failure,) = summary.failures
    assert (failure.verdict, failure.runs, failure.seeds) == ("expectation", 8, (1, 2, 3, 4, 5))
    assert failure.reproduce == "quarterdeck simulate nobody.yaml --seed 1"
    assert len(failure.journals) == 5
    assert len(list(read_journal(Path(failure.journals[0])))) > 10
    small = load_scenario(Path(failure.scenario))
    assert len(small.members) < 4 and len(small.steps) < 4
    outcome = simulate(small, 1)
    assert not outcome.passed
    assert attempt_module.failure_of(outcome)["signature"] == failure.signature


NAME = "hazelcast.max.no.heartbeat.seconds"
SILENT = Campaign(
    scenario="""
title: One falls silent
members: [a, b, c]
settings: {hazelcast.heartbeat.interval.seconds: 1}
steps:
  - do: {wait: 5s}
  - do: {pause: c}
  - expect: {within: 60s, views: {a: [a, b]}}
""",
    variants=({NAME: 4}, {NAME: 8}),
)


def test_settings_are_compared_on_the_same_seeds_and_rows_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    summary = run_campaign(spark, SILENT, range(1, 3), tmp_path)
    quick, slow = summary.settings
    assert (quick.settings, slow.settings) == ({NAME: 4}, {NAME: 8})
    assert (quick.runs, slow.runs, quick.verdicts["ok"].runs) == (2, 2, 2)
    detection = slow.measures["detection_seconds"]
    assert detection.values == 2 and detection.minus_first is not None
    assert detection.minus_first.value == pytest.approx(4, abs=0.5)
    low, high = detection.minus_first.interval
    assert low <= detection.minus_first.value <= high
    table = pq.read_table(tmp_path / "verdicts")
    assert sorted(zip(table["variant"].to_pylist(), table["seed"].to_pylist(), strict=True)) == [
        (0, 1), (0, 2), (1, 1), (1, 2),
    ]  # fmt: skip
    assert set(table["verdict"].to_pylist()) == {"ok"}
    with pytest.raises(CampaignRefused, match="add --resume"):
        run_campaign(spark, SILENT, range(1, 3), tmp_path)


# The folder


def test_a_folder_is_not_taken_by_mistake(tmp_path: Path) -> None:
    with open_campaign(tmp_path / "one", SMALL, resume=False):
        pass
    with pytest.raises(CampaignRefused, match="add --resume"), open_campaign(tmp_path / "one", SMALL, resume=False):
        pass
    other = Campaign(sizes=(3, 5))
    with pytest.raises(CampaignRefused, match="another campaign"), open_campaign(tmp_path / "one", other, resume=True):
        pass
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").touch()
    with pytest.raises(CampaignRefused, match="is not empty"), open_campaign(tmp_path / "photos", SMALL, resume=False):
        pass
    with (
        open_campaign(tmp_path / "one", SMALL, resume=True),
        pytest.raises(CampaignRefused, match="a campaign is running there"),
        open_campaign(tmp_path / "one", SMALL, resume=True),
    ):
        pass


# The package


def test_equal_sources_give_equal_packages(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = write_package(tmp_path / "a"), write_package(tmp_path / "b")
    assert one.name == two.name == f"quarterdeck-{sources_digest()}.zip"
    assert one.read_bytes() == two.read_bytes()


def test_a_worker_imports_what_a_wave_needs_from_a_package_at_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor keeps the package in its working directory."""
    name = "quarterdeck/backend/pipeline/spark/session"
    monkeypatch.chdir(tmp_path)
    package = zipimport.zipimporter(write_package(tmp_path).name)
    module = {"__name__": name.replace("/", "."), "__file__": package.get_filename(name)}
    assert not Path(module["__file__"]).is_absolute()
    code = package.get_code(name)
    assert code is not None
    exec(code, module)
