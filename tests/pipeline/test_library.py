"""The library on Spark: audits and campaigns in a session that is there already."""

from __future__ import annotations

import re
import runpy
import shutil
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
    summary = quarterdeck.campaign(range(1, 4), tmp_path / "campaign", SCENARIO, spark)
    assert (summary.runs, summary.failed) == (3, False)
    assert (tmp_path / "campaign" / "summary.json").exists()
    assert spark.range(3).count() == 3


def test_the_examples_of_the_documents_run(
    spark: SparkSession,
    journal: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The first needs no session, and is run with the tests of the project."""
    text = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    _, example = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for folder in ("journals", "logs"):  # Spark began elsewhere, and takes relative paths from there
        example = example.replace(f'"{folder}"', f'"{tmp_path / folder}"')
    (tmp_path / "example.py").write_text(example, encoding="utf-8")
    shutil.copytree(journal, tmp_path / "journals")
    shutil.copytree(LOGS, tmp_path / "logs")
    runpy.run_path(str(tmp_path / "example.py"), init_globals={"spark": spark})
    printed = capfd.readouterr().out
    assert "list-installed" in printed
    assert re.search(r"raised_cause\|times\|\n.*\n\|10\.77", printed)
