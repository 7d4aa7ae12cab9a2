"""The stream of one process: however files come, whatever dies meanwhile, it ends with the findings of the whole journal."""

from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import OPEN_DIRECTORY, OPEN_SUFFIX, file_stem, run_directory
from quarterdeck.backend.pipeline.rules import Finding, by_weight
from quarterdeck.backend.pipeline.streaming.journal_follower import (
    CheckpointGarbled,
    FindingsChange,
    FindingsFile,
    JournalFollower,
    StreamCheckpoint,
)
from tests.pipeline.journal_builder import line
from tests.pipeline.streaming.faulty_runs import faulty_run, sound_run
from tests.pipeline.streaming.written_journal import RUN, Journal, expected


class Stream:
    """A stream that can die: what is on disk stays, and what is in memory goes."""

    def __init__(self, root: Path, path: Path | None = None) -> None:
        self.root, self.path = root, path or root
        self.said: list[str] = []
        self.changes: list[FindingsChange] = []
        self.now_ms = 100_000
        self.start()

    def start(self) -> None:
        self.checkpoint = StreamCheckpoint(self.root / "_stream", self.root)
        self.findings = FindingsFile(self.root / "findings.jsonl")
        self.follower = JournalFollower(
            self.path, self.checkpoint, self.findings, self.changes.append, self.said.append
        )

    def look(self, after_ms: int = 250) -> None:
        self.now_ms += after_ms
        self.follower.look(self.now_ms)

    def settle(self) -> None:
        for _ in range(8):
            self.look(10_000)

    @property
    def found(self) -> list[Finding]:
        return by_weight(self.findings.of_run(RUN))


@pytest.mark.parametrize("seed", range(25))
def test_whatever_the_order_of_records_and_whatever_dies(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    journal = Journal(tmp_path, faulty_run(RUN, seed))
    stream = Stream(tmp_path)
    pending = list(journal.records)
    while pending or journal.writing:
        action = draw.random()
        if action < 0.5 and pending:  # not in the order of time: some member is far behind
            writer = draw.choice(sorted({record.member for record in pending}))
            own = [record for record in pending if record.member == writer][: draw.randint(1, 40)]
            for record in own:
                journal.write(record)
                pending.remove(record)
        elif action < 0.7 and journal.writing:
            journal.seal(draw.choice(journal.writing))
        elif action < 0.95:
            stream.look(draw.choice((250, 1_000, 4_000)))
        else:
            stream.start()
    stream.settle()
    assert stream.found == expected(journal)
    assert stream.checkpoint.runs()[RUN] == {
        writer: f"1-{last}" if last > 1 else "1" for writer, last in journal._numbers.items()
    }
    assert [
        msgspec.json.decode(found, type=Finding) for found in (tmp_path / "findings.jsonl").read_bytes().splitlines()
    ] == [*stream.findings.of_run(RUN)]
    stream.start()
    before = len(stream.changes)
    stream.settle()
    assert len(stream.changes) == before, "nothing is said twice"


@pytest.mark.parametrize("seed", range(10))
def test_members_that_write_as_things_happen_are_never_judged_anew(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    journal = Journal(tmp_path, faulty_run(RUN, seed))
    stream = Stream(tmp_path)
    for record in journal.records:
        journal.write(record)
        if draw.random() < 0.2:
            journal.seal(draw.choice(journal.writing))
        if draw.random() < 0.2:
            stream.look(10)
        if draw.random() < 0.01:
            stream.start()
    journal.seal_all()
    stream.settle()
    assert stream.found == expected(journal)
    assert stream.said == []


@pytest.mark.parametrize("causes_are_named", [True, False])
def test_what_comes_late_withdraws_what_does_not_hold(tmp_path: Path, causes_are_named: bool) -> None:
    """Where causes are named, records whose causes are missing already show that the run has to be judged as a whole."""
    records = [replace(record, run=RUN, because=record.because if causes_are_named else None) for record in sound_run()]
    journal = Journal(tmp_path, records)
    stream = Stream(tmp_path)
    for record in records:
        if record.member != "n2":
            journal.write(record)
    stream.settle()
    assert stream.found
    for record in records:
        if record.member == "n2":
            journal.write(record)
    journal.seal_all()
    stream.settle()
    assert stream.found == expected(journal)
    assert sum(len(change.withdrawn) for change in stream.changes) > 0
    assert any("judged anew" in text for text in stream.said) is not causes_are_named


def test_an_end_without_waiting_takes_what_is_open(tmp_path: Path) -> None:
    journal = Journal(tmp_path, faulty_run(RUN, 4))
    stream = Stream(tmp_path)
    for record in journal.records:
        journal.write(record)
    with (tmp_path / OPEN_DIRECTORY / f"torn-000001{OPEN_SUFFIX}").open("wb") as torn:
        torn.write(line(journal.records[0])[:50])
    journal.seal("n1")
    stream.follower.look(stream.now_ms, at_once=True)
    journal.seal_all()
    assert stream.found == expected(journal)


def test_lines_that_are_no_records_are_reported_once_and_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path, faulty_run(RUN, 1))
    stream = Stream(tmp_path)
    for record in journal.records:
        journal.write(record)
    journal.seal_all()
    stream.settle()
    known = journal.records[0]
    newer = line(known).replace(b'"seq"', b'"colour":"red","seq"')  # not the line that is known
    foreign = line(replace(known, run="another"))
    damaged = journal.directory / "torn-000001.jsonl"
    damaged.write_bytes(newer + b"no json\n" + foreign + line(known)[:40])
    stream.settle()
    assert stream.found == expected(journal)
    assert stream.follower.problems == 4
    assert sorted(text.split("' ", 1)[1] for text in stream.said) == [
        f"contradicts another event with the same identity, uuid {known.uuid} seq {known.seq}",
        "is of another run, 'another'",
        *2 * ("torn, no JSON, or a value of the wrong type",),
    ]
    stream.start()
    (journal.directory / "torn-000002.jsonl").write_bytes(line(known))
    stream.settle()
    assert (stream.follower.problems, stream.follower.lines) == (0, 1), "what came before is known after a restart"


def test_a_torn_end_of_the_checkpoint_and_of_the_findings_is_forgotten(tmp_path: Path) -> None:
    journal = Journal(tmp_path, faulty_run(RUN, 2))
    stream = Stream(tmp_path)
    for record in journal.records:
        journal.write(record)
    journal.seal_all()
    stream.settle()
    found = stream.found
    for path in (tmp_path / "findings.jsonl", tmp_path / "_stream" / "read.jsonl"):
        content = path.read_bytes()
        path.write_bytes(content[: content.rstrip(b"\n").rfind(b"\n") + 9])  # its last line was half written
    stream.start()
    stream.settle()
    assert stream.found == found == expected(journal)


def test_a_garbled_checkpoint_is_reported_with_its_remedy(tmp_path: Path) -> None:
    checkpoint = tmp_path / "_stream" / "read.jsonl"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b'{"run":"a","read":{"x":"1"}}\n\x00\xffgarbage\n')
    with pytest.raises(CheckpointGarbled, match=f"line 2 was not written by a stream; remove {checkpoint.parent} to"):
        StreamCheckpoint(checkpoint.parent, tmp_path)


