"""Tables on disk: what comes late is folded in, what comes again changes nothing, and who dies in between leaves no half."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import pyarrow.dataset
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.pipeline import audit as audit_module
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.judging.lines import NO_RUN, TORN
from quarterdeck.backend.pipeline.metrics.measuring import measure
from quarterdeck.backend.pipeline.tables import batches, store
from quarterdeck.backend.pipeline.tables.batches import SCHEMAS
from quarterdeck.backend.pipeline.tables.run_events import RunLines
from quarterdeck.backend.pipeline.tables.store import read_table, update_store
from tests.pipeline.journal_builder import JournalBuilder, clean_story, line, write
from tests.pipeline.rules.broken_journals import broken
from tests.pipeline.rules.test_planted import write_run
from tests.pipeline.tables.golden_runs import canonical, golden_records, write_records

REPOSITORY = Path(__file__).parents[3]


def tables(place: Path) -> dict[str, list[bytes]]:
    """All tables as bags of rows, but for the file and number, of which a line may have several."""
    return {
        name: canonical(pyarrow.dataset.dataset(place / name).to_table().to_pylist(), "file", "line")
        for name in SCHEMAS
    }


def files(place: Path) -> dict[str, int]:
    """Files with rows, and when they were written."""
    found = [(name, path) for name in SCHEMAS for path in (place / name).iterdir() if path.stem != "empty"]
    return {f"{name}/{one.name}": one.stat().st_mtime_ns for name, one in found}


@pytest.mark.long
def test_late_files_are_folded_in_and_repeated_ones_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """One member's journal comes later, from another place, and parts of it twice; a contradiction comes last."""
    run = golden_records()["halves-seed-1"]
    early = [record for record in run if record.member in ("a", "b", "dev")]
    late = [record for record in run if record not in early] + early[-5:]
    here, there, place = tmp_path / "here", tmp_path / "there", tmp_path / "tables"
    other = clean_story("00123")
    write(write_records(here, early), other)
    first = update_store([here], place)
    assert (first.files_read, first.runs, first.records) == (
        2,
        ("00123", "halves-seed-1"),
        len(early) + len(other.records),
    )
    assert {row.run for row in read_table(spark, place, "incarnations").collect()} == {"00123", "halves-seed-1"}

    assert all(len([*(place / name).iterdir()]) == 1 for name in SCHEMAS)  # small runs share a file
    before = files(place)
    again = update_store([here], place)
    assert (again.files_read, again.files_known, again.runs) == (0, 2, ())
    assert files(place) == before

    contradiction = msgspec.structs.replace(early[0], at=early[0].at + 7)
    write_records(there, late, "other")
    (there / "loose.jsonl").write_bytes(line(contradiction) + b'{"torn')
    folded = update_store([there], place)
    assert (folded.files_read, folded.runs, folded.records) == (2, ("halves-seed-1",), len(run))
    update_store([here, there], tmp_path / "at once")
    assert tables(place) == tables(tmp_path / "at once")
    reasons = {(row.run, row.reason.split(",")[0]) for row in read_table(spark, place, "quarantine").collect()}
    assert reasons == {
        ("halves-seed-1", "contradicts another event with the same identity"),
        (NO_RUN, "torn"),
    }


@pytest.mark.long
def test_a_contradiction_that_comes_a_day_later(spark: SparkSession, tmp_path: Path) -> None:
    """Whichever comes first, the earlier in time is the record and the other is kept with the reason, as if read at once."""
    here, there, place = tmp_path / "here.jsonl", tmp_path / "there.jsonl", tmp_path / "tables"
    first, second = clean_story("clean").records[:2]
    earlier = msgspec.structs.replace(second, at=second.at - 500)
    here.write_bytes(line(first) + line(second))
    there.write_bytes(line(earlier) + line(first))
    update_store([here], place)
    folded = update_store([there], place)
    assert (folded.records, folded.quarantined) == (2, 1)
    (kept,) = read_table(spark, place, "quarantine").collect()
    assert (kept.run, kept.file, kept.raw.encode()) == ("clean", str(here), line(second).strip())
    assert kept.reason == f"contradicts another event with the same identity, uuid {second.uuid} seq {second.seq}"
    update_store([there, here], tmp_path / "at once")
    assert tables(place) == tables(tmp_path / "at once")


