"""The library on Spark: audits and campaigns in a session that is there already."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import quarterdeck

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "tests" / "scenarios" / "killed-process.yaml"
LOGS = ROOT / "tests" / "hazelcast" / "logs" / "data" / "formation-and-crash"


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("journals")
    for seed in (1, 2):
        quarterdeck.simulate(SCENARIO, seed=seed, journal=root)
    return root


@pytest.mark.parametrize("what", ["journal", "logs"])
def test_a_session_of_the_caller_says_the_same_as_no_spark(spark: SparkSession, journal: Path, what: str) -> None:
    path = journal if what == "journal" else LOGS
    assert quarterdeck.audit(path, spark) == quarterdeck.audit(str(path))
    assert spark.range(3).count() == 3  # it goes on


def test_only_the_rules_that_are_asked_for_are_judged(journal: Path) -> None:
    assert quarterdeck.audit([journal], rules=["view order"]).rules == ("view order",)
    with pytest.raises(ValueError, match="no-such-rule"):
        quarterdeck.audit([journal], rules=["no-such-rule"])


def test_a_campaign_runs_in_a_session_of_the_caller(spark: SparkSession, tmp_path: Path) -> None:
    summary = quarterdeck.campaign(range(1, 2), tmp_path / "campaign", SCENARIO, spark)
    assert (summary.runs, summary.failed) == (1, False)
    assert (tmp_path / "campaign" / "summary.json").exists()
    assert spark.range(3).count() == 3


def test_a_session_whose_workers_lack_the_package_is_refused_in_one_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    for name in (str(python), str(tmp_path / "nowhere")):
        monkeypatch.setattr(spark.sparkContext, "pythonExec", name)
        with pytest.raises(
            quarterdeck.PipelineMissing, match=f"run {name}, which cannot import quarterdeck: set PYSPARK_PYTHON="
        ):
            quarterdeck.spark.register(spark)
