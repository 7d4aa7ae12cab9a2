"""Tables of Delta Lake: several writers, writers that die, versions of before, and other programs that read them."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import polars
import pyarrow.parquet
import pytest
from deltalake import DeltaTable

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline import delta_snapshot
from quarterdeck.backend.pipeline.address import address_of
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.commit import StoreRefused
from quarterdeck.backend.pipeline.delta_snapshot import DeltaSnapshot, newest
from quarterdeck.backend.pipeline.metrics.measuring import measure
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing
from quarterdeck.backend.pipeline.tables import delta_store, fold
from quarterdeck.backend.pipeline.tables.batches import SCHEMAS
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.pipeline.journal_builder import clean_story, line, write
from tests.pipeline.tables.golden_runs import canonical, golden_records

REPOSITORY = Path(__file__).parents[3]


def state_of(store: Path) -> DeltaSnapshot:
    state = newest(address_of(f"file://{store}"))
    assert state is not None
    return state


def tables(store: Path) -> dict[str, list[bytes]]:
    """What a reader finds who reads the store as of its last update."""
    state = state_of(store)
    return {
        name: canonical(
            [row for file in state.files(name) for row in pyarrow.parquet.read_table(file.open()).to_pylist()], "file"
        )
        for name in SCHEMAS
    }


def put(root: Path, name: str, records: list[Record], more: bytes = b"") -> None:
    root.mkdir(parents=True, exist_ok=True)
    (root / f"{name}.jsonl").write_bytes(b"".join(map(line, records)) + more)


def test_other_programs_read_any_version(tmp_path: Path) -> None:
    store, calm, other = tmp_path / "tables", clean_story("calm"), clean_story("o'ther")
    update_store([write(tmp_path / "first", calm)], store, "delta")
    first = state_of(store)
    put(write(tmp_path / "second", calm), "loose", other.records)
    update_store([tmp_path / "second"], store)
    events = DeltaTable(str(store / "events")).to_pyarrow_dataset()
    found = duckdb.sql("SELECT run, count(*) FROM events WHERE run LIKE 'o''%' GROUP BY run").fetchall()
    assert found == [("o'ther", len(other.records))] and events is not None
    views = polars.scan_delta(str(store / "views"))
    assert set(views.select("run").collect()["run"]) == {"calm", "o'ther"}
    before = DeltaTable(str(store / "views"), version=first.versions["views"]).to_pandas()
    assert set(before["run"]) == {"calm"}
    assert [row["number"] for row in delta_snapshot.updates_of(first.address)] == [1, 2]
    assert audit([store]).counts["records"] == len(calm.records) + len(other.records)
    assert measure([store], "run") == measure([tmp_path / "first", tmp_path / "second"], "run")


@pytest.mark.long
def test_late_lines_contradictions_and_torn_ones(tmp_path: Path) -> None:
    """In whatever order and however often files come, the tables are those that one reading of all makes of them."""
    run = golden_records()["halves-seed-1"]
    half, earlier = len(run) // 2, msgspec.structs.replace(run[9], at=run[9].at - 1)
    root, store = tmp_path / "journal", tmp_path / "tables"
    put(root, "a-000001", run[:half])
    update_store([root], store, "delta")
    put(root, "b-000001", [*run[half - 4 :], earlier], b'{"torn\n')
    folded = update_store([root], store)
    assert (folded.files_read, folded.files_known, folded.records, folded.quarantined) == (1, 1, len(run), 2)
    put(root, "b-000001", [*run[half - 4 :], earlier])  # mended
    put(root, "c-000001", run[:9])
    update_store([root], store)
    update_store([root], tmp_path / "at once", "delta")
    update_store([root], tmp_path / "parquet")
    assert tables(store) == tables(tmp_path / "at once")
    for name, rows in tables(store).items():
        found = pyarrow.parquet.ParquetDataset(tmp_path / "parquet" / name).read().to_pylist()
        assert canonical(found, "file", "line") == rows, name
    before = state_of(store)
    update_store([root], store)
    assert (state_of(store).number, state_of(store).versions) == (before.number, before.versions)


@pytest.mark.long
def test_tables_of_another_form_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, store = write(tmp_path / "journal", clean_story("calm"), clean_story("other")), tmp_path / "tables"
    update_store([root], store, "delta")
    before = tables(store)
    monkeypatch.setattr("quarterdeck.backend.pipeline.tables.store.FORMAT", "another")
    monkeypatch.setattr(fold, "ROWS_AT_ONCE", 1)
    update_store([root], store)
    assert (state_of(store).form, state_of(store).number) == ("another", 2)
    assert tables(store) == before


class Killed(BaseException):
    """The process dies here."""


@pytest.mark.long
def test_interrupted_before_every_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is seen; the next update of other journals finishes it but for the files, which are read again."""
    first, second, third = (
        write(tmp_path / run, clean_story(run), clean_story("shared")) for run in ("first", "second", "third")
    )
    put(second, "torn-000001", [], b"torn\n")
    update_store([first, second, third], tmp_path / "at once", "delta")
    change: Any = delta_store._transaction
    for steps in range(100):
        store, left = tmp_path / f"store-{steps}", [steps]
        update_store([first], store, "delta")
        before = tables(store)

        def dying(place: Any, left: list[int] = left) -> Any:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return change(place)

        with monkeypatch.context() as patched:
            patched.setattr(delta_store, "_transaction", dying)
            try:
                update_store([second], store)
                break
            except Killed:
                assert tables(store) == before
        update_store([third], store)
        update_store([second], store)
        assert tables(store) == tables(tmp_path / "at once"), steps
    assert steps > 5