@pytest.mark.long
def test_records_without_a_run_are_kept_under_a_name(spark: SparkSession, tmp_path: Path) -> None:
    nameless = [msgspec.structs.replace(record, run="") for record in clean_story("x").records[:3]]
    here, there, place = tmp_path / "here.jsonl", tmp_path / "there.jsonl", tmp_path / "tables"
    here.write_bytes(b"".join(map(line, nameless[:2])))
    there.write_bytes(b"".join(map(line, nameless[1:])))
    update_store([here], place)
    folded = update_store([there], place)
    assert (folded.records, folded.quarantined, folded.runs) == (3, 0, (NO_RUN,))
    rows = read_table(spark, place, "events").collect()
    assert sorted(row.raw.encode() for row in rows) == sorted(line(record).strip() for record in nameless)
    assert {row.run for row in rows} == {NO_RUN}
    assert {row.run for row in read_table(spark, place, "views").collect()} == {NO_RUN}
    assert measure([here, there], "all") == measure([place], "all")


@pytest.mark.long
def test_much_is_made_as_little_is(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_records(tmp_path / "journal", golden_records()["halves-seed-1"])
    (root / "loose.jsonl").write_bytes(b"torn\n")
    update_store([root], tmp_path / "little")
    of_little = measure([root], "run")
    monkeypatch.setattr(batches, "TARGET_BYTES", 0)
    monkeypatch.setattr(batches, "EVENTS_AT_ONCE", 1)
    monkeypatch.setattr(batches, "ROWS_A_GROUP", 7)
    update_store([root], tmp_path / "much")
    assert tables(tmp_path / "much") == tables(tmp_path / "little")
    assert measure([root], "run") == of_little == measure([tmp_path / "much"], "run")


@pytest.mark.long
def test_what_was_wrong_in_a_file_is_forgotten_when_it_is_whole(spark: SparkSession, tmp_path: Path) -> None:
    loose, place, records = tmp_path / "loose.jsonl", tmp_path / "tables", clean_story("clean").records
    loose.write_bytes(line(records[0]) + line(records[1])[:-20])
    folded = update_store([loose], place)
    assert (folded.records, folded.quarantined) == (1, 1)
    loose.write_bytes(line(records[0]) + line(records[1]))
    folded = update_store([loose], place)
    assert (folded.runs, folded.records, folded.quarantined) == (("clean",), 2, 0)
    assert read_table(spark, place, "quarantine").count() == 0


@pytest.mark.long
def test_files_that_are_still_written(spark: SparkSession, tmp_path: Path) -> None:
    root, place, story = tmp_path / "odd [name] *+%20", tmp_path / "tables", clean_story("open")
    with JournalWriter(root, "open", "living") as journal:
        for record in story.records[:10]:
            journal.append(record)
        journal.flush()
        opened = next((root / "_open").iterdir(), None)
        if opened is None:
            pytest.skip("the file was finished too soon")
        with opened.open("ab") as file:
            file.write(b'{"run":"open","mem')  # what a reader sees of a line that is being written
        update_store([root], place)
    assert read_table(spark, place, "events").count() == 10
    assert read_table(spark, place, "quarantine").count() == 0
    assert {row.file for row in read_table(spark, place, "events").collect()} <= {
        str(opened), str(root / "run=open" / "living-000001.jsonl"),
    }  # fmt: skip


@pytest.mark.long
def test_a_bad_line_that_was_read_while_its_file_was_open_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    root, place = tmp_path / "root", tmp_path / "tables"
    opened, finished = root / "_open" / "n1-000001.jsonl.open", root / "run=open" / "n1-000001.jsonl"
    for file in (opened, finished):
        file.parent.mkdir(parents=True)
    opened.write_bytes(b"no json\n" + line(clean_story("open").records[0]))
    assert update_store([root], place).quarantined == 1
    opened.rename(finished)
    folded = update_store([root], place)
    assert (folded.records, folded.quarantined) == (1, 1)
    assert [row.file for row in read_table(spark, place, "quarantine").collect()] == [str(finished)]


@pytest.mark.long
def test_a_store_of_another_version(spark: SparkSession, tmp_path: Path) -> None:
    """An older store lacks a column and has one that is gone since. It can be read, and is made anew from its own lines."""
    root, place = write(tmp_path / "journal", clean_story("clean")), tmp_path / "tables"
    update_store([root], place)
    wanted = tables(place)
    for part in (place / "incarnations").rglob("*.parquet"):
        table = pyarrow.parquet.ParquetFile(part).read()
        older = table.drop_columns(["lite", "settings"]).append_column("gone", table.column("events"))
        pyarrow.parquet.write_table(older, part)
    manifest = commit.read_manifest(place)
    assert manifest is not None
    (place / commit.MANIFEST).write_bytes(msgspec.json.encode(msgspec.structs.replace(manifest, form="older")))

    rows = read_table(spark, place, "incarnations").collect()
    assert {row.lite for row in rows} == {None} and "gone" not in rows[0].asDict()
    for path in (root / "run=clean").iterdir():
        path.unlink()
    write(tmp_path / "journal", clean_story("other"))
    folded = update_store([root], place)
    assert folded.runs == ("clean", "other")
    assert {name: [row for row in rows if b'"run":"clean"' in row] for name, rows in tables(place).items()} == wanted


@pytest.mark.long
def test_a_driver_that_is_killed_in_the_middle_of_writing(spark: SparkSession, tmp_path: Path) -> None:
    story, place = clean_story("clean"), tmp_path / "tables"
    root = write(tmp_path / "journal", story)
    update_store([root], place)
    before = tables(place)
    more = JournalBuilder("clean", numbers=dict(story.numbers))
    more.records.clear()
    more.says("a1")
    late = msgspec.structs.replace(more.records[0], at=story.records[-1].at + 1)
    (root / "run=clean" / "late-000001.jsonl").write_bytes(line(late))
    program = f"""
import os, signal
from pathlib import Path
from quarterdeck.backend.pipeline.tables import batches, store
closed, close = [], batches.TableWriter.close
def dying(writer):
    close(writer)
    closed.append(writer)
    if len(closed) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
batches.TableWriter.close = dying
store.update_store([Path({str(root)!r})], Path({str(place)!r}))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert list(place.glob(f"{commit.BUILDING}*"))
    assert tables(place) == before  # whoever reads now finds what was there

    folded = update_store([root], place)
    assert (folded.runs, folded.records) == (("clean",), len(story.records) + 1)
    assert not list(place.glob(f"{commit.BUILDING}*"))
    assert read_table(spark, place, "events").count() == len(story.records) + 1


def test_bad_paths_make_nothing(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoJournal, match="nowhere"):
        update_store([tmp_path / "nowhere"], tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


@pytest.mark.long
def test_a_failure_leaves_the_tables_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(batches.BatchWriter, "close", fail)
    with pytest.raises(OSError, match="no space left"):
        update_store([write(tmp_path / "journal", clean_story("clean"))], tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


def test_a_store_is_audited_as_the_journals_that_it_was_made_of(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here and on Spark: the same findings, and the same lines put aside; but there is nothing to replay."""
    root = tmp_path / "journal"
    for seed in range(3):
        write_run(root, f"run-{seed}", broken(seed))
    story = clean_story("clean")
    damaged = [*story.records, msgspec.structs.replace(story.records[0], at=story.records[0].at + 1)]
    (root / "loose.jsonl").write_bytes(b"".join(map(line, damaged)) + b"torn")
    update_store([root], tmp_path / "tables")
    expected = audit([root])
    here = audit([tmp_path / "tables"])
    monkeypatch.setattr(audit_module, "IN_PROCESS_BYTES", 0)
    assert audit([tmp_path / "tables"]) == here
    without_links = tuple(msgspec.structs.replace(finding, link="") for finding in expected.findings)
    assert (here.findings, here.incomplete) == (without_links, expected.incomplete)
    assert without_links
    assert {(problem.line, problem.reason) for problem in here.problems} == {
        (problem.line, problem.reason) for problem in expected.problems
    }
    assert {**here.counts, "files": 0} == {**expected.counts, "files": 0}


def write_part(root: Path, number: int, records: Sequence[Record]) -> None:
    """The next finished file of the journal of a living run."""
    directory = root / "run=halves-seed-1"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"world-{number:06d}.jsonl").write_bytes(b"".join(map(line, records)))