def test_many_runs_are_put_aside_and_taken_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quarterdeck.backend.pipeline.streaming.journal_follower.MAX_RUNS_IN_MEMORY", 2)
    stream = Stream(tmp_path)
    halves: list[tuple[Path, list[Record]]] = []
    for number in range(5):
        records = faulty_run(f"r{number}", number)
        directory = run_directory(tmp_path, f"r{number}")
        directory.mkdir()
        middle = len(records) // 2
        halves.append((directory, records[middle:]))
        (directory / f"{file_stem('all', 1)}.jsonl").write_bytes(b"".join(map(line, records[:middle])))
        stream.settle()
    assert len(stream.follower._runs) == 2
    for directory, records in halves:
        (directory / f"{file_stem('all', 2)}.jsonl").write_bytes(b"".join(map(line, records)))
        stream.settle()
    whole = Stream(tmp_path / "whole", tmp_path) if (tmp_path / "whole").mkdir() is None else stream
    whole.settle()
    for number in range(5):
        assert by_weight(stream.findings.of_run(f"r{number}")) == by_weight(whole.findings.of_run(f"r{number}"))


def test_of_one_run_only_that_one_is_looked_at(tmp_path: Path) -> None:
    journal = Journal(tmp_path, faulty_run(RUN, 4))
    for record in journal.records:
        journal.write(record)
    journal.seal("n1")
    run_directory(tmp_path, "other").mkdir()
    stream = Stream(tmp_path, run_directory(tmp_path, "other"))
    about_other = replace(expected(journal)[0], run="other")
    stream.findings.state("other", [about_other])
    stream.settle()
    assert (stream.findings.of_run("other"), stream.found, stream.follower.lines) == ((about_other,), [], 0)


def test_a_file_of_another_name_is_not_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path, faulty_run(RUN, 3))
    stream = Stream(tmp_path)
    for record in journal.records:
        journal.write(record)
    journal.seal_all()
    (journal.directory / "copy.jsonl").write_bytes(b"no record\n")
    stream.settle()
    assert (stream.found, stream.follower.problems) == (expected(journal), 0)
