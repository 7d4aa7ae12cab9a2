"""Whole audits on real Spark: planted violations are found with their witnesses, and nothing else is."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.core.partitions.events import TableChanged
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.pipeline import audit as audit_module
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.commit import StoreRefused
from quarterdeck.backend.pipeline.judging.group_judge import lines_of_file
from quarterdeck.backend.pipeline.rules import UnknownRule
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing, SparkUnreachable
from quarterdeck.backend.pipeline.tables import store
from quarterdeck.backend.pipeline.tables.batches import TableWriter
from quarterdeck.backend.pipeline.tables.membership_tables import SUSPICIONS, VIEWS
from quarterdeck.backend.pipeline.tables.store import update_store, write_tables
from quarterdeck.cli.commands.spark.audit import audit as audit_command
from quarterdeck.cli.exits import CommandFailed, ExitCode, code_of
from tests.pipeline.journal_builder import JournalBuilder, address, clean_story, line, write
from tests.pipeline.tables.golden_runs import golden_store

REPOSITORY = Path(__file__).parents[2]
OF_LISTS = ("view integrity", "version", "unique content", "one master", "view order")
"""The stories tell of nothing else."""


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
        result = audit([root, root / "run=clean" / "test-000001.jsonl"], out_dir, rules=OF_LISTS)
    lives, records = 9, len(story.records)

    assert result.findings == ()
    assert {(Path(problem.file), problem.reason) for problem in result.problems} == {
        (damaged, "torn, no JSON, or a value of the wrong type"),
        (damaged, "contradicts another event with the same identity, uuid uuid-a1 seq 1"),
        (damaged, "list-installed lacks lineage"),
        (damaged, "unknown kind of event moon-landed"),
        (damaged, "lacks uuid"),
    }
    assert {problem.line for problem in result.problems} > {"no json", "", line(first)[:40].decode()}
    installed = sum("lineage" in msgspec.to_builtins(record.event) for record in story.records)
    assert result.counts == {
        "files": 3,
        "lines": 2 * records + 10,
        "records": 2 * records,
        "runs": 2,
        "incarnations": 2 * lives,
        "duplicates": 2,
        "quarantined": 8,
        "contradicting": 1,
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
    assert tables_in(out_dir) == ["findings", "suspicions", "views"]


def tables_in(out_dir: Path) -> list[str]:
    return sorted(path.name for path in out_dir.iterdir() if path.is_dir() and not path.name.startswith("."))


def test_a_failed_audit_leaves_the_tables_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pyarrow.table({"id": [0, 1], "run": ["r", "r"]})
    old, new = tmp_path / "old", tmp_path / "new"
    write_tables({"views": table, "suspicions": table}, old, "audit")
    before = sorted(path for path in old.rglob("*") if path.is_file())

    class FullDisk(TableWriter):
        def __init__(self, path: Path, fields: pyarrow.Schema) -> None:
            super().__init__(path, fields)
            if "suspicions" in path.name:
                raise OSError("no space left")

    with monkeypatch.context() as failing:
        failing.setattr(store, "TableWriter", FullDisk)
        for out_dir in (old, new):
            with pytest.raises(OSError, match="no space left"):
                write_tables({"views": table, "suspicions": table}, out_dir, "audit")
    assert sorted(path for path in old.rglob("*") if path.is_file()) == before
    assert not new.exists()

    write_tables({"views": table.slice(0, 1), "suspicions": table}, old, "audit")
    assert [pyarrow.parquet.read_table(old / name).num_rows for name in ("views", "suspicions")] == [1, 2]
    assert tables_in(old) == ["suspicions", "views"]


def test_bad_paths_change_nothing(tmp_path: Path) -> None:
    with pytest.raises(NoJournal, match="nowhere"):
        audit([tmp_path / "nowhere"])
    root = write(tmp_path / "root", clean_story("clean"))
    mine = tmp_path / "mine" / "views" / "photo.jpg"
    mine.parent.mkdir(parents=True)
    mine.touch()
    with pytest.raises(StoreRefused, match="no table of this pipeline"):
        audit([root], tmp_path / "mine")
    assert [path for path in (tmp_path / "mine").rglob("*") if path.is_file()] == [mine]


def test_an_unknown_rule_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UnknownRule, match="did you mean 'view order'"):
        audit([write(tmp_path, clean_story("clean"))], rules=["veiw order"])


def test_what_needs_the_whole_journal_is_only_a_warning_where_something_is_missing(tmp_path: Path) -> None:
    story = JournalBuilder("gap")
    story.installs("a1", "one/1", 1, "a1")
    story.installs("a1", "one/1", 2, "a1 b1")
    story.says("b1", skip=1)
    story.installs("a1", "one/1", 3, "a1")
    story.installs("a1", "one/1", 3, "a1")
    result = audit([write(tmp_path, story)], rules=["version", "removal", "numbering"])
    assert result.incomplete == {"gap": "events of b before its event 2 are missing"}
    assert [(finding.rule, finding.severity, bool(finding.doubt), finding.versions) for finding in result.findings] == [
        ("version", "violation", False, (3,)),
        ("numbering", "warning", False, ()),
        ("removal", "warning", True, (2, 3)),
    ]
    assert all(finding.link.endswith(f"--at {finding.at / 1e6:g}") for finding in result.findings)
    assert result.rules == ("numbering", "removal", "version")


def test_importing_the_audit_imports_no_spark_and_a_missing_one_is_told(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from quarterdeck.backend.pipeline import audit as module
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing
sys.modules["pyspark"] = None
assert audit([Path({str(write(tmp_path, clean_story("clean")))!r})]).counts["runs"] == 1
assert not any(name.startswith(("pyspark.", "pandas", "pyarrow")) for name in sys.modules)
module.IN_PROCESS_BYTES = 0
said = []
assert audit([Path({str(write(tmp_path, clean_story("clean")))!r})], on_message=said.append).counts["runs"] == 1
print(*said)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert done.stdout.startswith("judged here, although ") and done.stdout.strip().endswith(str(PipelineMissing()))
    assert "quarterdeck[spark]" in done.stdout


def test_a_member_that_never_joins_anybody_is_found(tmp_path: Path) -> None:
    story = JournalBuilder("alone")
    story.happens("a1", MemberStarted(address("a"), False, (), ""))
    story.says("a1")
    root = write(tmp_path / "root", story)
    write(root, clean_story("clean"))
    found = [finding for finding in audit([root], rules=["convergence"], bound_us=0).findings if finding.run == "alone"]
    assert [(finding.rule, finding.member, finding.uuid, finding.seq) for finding in found] == [
        ("convergence", "a", "uuid-a1", 1)
    ]
    assert found[0].detail.startswith("a belongs to no cluster")


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (SparkUnreachable("sc://nowhere: it does not answer"), ExitCode.UNREACHABLE),
        (PermissionError(13, "Permission denied", "n1.jsonl"), ExitCode.BAD_INPUT),
    ],
)
def test_what_keeps_the_command_from_auditing_is_no_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, code: ExitCode
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(audit_module, "audit", fail)
    with pytest.raises((CommandFailed, type(problem))) as failed:
        audit_command([str(tmp_path)])
    found = failed.value
    assert code == (found.exit_code if isinstance(found, CommandFailed) else code_of(found))


def test_a_file_whose_content_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken-000001.jsonl").symlink_to("/proc/self/mem")  # its beginning cannot be read
    file = str(tmp_path / "broken-000001.jsonl")
    for read in (lambda: audit_module.audit([tmp_path]), lambda: list(lines_of_file(InputFile(file, file)))):
        with pytest.raises(OSError, match="Input/output error") as failed:
            read()
        assert failed.value.filename == file


def test_of_several_files_each_finding_is_linked_to_its_own(tmp_path: Path) -> None:
    files = []
    for run in ("first", "second"):
        story = JournalBuilder(run)
        story.installs("a1", "one/1", 2, "a1")
        story.installs("a1", "one/1", 1, "a1")
        files.append(tmp_path / f"{run}.jsonl")
        files[-1].write_bytes(b"".join(map(line, story.records)))
    found = audit(files, rules=["version"]).findings
    assert [finding.link.split()[3] for finding in found] == [str(file) for file in files]


def test_a_change_of_the_table_without_rows_is_judged(tmp_path: Path) -> None:
    story = JournalBuilder("empty")
    story.installs("a1", "one/1", 1, "a1")
    for version in (1, 2):
        story.happens("a1", TableChanged(version, "digest", 1, (), (), "uuid-a1", "arranged"))
    found = audit([write(tmp_path, story)], rules=["table version"]).findings
    assert [(finding.uuid, finding.seq, finding.detail) for finding in found] == [
        ("uuid-a1", seq, f"a has table version {seq - 1}, its partitions add up to 0") for seq in (2, 3)
    ]


def test_before_its_first_record_a_run_is_not_known_to_have_been_calm(tmp_path: Path) -> None:
    """Of a run that went on for hours the last second is there, in which two lists are on their way."""
    story = JournalBuilder("late")
    story.installs("a1 b1", "one/1", 1, "a1 b1")
    story.installs("a1", "one/1", 2, "a1 b1")
    story.says("a1")
    late = [msgspec.structs.replace(record, at=record.at + 100_000 * SECOND_US) for record in story.records]
    (tmp_path / "late.jsonl").write_bytes(b"".join(map(line, late)))
    rules = ["convergence", "view agreement"]
    assert audit([tmp_path / "late.jsonl"], rules=rules).findings == ()
    found = audit([tmp_path / "late.jsonl"], rules=rules, bound_us=100).findings
    assert sorted(finding.rule for finding in found) == rules


def test_an_event_that_no_checker_can_read_is_not_one_that_is_missing(tmp_path: Path) -> None:
    """It is made as it should be, but has a value that this version does not know."""
    story = JournalBuilder("strange")
    story.installs("a1", "one/1", 1, "a1")
    story.happens("a1", TableChanged(0, "digest", 1, (), (), "uuid-a1", "arranged"))
    story.installs("a1", "one/1", 1, "a1")
    text = b"".join(map(line, story.records)).replace(b"arranged", b"conjured")
    (tmp_path / "strange.jsonl").write_bytes(text)
    result = audit([tmp_path / "strange.jsonl"], rules=["numbering", "version"])
    assert [finding.rule for finding in result.findings] == ["version"]
    assert "not as this version knows it" in result.incomplete["strange"]


def test_runs_whose_files_do_not_stand_together_are_judged_as_wholes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their records are mixed over files and directories, one of which has another run's name; here, and on Spark."""
    one, other = clean_story("one"), clean_story("other")
    lines = [line(record) for pair in zip(one.records, other.records, strict=True) for record in pair]
    (tmp_path / "run=one").mkdir()
    (tmp_path / "run=one" / "a-000001.jsonl").write_bytes(b"".join(lines[:11]))
    (tmp_path / "b-000001.jsonl").write_bytes(b"".join(lines[11:30]))
    (tmp_path / "c-000001.jsonl").write_bytes(b"".join(lines[30:]))
    here = audit([tmp_path], rules=[*OF_LISTS, "numbering"])
    monkeypatch.setattr(audit_module, "IN_PROCESS_BYTES", 0)
    on_spark = audit([tmp_path], rules=[*OF_LISTS, "numbering"])
    assert here == on_spark
    assert (here.findings, here.incomplete) == ((), {})
    assert (here.counts["runs"], here.counts["incarnations"], here.counts["records"]) == (2, 18, len(lines))