def test_of_a_long_run_a_fold_reads_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold parses the lines of new files alone, and adds a file of events; the other tables are made of all events."""
    parsed: list[bytes] = []
    add = RunLines.add

    def noted(lines: RunLines, raw: bytes, file: str, number: int, run: str) -> None:
        parsed.append(raw)
        add(lines, raw, file, number, run)

    monkeypatch.setattr(RunLines, "add", noted)
    records, root, place = golden_records()["halves-seed-1"], tmp_path / "journal", tmp_path / "tables"
    half, step = len(records) // 2, len(records) // 20
    write_part(root, 0, records[:half])
    update_store([root], place)
    assert len(parsed) == half
    for number in range(1, 3):
        before = files(place)
        parsed.clear()
        begin = half + (number - 1) * step
        write_part(root, number, records[begin - 3 : begin + step])  # three of them once more
        folded = update_store([root], place)
        assert (folded.files_read, folded.records, folded.quarantined) == (1, begin + step, 0)
        assert len(parsed) == step + 3
        after = {name: at for name, at in files(place).items() if name.startswith("events")}
        known = {name: at for name, at in before.items() if name.startswith("events")}
        assert known.items() <= after.items() and len(after) == len(known) + 1


@pytest.mark.parametrize("folds", [3, 4])
@pytest.mark.parametrize("most_small", [batches.MOST_SMALL, 1])
def test_many_folds_make_the_tables_that_one_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_small: int, folds: int
) -> None:
    """Also when lines come twice, and a contradiction and a broken line come in between; with their files put together or not."""
    monkeypatch.setattr(store, "MOST_SMALL", most_small)
    records, root, place = golden_records()["halves-seed-1"], tmp_path / "journal", tmp_path / "tables"
    half, step = len(records) // 2, len(records) // 20
    contradiction = msgspec.structs.replace(records[5], at=records[5].at - 1)
    rest = records[half + 2 * step :]
    parts = [records[:half], records[half - 3 : half + step], [contradiction, *records[half : half + 2 * step]], rest]
    parts[folds - 1 :] = [[record for part in parts[folds - 1 :] for record in part]]
    for number, part in enumerate(parts):
        write_part(root, number, part)
        if number == 1:
            (root / "loose.jsonl").write_bytes(b"torn\n")
        update_store([root], place)
        if most_small == 1:
            assert len(list((place / "events").iterdir())) == 1
    last = update_store([root], place)
    assert last.runs == ()
    update_store([root], tmp_path / "at once")
    assert tables(place) == tables(tmp_path / "at once")
    counts = {name: len(rows) for name, rows in tables(place).items()}
    assert last.tables == counts


def test_every_table_is_read_by_its_folder(tmp_path: Path) -> None:
    """Also an empty one, and by each of the usual programs."""
    update_store([write(tmp_path / "journal", clean_story("clean"))], tmp_path / "tables")
    pandas, polars, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    for name, rows in tables(tmp_path / "tables").items():
        folder = tmp_path / "tables" / name
        assert len(pandas.read_parquet(folder)) == len(rows), name
        assert polars.read_parquet(folder).height == len(rows), name
        assert duckdb.sql(f"SELECT count(*) FROM '{folder}/*.parquet'").fetchall() == [(len(rows),)], name
    utc = duckdb.sql(f"SELECT typeof(utc) FROM '{tmp_path}/tables/views/*.parquet' LIMIT 1").fetchall()
    assert utc == [("TIMESTAMP WITH TIME ZONE",)]
    assert not list((tmp_path / "tables").rglob("*.crc"))


def test_parts_of_a_run_in_several_places_come_together(tmp_path: Path) -> None:
    records, root = clean_story("split").records, tmp_path / "journal"
    (root / "run=split").mkdir(parents=True)
    (root / "one-000001.jsonl").write_bytes(b"".join(map(line, (*clean_story("other").records, *records[:7]))))
    (root / "run=split" / "two-000001.jsonl").write_bytes(b"".join(map(line, records[7:])))
    assert update_store([root], tmp_path / "tables").runs == ("other", "split")
    write(tmp_path / "whole", clean_story("other"), clean_story("split"))
    update_store([tmp_path / "whole"], tmp_path / "of whole")
    assert tables(tmp_path / "tables") == tables(tmp_path / "of whole")


def test_a_line_that_is_no_text_is_told_of_a_store_as_of_its_journal(spark: SparkSession, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    write(journal, clean_story("r"))
    (journal / "run=r" / "odd-000001.jsonl").write_bytes(b"\xff\xfe{}\n")
    update_store([journal], tmp_path / "store")
    (told,), (kept,) = audit([journal]).problems, audit([tmp_path / "store"]).problems
    assert (kept.line, kept.reason) == (told.line, told.reason) == ("\ufffd\ufffd{}", TORN)


@pytest.mark.long
def test_a_store_that_was_damaged_is_named_not_read_as_an_empty_one(tmp_path: Path) -> None:
    journal, place = write(tmp_path / "journal", clean_story("calm")), tmp_path / "tables"
    update_store([journal], place)
    for damage, refused, reason in (
        (b"PAR1 cut", OSError, "cannot be read"),
        (None, commit.StoreRefused, "the file is gone"),
    ):
        for file in (place / "events").glob("*.parquet"):
            file.unlink()
            if damage is not None:
                file.write_bytes(damage)
        for read in (audit, partial(measure, by="all")):
            with pytest.raises(refused, match=reason):
                read([place])
        if damage is not None:
            with pytest.raises(OSError, match=reason):
                update_store([journal], place)


def test_of_a_store_no_file_is_missed_silently(tmp_path: Path) -> None:
    journal, place = tmp_path / "journal", tmp_path / "tables"
    for run in ("early", "late"):
        write(journal, clean_story(run))
        update_store([journal], place)
    files = sorted((place / "events").glob("*.parquet"))
    assert len(files) == 2
    files[0].unlink()
    write(journal, clean_story("later"))
    for read in (audit, partial(measure, by="all")):
        with pytest.raises(commit.StoreRefused, match=f"{files[0].name}: the file is gone; remove the directory"):
            read([place])
    with pytest.raises(commit.StoreRefused, match="the file is gone"):
        update_store([journal], place)