@pytest.mark.long
def test_another_process_writes_before_every_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to the same run. What was made of older events is never put in the place of what was made of newer ones."""
    run = golden_records()["halves-seed-1"]
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    put(mine, "a-000001", run[::2])
    put(theirs, "b-000001", run[1::2])
    update_store([mine, theirs], tmp_path / "at once", "delta")
    change: Any = delta_store._transaction
    for steps in range(100):
        store, left = tmp_path / f"store-{steps}", [steps]
        update_store([write(tmp_path / "calm", clean_story("calm"))], store, "delta")

        def overtaken(place: Any, left: list[int] = left, store: Path = store) -> Any:
            left[0] -= 1
            if left[0] == -1:
                update_store([theirs], store)
            return change(place)

        with monkeypatch.context() as patched:
            patched.setattr(delta_store, "_transaction", overtaken)
            update_store([mine], store)
        if left[0] >= 0:
            break
        update_store([mine, theirs], store)
        with_calm = tables(store)
        for name, rows in tables(tmp_path / "at once").items():
            assert [row for row in with_calm[name] if b'"calm"' not in row] == rows, (steps, name)
    assert steps > 5


PROGRAM = "import sys; from quarterdeck.backend.pipeline.tables.store import update_store; "
WRITE = PROGRAM + "update_store(sys.argv[2:], sys.argv[1], 'delta')"


def started(store: Path, *journals: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITE, str(store), *map(str, journals)], cwd=REPOSITORY, stderr=subprocess.PIPE
    )


@pytest.mark.long
@pytest.mark.timeout(600)
def test_four_processes_write_and_some_are_killed(tmp_path: Path) -> None:
    run, chance = golden_records()["halves-seed-1"], random.Random(7)
    parts = [tmp_path / f"part-{number}" for number in range(4)]
    for number, part in enumerate(parts):
        put(part, f"m{number}-000001", run[number::4])
        write(part, clean_story(f"own-{number}"))
    update_store(parts, tmp_path / "at once", "delta")
    store = tmp_path / "tables"
    killed = 0
    for _ in range(4):
        writers = [started(store, part) for part in parts]
        time.sleep(chance.uniform(2, 5))  # wherever they are then
        for writer in chance.sample(writers, 2):
            writer.kill()
        for writer in writers:
            _, problem = writer.communicate(timeout=300)
            assert writer.returncode in (0, -signal.SIGKILL), problem.decode()
            killed += writer.returncode != 0
        if newest(address_of(f"file://{store}")) is not None:
            tables(store)  # all of them can be read
    assert killed
    update_store(parts, store)
    assert tables(store) == tables(tmp_path / "at once")


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    journal = write(tmp_path / "journal", clean_story("calm"))
    with pytest.raises(PipelineMissing, match=r"quarterdeck\[spark\]"):
        update_store([journal], tmp_path / "tables", "delta")
    assert not (tmp_path / "tables").exists()
    make: Callable[..., Any] = update_store
    assert make([journal], tmp_path / "tables").files_read == 1


@pytest.mark.long
def test_tables_that_are_not_whole_are_not_read_as_empty_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit of them would find nothing to complain of."""
    journal, store = write(tmp_path / "journal", clean_story("calm")), tmp_path / "tables of é"
    with monkeypatch.context() as patched, pytest.raises(TypeError):
        patched.setattr(delta_store._Update, "_record", None)  # it ends before
        update_store([journal], store, "delta")
    with pytest.raises(NoJournal, match="the first update of these tables was not finished"):
        audit([store])
    update_store([journal], store)
    assert audit([store]).counts == audit([journal]).counts
    for file in state_of(store).files("events"):
        Path(file.delta_uri.removeprefix("file://")).unlink()
    with pytest.raises(StoreRefused, match="the file is gone"):
        audit([store])