def test_all_findings_are_in_the_table_however_many_are_listed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = JournalBuilder("many")
    for _ in range(5):
        story.installs("a1", "one/1", 1, "a1")
    monkeypatch.setattr(audit_module, "MAX_FINDINGS", 3)
    result = audit([write(tmp_path / "root", story)], tmp_path / "out", rules=["version"])
    assert (len(result.findings), result.counts["findings"]) == (3, 4)
    assert pyarrow.parquet.read_table(tmp_path / "out" / "findings").num_rows == 4


def test_the_tables_of_an_audit_and_those_of_a_store_do_not_take_each_others_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = write(tmp_path / "root", clean_story("clean"))
    audit([root], tmp_path / "audit", rules=["version"])
    with pytest.raises(StoreRefused, match="the tables of `quarterdeck audit`"):
        update_store([root], tmp_path / "audit")
    with pytest.raises(StoreRefused, match="the tables of `quarterdeck pipeline tables`"):
        audit([root], golden_store(spark))


def test_lines_that_contradict_are_told_apart_from_those_that_are_no_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = clean_story("clean")
    file = tmp_path / "clean.jsonl"
    contradiction = msgspec.structs.replace(story.records[0], utc=0)
    file.write_bytes(b"".join(map(line, story.records)) + line(contradiction) + b"no json\nnor this\n")
    audit_command([file], rules="version")
    told = capsys.readouterr().err.splitlines()
    assert told[-3:-1] == ["2 lines are not records", "1 line contradicts a record already read"]
