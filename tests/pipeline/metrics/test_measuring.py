"""From paths to rows, and the command that prints them."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline.metrics.measuring import measure
from quarterdeck.backend.pipeline.metrics.summary import SUMMARY
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.pipeline.tables.golden_runs import golden_records, write_records

REPOSITORY = Path(__file__).parents[3]
LOGS = REPOSITORY / "tests/hazelcast/logs/data/split-and-merge"


@pytest.mark.long
def test_journals_and_their_tables_measure_alike(spark: SparkSession, tmp_path: Path) -> None:
    root = write_records(tmp_path / "journal", golden_records()["freeze-seed-1"])
    (root / "loose.jsonl").write_bytes(b"torn\n")
    update_store([root], tmp_path / "tables")
    of_journal, of_tables = measure([root], "scenario"), measure([tmp_path / "tables"], "scenario")
    assert of_journal == of_tables
    assert of_journal.columns == tuple(SUMMARY.names)
    assert {row["by"] for row in of_journal.rows} == {"freeze"}
    assert (of_journal.quarantined, of_journal.is_cut) == (1, False)
    (split,) = measure([tmp_path / "tables"], "run", "splits").rows
    assert [side["master"] for side in split["sides"]] == ["a", "c"]


def test_bad_paths(tmp_path: Path) -> None:
    with pytest.raises(NoJournal, match="nowhere"):
        measure([tmp_path / "nowhere"], "run")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["metrics", "nowhere"], "nowhere: no such file"),
        (["metrics", str(LOGS.parent)], "members' logs contain neither faults nor when"),
        (["metrics", str(LOGS / "h1.log")], "h1.log: holds no journal; members' logs"),
        (["metrics", ".", "--table", "moons"], "there is no 'moons'; one of detection, one_view"),
        (["metrics", ".", "--master", "local", "--remote", "sc://x"], "exclude each other; name one"),
        (["tables", ".", "--out", "t", "--master", "local", "--remote", "sc://x"], "exclude each other; name one"),
    ],
)
def test_the_command_says_what_is_wrong_without_spark(tmp_path: Path, arguments: list[str], message: str) -> None:
    program = (
        "import sys; from quarterdeck.cli.main import run\n"
        "try:\n    run()\nfinally:\n    assert 'pyspark' not in sys.modules\n"
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program, "pipeline", *arguments],
        cwd=tmp_path, env={"PYTHONPATH": str(REPOSITORY), "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert message in done.stderr and len(done.stderr.splitlines()) == 1
