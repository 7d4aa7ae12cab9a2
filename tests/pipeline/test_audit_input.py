"""Whether paths hold a journal or logs, as far as it is not given, and where their files are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline.audit_input import kind_of, resolve_input
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.pipeline.journal_builder import clean_story, line, write
from tests.pipeline.streaming.faulty_runs import faulty_run

LOGS = Path(__file__).parents[1] / "hazelcast" / "logs" / "data"


@pytest.mark.parametrize("recording", sorted(path.name for path in LOGS.iterdir()))
def test_logs_beside_json_lines_of_somebody_else_are_logs(recording: str) -> None:
    assert kind_of([LOGS / recording]) == "logs"
    assert kind_of([LOGS / recording / "h1.log"]) == "logs"
    assert kind_of([LOGS]) == "logs"


def test_one_record_makes_a_journal_whatever_else_is_there(tmp_path: Path) -> None:
    shutil.copy(LOGS / "split-and-merge" / "h1.log", tmp_path)
    journal = tmp_path / "a-000001.jsonl"
    journal.write_bytes(b"no record\n")
    assert kind_of([tmp_path]) == "logs"
    journal.write_bytes(b"no record\n" + line(faulty_run("r", 1)[0]))
    assert kind_of([tmp_path]) == "journal"
    for order in (1, -1):
        with pytest.raises(NoJournal, match=f"{LOGS}: holds no records, and {tmp_path} is a journal"):
            kind_of([tmp_path, LOGS][::order])
        with pytest.raises(NoJournal, match=f"file://{LOGS}: holds no records, and file://{tmp_path} is a journal"):
            resolve_input([f"file://{tmp_path}", f"file://{LOGS}"][::order], tmp_path)


def test_a_folder_of_logs_may_be_named_as_a_run_is(tmp_path: Path) -> None:
    shutil.copytree(LOGS / "split-and-merge", tmp_path / "run=of-today")
    assert kind_of([tmp_path / "run=of-today"]) == "logs"


def test_a_damaged_journal_is_one_still(tmp_path: Path) -> None:
    run = tmp_path / "run=r"
    run.mkdir()
    (run / "a-000001.jsonl").write_bytes(b"no record\n")
    assert kind_of([tmp_path]) == kind_of([run]) == "journal"
    assert kind_of([tmp_path / "absent"]) == "journal"


def test_files_have_paths_that_lead_there_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors stand in another folder."""
    write(tmp_path / "journals", clean_story("calm"))
    monkeypatch.chdir(tmp_path)
    update_store([Path("journals")], Path("tables"))
    for path in ("journals", "tables"):
        files = resolve_input([path], tmp_path / "staging").read
        assert files and all(Path(file).is_absolute() for file in files), path
