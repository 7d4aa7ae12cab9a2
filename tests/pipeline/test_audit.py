"""Whole audits on real Spark: planted violations are found with their witnesses, and nothing else is."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrameWriter, SparkSession

from backend.journal.files import NoJournal
from backend.journal.writer import JournalWriter
from backend.pipeline import audit as audit_module
from backend.pipeline.audit import AuditResult, Finding, OutputRefused, PipelineMissing, audit
from backend.pipeline.tables.suspicions import SUSPICIONS
from backend.pipeline.tables.views import VIEWS
from tests.pipeline.journals import Story, clean_story, line, write

REPOSITORY = Path(__file__).parents[2]


def told(findings: list[Finding]) -> list[tuple[str, str, list[str]]]:
    """Rule, life and witnesses, such as ("version", "a1", ["a1:1", "a1:2"])."""
    return [
        (
            one.rule,
            one.uuid.removeprefix("uuid-"),
            [f"{witness.uuid.removeprefix('uuid-')}:{witness.seq}" for witness in one.witnesses],
        )
        for one in findings
    ]


def planted_stories() -> list[Story]:
    opposite = Story("opposite-orders")
    opposite.installs("a1", "one/1", 5, "a1 b1")
    opposite.installs("a1 b1", "one/1", 6, "a1 b1 c1")
    opposite.installs("b1", "one/1", 5, "a1 b1")

    two_way = Story("two-way-successions")
    two_way.installs("a1", "one/1", 5, "a1 b1")
    two_way.installs("a1 b1", "two/6", 6, "b1 a1")
    two_way.installs("b1", "one/1", 5, "a1 b1")

    outside = Story("without-its-owner")
    outside.installs("a1 b1", "one/1", 2, "a1 b1")
    outside.installs("a1 b1", "one/1", 3, "a1 b2 c1")

    again = Story("same-version-again")
    again.installs("a1 b1", "one/1", 2, "a1 b1")
    again.installs("a1", "one/1", 2, "a1 b1")

    order = Story("another-order")
    order.installs("a1 b1", "one/1", 3, "a1 b1 c1")
    order.installs("c1", "one/1", 3, "a1 c1 b1")

    master = Story("another-master")
    master.installs("a1 b1", "one/1", 2, "a1 b1 c1")
    master.installs("c1", "one/1", 2, "a1 b1 c1", master="b1")

    members = Story("other-members")
    members.installs("a1 b1", "one/1", 2, "a1 b1 c1")
    members.installs("c1 d1", "one/1", 2, "a1 b1 c1 d1")

    gap = Story("gap")
    gap.says("a1")
    gap.says("a1", skip=2)
    gap.says("b1", skip=1)
    return [opposite, two_way, outside, again, order, master, members, gap]


@pytest.fixture(scope="module")
def planted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    root = tmp_path_factory.mktemp("planted")
    return audit([write(root, *planted_stories(), clean_story("clean"))])


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("clean", []),
        # One life that goes back to version 5 breaks two rules at once.
        (
            "opposite-orders",
            [("version", "b1", ["b1:1", "b1:2"]), ("view order", "b1", ["b1:1", "b1:2", "a1:1", "a1:2"])],
        ),
        ("two-way-successions", [("view order", "a1", ["a1:1", "a1:2", "b1:1", "b1:2"])]),
        ("without-its-owner", [("view integrity", "b1", ["b1:2"])]),
        ("same-version-again", [("version", "a1", ["a1:1", "a1:2"])]),
        ("another-order", [("version", "c1", ["a1:1", "c1:1"])]),
        ("another-master", [("version", "c1", ["a1:1", "c1:1"])]),
        ("other-members", [("version", "c1", ["a1:1", "c1:1"])]),
        ("gap", [("journal gap", "a1", ["a1:1", "a1:4"]), ("journal gap", "b1", ["b1:2"])]),
    ],
)
def test_planted_violations(planted: AuditResult, run: str, expected: list[tuple[str, str, list[str]]]) -> None:
    assert told([one for one in planted.findings if one.run == run]) == expected


def test_findings_say_what_happened(planted: AuditResult) -> None:
    assert [(one.run, one.severity, one.detail) for one in planted.findings] == [
        ("another-master", "violation", "c installed version 2 of list one/1 with another master than a"),
        ("another-order", "violation", "c installed version 3 of list one/1 with the members in another order than a"),
        ("opposite-orders", "violation", "b installed version 5 of list one/1 after version 6"),
        (
            "opposite-orders",
            "violation",
            "b installed version 6 of list one/1 before version 5; a installed them the other way round",
        ),
        ("other-members", "violation", "c installed version 2 of list one/1 with other members than a"),
        ("same-version-again", "violation", "a installed version 2 of list one/1 after version 2"),
        (
            "two-way-successions",
            "violation",
            "a went from version 5 of list one/1 to version 6 of list two/6; b went the other way",
        ),
        ("without-its-owner", "violation", "b installed version 3 of list one/1 without being on it"),
        ("gap", "warning", "2 events of a are missing before its event 4"),
        ("gap", "warning", "1 events of b are missing before its event 2"),
    ]


def test_a_clean_journal_with_duplicates_torn_and_corrupt_lines(spark: SparkSession, tmp_path: Path) -> None:
    story = clean_story("clean")
    root = write(tmp_path / "odd [name] *%20", story)
    first = story.records[0]
    contradiction = msgspec.structs.replace(first, at=first.at + 1)
    damaged = root / "run=clean" / "damaged-000001.jsonl"
    damaged.write_bytes(
        line(first)
        + line(story.records[1])
        + line(contradiction)
        + b"no json\n\n"
        + line(first).replace(b'"seq":1', b'"seq":"one"')
        + line(first).replace(b'"lineage"', b'"ancestry"')
        + line(first).replace(b"list-installed", b"moon-landed")
        + line(first).replace(b'"uuid":"uuid-a1","seq"', b'"seq"')
        + line(first)[:40]
    )
    out_dir = tmp_path / "tables"
    with JournalWriter(root, "open", "living") as journal:  # its file is still open while the audit reads it
        for record in clean_story("open").records:
            journal.append(record)
        journal.flush()
        result = audit([root, root / "run=clean" / "test-000001.jsonl"], out_dir)
    lives, records = 9, len(story.records)

    assert result.findings == ()
    assert {(one.file, one.reason) for one in result.problems} == {
        (damaged, "torn, no JSON, or a value of the wrong type"),
        (damaged, "contradicts another event with the same identity, uuid uuid-a1 seq 1"),
        (damaged, "list-installed lacks lineage"),
        (damaged, "unknown kind of event moon-landed"),
        (damaged, "lacks uuid"),
    }
    assert {one.line for one in result.problems} > {"no json", "", line(first)[:40].decode()}
    installed = sum("lineage" in msgspec.to_builtins(one.event) for one in story.records)
    assert result.counts == {
        "files": 3,
        "lines": 2 * records + 10,
        "records": 2 * records,
        "runs": 2,
        "lives": 2 * lives,
        "duplicates": 2,
        "quarantined": 8,
        "views": 2 * installed,
        "suspicions": 10,
    }

    tables = {name: pyarrow.parquet.read_table(out_dir / name) for name in ("views", "suspicions")}
    assert set(tables["views"].column_names) == set(VIEWS.names)
    assert set(tables["suspicions"].column_names) == set(SUSPICIONS.names)
    assert tables["views"].num_rows == 2 * installed
    view = next(row for row in tables["views"].to_pylist() if (row["uuid"], row["seq"]) == ("uuid-b1", 1))
    assert (view["version"], view["lineage"], view["master"]) == (2, "one/1", "10.0.0.1:5701")
    assert view["members"][1] == {
        "address": "10.0.0.1:5702", "uuid": "uuid-b1", "join_version": 1, "lite": False, "zone": "",
    }  # fmt: skip
    episodes = [row for row in tables["suspicions"].to_pylist() if row["run"] == "clean"]
    assert sorted((row["member"], row["raised_seq"], row["cleared_seq"]) for row in episodes if row["cleared_seq"]) == [
        ("b", 3, 4)
    ]
    assert sorted(out_dir.iterdir()) == [out_dir / "suspicions", out_dir / "views"]


def test_a_failed_audit_leaves_the_tables_as_they_were(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = spark.range(2).selectExpr("id", "'r' as run")
    old, new = tmp_path / "old", tmp_path / "new"
    audit_module._write_tables({"views": table, "suspicions": table}, old)
    before = sorted(path for path in old.rglob("*") if path.is_file())
    write_parquet = DataFrameWriter.parquet

    def fail_at_the_second_table(writer: DataFrameWriter, path: str) -> None:
        if "suspicions" in path:
            raise OSError("no space left")
        write_parquet(writer, path)

    with monkeypatch.context() as failing:
        failing.setattr(DataFrameWriter, "parquet", fail_at_the_second_table)
        for out_dir in (old, new):
            with pytest.raises(OSError, match="no space left"):
                audit_module._write_tables({"views": table, "suspicions": table}, out_dir)
    assert sorted(path for path in old.rglob("*") if path.is_file()) == before
    assert not new.exists()

    audit_module._write_tables({"views": table.limit(1), "suspicions": table}, old)
    assert [pyarrow.parquet.read_table(old / name).num_rows for name in ("views", "suspicions")] == [1, 2]
    assert sorted(path.name for path in old.iterdir()) == ["suspicions", "views"]


def test_bad_paths_change_nothing(tmp_path: Path) -> None:
    with pytest.raises(NoJournal, match="nowhere"):
        audit([tmp_path / "nowhere"])
    root = write(tmp_path / "root", clean_story("clean"))
    mine = tmp_path / "mine" / "views" / "photo.jpg"
    mine.parent.mkdir(parents=True)
    mine.touch()
    with pytest.raises(OutputRefused, match="no table of an audit"):
        audit([root], tmp_path / "mine")
    assert [path for path in (tmp_path / "mine").rglob("*") if path.is_file()] == [mine]


def test_importing_the_audit_imports_no_spark_and_a_missing_one_is_told(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from backend.pipeline.audit import PipelineMissing, audit
assert not any(name.startswith(("pyspark", "pandas", "pyarrow")) for name in sys.modules)
sys.modules["pyspark"] = None
try:
    audit([Path({str(write(tmp_path, clean_story("clean")))!r})])
except PipelineMissing as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert done.stdout.strip() == str(PipelineMissing())
    assert "quarterdeck[pipeline]" in done.stdout
