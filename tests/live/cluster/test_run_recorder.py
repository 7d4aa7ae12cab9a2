"""What a cluster on this machine records beside the events of its members."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.backend.core.events import JournalChanged
from quarterdeck.backend.journal.writer import JournalCondition, JournalWriter
from quarterdeck.backend.live.cluster.run_recorder import RunRecorder
from quarterdeck.backend.live.member.member_host import RunClock


def test_a_journal_that_fails_is_recorded_for_who_watches(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "run", "test") as journal:
        recorder = RunRecorder("run", "dev", RunClock.started_now(), journal, legacy_lists=False)
        assert journal.on_change is not None
        journal.on_change(JournalCondition("No space left on device", 7, 2))
        (record,) = recorder.drain()
    assert (record.member, record.event) == ("dev", JournalChanged("dev", "No space left on device", 2))
