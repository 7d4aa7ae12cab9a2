"""The stream of real files: journals that grow meanwhile, restarts, kills, and the findings of the audit of the whole."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import NoJournal, run_directory
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.streaming.journal_follower import FindingsChange
from quarterdeck.backend.pipeline.streaming.stream import StreamDied, Streamed, stream, stream_paths
from tests.pipeline.journal_builder import line
from tests.pipeline.rules.planted import PLANTED
from tests.pipeline.streaming.faulty_runs import faulty_run
from tests.waiting import wait_until

REPOSITORY = Path(__file__).parents[3]
PROGRAM = (
    *(sys.executable, "-c"),
    "from quarterdeck.cli.main import run\nrun()",
    *("pipeline", "stream"),
)
AT_ITS_END = "convergence"
"""A rule about how a run ends, which a stream does not judge."""
TIMEOUT_SECONDS = 60.0


def write_together(root: Path, run: str, records: list[Record]) -> None:
    """Each member into files of its own, several of them."""
    with ExitStack() as writers:
        journals = {
            member: writers.enter_context(JournalWriter(root, run, member))
            for member in sorted({record.member for record in records})
        }
        for record in records:
            journals[record.member].append(record)


def planted_runs(root: Path, names: list[str]) -> None:
    for what in names:
        run = f"planted-{list(PLANTED).index(what)}"
        write_together(root, run, [replace(record, run=run) for record in PLANTED[what].records])


def streamed(
    root: Path, until: Callable[[], bool], on_change: Callable[[FindingsChange], None] = lambda _: None
) -> Streamed:
    """Stream in this thread until another one sees that something is so."""
    stop = threading.Event()

    def watch() -> None:
        give_up = time.monotonic() + TIMEOUT_SECONDS
        while not stop.wait(0.05) and not until() and time.monotonic() < give_up:
            pass
        stop.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return stream(stream_paths(root), stop=stop, on_change=on_change, on_message=lambda _: None, look_ms=200)
    finally:
        stop.set()
        watcher.join()


def finish(root: Path, checkpoint: Path | None = None) -> tuple[Streamed, list[FindingsChange]]:
    changes: list[FindingsChange] = []
    done = stream(
        stream_paths(root, checkpoint=checkpoint),
        stop=threading.Event(),
        on_change=changes.append,
        on_message=lambda _: None,
        once=True,
    )
    return done, changes


def in_file(root: Path) -> list[bytes]:
    path = root / "findings.jsonl"
    return sorted(path.read_bytes().splitlines()) if path.exists() else []


def of_the_whole(root: Path) -> list[bytes]:
    """What the audit says about the journal as it is."""
    runs = [directory for directory in sorted(root.iterdir()) if directory.name.startswith("run=")]
    return sorted(msgspec.json.encode(finding) for finding in audit(runs).findings if finding.rule != AT_ITS_END)


def test_findings_come_while_the_journal_grows_and_over_restarts(tmp_path: Path) -> None:
    third = len(PLANTED) // 3
    names = list(PLANTED)
    told: list[FindingsChange] = []

    def grow() -> bool:
        if not grown.is_set():
            grown.set()
            planted_runs(tmp_path, names[third : 2 * third])
            write_together(tmp_path, "troubled-1", faulty_run("troubled-1", 1)[:100])
        return len(in_file(tmp_path)) >= 2 * third

    grown = threading.Event()
    planted_runs(tmp_path, names[:third])
    streamed(tmp_path, grow, told.append)
    before = in_file(tmp_path)
    assert len(before) >= 2 * third
    assert before == sorted(msgspec.json.encode(finding) for change in told for finding in change.added)

    planted_runs(tmp_path, names[2 * third :])
    write_together(tmp_path, "troubled-1", faulty_run("troubled-1", 1)[100:])
    damaged = run_directory(tmp_path, "troubled-1") / "damaged-000001.jsonl"
    first = line(faulty_run("troubled-1", 1)[0])
    damaged.write_bytes(first.replace(b'"seq"', b'"colour":"red","seq"') + b"no json\n" + first[:40])
    done, _ = finish(tmp_path)
    assert in_file(tmp_path) == of_the_whole(tmp_path)
    assert done.problems == 3  # one of them is not what stands in its place already
    assert done.violations == sum(b'"severity":"violation"' in line for line in in_file(tmp_path))

    assert finish(tmp_path)[1] == []  # nothing new, nothing said twice


def test_troubled_runs_have_the_findings_of_the_audit(tmp_path: Path) -> None:
    for number in range(12):
        write_together(tmp_path, f"troubled-{number}", faulty_run(f"troubled-{number}", number))
    finish(tmp_path)
    assert in_file(tmp_path) == of_the_whole(tmp_path)
    assert in_file(tmp_path)


def test_a_killed_stream_goes_on_where_it_was(tmp_path: Path) -> None:
    names = list(PLANTED)
    planted_runs(tmp_path, names[:10])
    with (tmp_path / "said").open("wb") as said:
        first = subprocess.Popen(
            [*PROGRAM, str(tmp_path)], cwd=REPOSITORY, stdout=said, stderr=said, start_new_session=True
        )
        try:
            wait_until(lambda: len(in_file(tmp_path)) >= 5 or first.poll() is not None)
            planted_runs(tmp_path, names[10:20])
        finally:
            first.kill()
            first.wait()
    assert len(in_file(tmp_path)) >= 5, (tmp_path / "said").read_text()
    planted_runs(tmp_path, names[20:])
    finish(tmp_path)
    assert in_file(tmp_path) == of_the_whole(tmp_path)


@pytest.mark.long
def test_the_command_ends_cleanly_and_its_codes_tell(tmp_path: Path) -> None:
    planted_runs(tmp_path, list(PLANTED)[:3])
    running = subprocess.Popen(
        [*PROGRAM, str(tmp_path)], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        finding = msgspec.json.decode(running.stdout.readline(), type=Finding)
        second = subprocess.run([*PROGRAM, str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True)
        os.kill(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()
    assert (running.returncode, finding.severity) == (130, "violation")
    assert "Traceback" not in said and said.splitlines()[-1].startswith(tuple("0123456789"))
    assert second.returncode == 4
    assert "another stream is running" in second.stderr.splitlines()[-1]

    once = subprocess.run([*PROGRAM, str(tmp_path), "--once"], cwd=REPOSITORY, capture_output=True, text=True)
    assert once.returncode == 1
    wrong = subprocess.run([*PROGRAM, str(tmp_path / "no")], cwd=REPOSITORY, capture_output=True, text=True)
    assert (wrong.returncode, "no such directory" in wrong.stderr) == (2, True)


def test_a_stream_that_dies_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoJournal, match="nowhere"):
        stream_paths(tmp_path / "nowhere")
    planted_runs(tmp_path, list(PLANTED)[:2])
    finish(tmp_path)
    planted_runs(tmp_path, list(PLANTED)[2:4])
    (tmp_path / "_stream" / "all" / "read.jsonl").write_text("no checkpoint\n")
    with pytest.raises(StreamDied, match="to read everything again"):
        streamed(tmp_path, lambda: False)


def test_a_disk_that_refuses_ends_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted_runs(tmp_path, list(PLANTED)[:2])

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device", "read.jsonl")

    with monkeypatch.context() as failing:
        failing.setattr("quarterdeck.backend.pipeline.streaming.journal_follower.StreamCheckpoint.add", refuse)
        with pytest.raises(OSError, match="No space left"):
            streamed(tmp_path, lambda: False)
    finish(tmp_path)
    assert in_file(tmp_path) == of_the_whole(tmp_path)


def test_one_run_alone_odd_names_and_an_empty_journal(tmp_path: Path) -> None:
    root = tmp_path / "odd [name] *%20{a}"
    root.mkdir()

    def grow() -> bool:
        if not run_directory(root, "troubled-3").exists():
            write_together(root, "troubled-3", faulty_run("troubled-3", 3))
        return len(in_file(root)) > 0

    streamed(root, grow)
    assert in_file(root) == of_the_whole(root)
    write_together(root, "troubled-4", faulty_run("troubled-4", 4))
    write_together(root, "troubled-3", [replace(faulty_run("troubled-3", 3)[0], seq=9_000)])
    both = in_file(root)
    finish(run_directory(root, "troubled-3"))
    assert {msgspec.json.decode(line)["run"] for line in in_file(root)} == {"troubled-3"}
    assert in_file(root) != both
    finish(root)
    assert in_file(root) == of_the_whole(root)


def test_a_checkpoint_is_of_one_journal_wherever_that_moves(tmp_path: Path) -> None:
    """Given another journal with runs of the same names, it would pass over what it has not read."""
    first, other, checkpoint = tmp_path / "first", tmp_path / "other", tmp_path / "checkpoint"
    for root in (first, other):
        planted_runs(root, list(PLANTED)[:1])
    finish(first, checkpoint)
    with pytest.raises(StreamDied, match=r"is of another journal, \.\./first; name another checkpoint, or remove"):
        finish(other, checkpoint)
    assert not in_file(other)
    finish(other)
    other.rename(tmp_path / "moved")
    assert finish(tmp_path / "moved")[0].lines == 0


def test_where_nothing_can_be_followed_nothing_is_called_sound(tmp_path: Path) -> None:
    (tmp_path / "loose.jsonl").write_bytes(line(PLANTED[next(iter(PLANTED))].records[0]))
    with pytest.raises(NoJournal, match="no files of runs are in there; `quarterdeck audit` also reads"):
        finish(tmp_path)
    assert not (tmp_path / "_stream").exists()
