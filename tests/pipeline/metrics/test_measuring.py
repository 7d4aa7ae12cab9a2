"""From paths to rows, and the command that prints them."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline import run_reader
from quarterdeck.backend.pipeline.metrics.measuring import TABLE_NAMES, measure
from quarterdeck.backend.pipeline.metrics.summary import SUMMARY
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.pipeline.tables.golden_runs import golden_records, write_records

REPOSITORY = Path(__file__).parents[3]
LOGS = REPOSITORY / "tests/hazelcast/logs/data/split-and-merge"


def test_journals_and_their_tables_measure_alike(tmp_path: Path) -> None:
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


def test_a_store_is_read_in_shares_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [record for run in ("twice-seed-1", "data-seed-1", "refused-seed-1") for record in golden_records()[run]]
    root = write_records(tmp_path / "journal", records)
    update_store([root], tmp_path / "tables")
    monkeypatch.setattr(run_reader, "LINES_AT_ONCE", 1)
    for by in ("run", "settings"):
        assert measure([tmp_path / "tables"], by) == measure([root], by)  # type: ignore[arg-type]


def test_lines_of_which_none_is_a_record_measure_nothing(tmp_path: Path) -> None:
    for run in ("torn", "unfit"):
        (tmp_path / f"run={run}").mkdir()
    (tmp_path / "run=torn" / "one-000001.jsonl").write_bytes(b"torn\n")
    record = msgspec.json.encode(golden_records()["data-seed-1"][0])
    assert b'"seq":1,' in record
    unfit = record.replace(b'"seq":1,', b'"seq":%d,' % (1 << 70))
    (tmp_path / "run=unfit" / "one-000001.jsonl").write_bytes(unfit + b"\n")
    for table in ("", *TABLE_NAMES):
        measured = measure([tmp_path], "all", table)
        assert (measured.rows, measured.quarantined) == ((), 2), table


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
