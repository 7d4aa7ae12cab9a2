"""The live audit without Spark: however files come, whatever dies meanwhile, it ends with the findings of the whole journal."""

from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import OPEN_DIRECTORY, OPEN_SUFFIX, file_stem, run_directory
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.streaming.live_audit import JournalLine, LiveAudit
from quarterdeck.backend.pipeline.streaming.run_audit import ReadRecord, RecordPosition, RunAudit
from quarterdeck.backend.pipeline.streaming.stream_files import (
    CheckpointGarbled,
    FindingsChange,
    FindingsFile,
    ProcessedFiles,
)
from quarterdeck.backend.pipeline.streaming.watermark import STALLED_SECONDS
from tests.pipeline.journal_builder import line
from tests.pipeline.streaming.faulty_runs import faulty_run, sound_run

RUN = "troubled"


class Reader:
    """A stream that can die: what is on disk stays, what is in memory goes, and what was given last is given again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.said: list[str] = []
        self.changes: list[FindingsChange] = []
        self.now_s = 100.0
        self._last: list[Path] = []
        self._start()

    def _start(self) -> None:
        self.processed_files = ProcessedFiles(self.root / "_stream")
        self.findings = FindingsFile(self.root / "findings.jsonl")
        self.audit = LiveAudit(self.root, self.processed_files, self.findings, self.changes.append, self.said.append)

    def give(self, files: list[Path]) -> None:
        self._last = files
        lines = (JournalLine(file, raw) for file in files for raw in file.read_bytes().splitlines())
        self.audit.read(lines, self.now_s)

    def judge_due(self, after_s: float = 0.25) -> None:
        self.now_s += after_s
        self.audit.judge_due(self.now_s)

    def die(self) -> None:
        self._start()
        self.give(self._last)

    def restart(self) -> None:
        self._start()

    def settle(self) -> None:
        for _ in range(3):
            self.judge_due(STALLED_SECONDS)

    @property
    def found(self) -> list[Finding]:
        return sorted(self.findings.of_run(RUN), key=msgspec.json.encode)


class Journal:
    """Files as the members of a run write them, each its own; `n1` writes what was done to the cluster, too."""

    def __init__(self, root: Path, records: list[Record]) -> None:
        self.root = root
        self.directory = run_directory(root, RUN)
        self.directory.mkdir(parents=True)
        (root / OPEN_DIRECTORY).mkdir()
        self.records = records
        self.sealed: list[Path] = []
        self._numbers: dict[str, int] = {}
        self._open: dict[str, Path] = {}

    def write(self, record: Record) -> None:
        writer = record.member
        if writer not in self._open:
            number = self._numbers[writer] = self._numbers.get(writer, 0) + 1
            self._open[writer] = self.root / OPEN_DIRECTORY / f"{file_stem(writer, number)}{OPEN_SUFFIX}"
        with self._open[writer].open("ab") as file:
            file.write(line(record))

    def seal(self, writer: str) -> None:
        if file := self._open.pop(writer, None):
            self.sealed.append(file.rename(self.directory / file.name.removesuffix(".open")))

    def seal_all(self) -> None:
        for writer in sorted(self._open):
            self.seal(writer)

    @property
    def writing(self) -> list[str]:
        return sorted(self._open)


def expected(journal: Journal) -> list[Finding]:
    """What there is to find when all files are there from the beginning."""
    audit = RunAudit(RUN)
    decode = msgspec.json.Decoder(Record).decode
    for file in journal.sealed:
        lines = enumerate(file.read_bytes().splitlines(), start=1)
        audit.add(
            ReadRecord(RecordPosition((one := decode(raw)).at, file.name, number), one, 0) for number, raw in lines
        )
    audit.judge()
    assert not audit.is_out_of_order and not audit.waits
    return sorted(audit.findings(journal.directory), key=msgspec.json.encode)


@pytest.mark.parametrize("seed", range(25))
def test_whatever_the_order_of_files_and_whatever_dies(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    journal = Journal(tmp_path, faulty_run(RUN, seed))
    reader = Reader(tmp_path)
    given = 0
    pending = list(journal.records)
    while pending or journal.writing or given < len(journal.sealed):
        draw_of_action = draw.random()
        if draw_of_action < 0.5 and pending:  # not in the order of time: somebody is far behind
            writer = draw.choice(sorted({record.member for record in pending}))
            own = [record for record in pending if record.member == writer][: draw.randint(1, 40)]
            for record in own:
                journal.write(record)
                pending.remove(record)
        elif draw_of_action < 0.7 and journal.writing:
            journal.seal(draw.choice(journal.writing))
        elif draw_of_action < 0.8 and given < len(journal.sealed):
            many = min(draw.randint(1, 3), len(journal.sealed) - given)
            reader.give(journal.sealed[given : given + many])
            given += many
        elif draw_of_action < 0.95:
            reader.judge_due(draw.choice((0.25, 1.0, 4.0)))
        else:
            draw.choice((reader.die, reader.restart))()
    reader.settle()
    assert reader.found == expected(journal)
    assert reader.processed_files.unsettled() == ()
    assert [
        msgspec.json.decode(one, type=Finding) for one in (tmp_path / "findings.jsonl").read_bytes().splitlines()
    ] == [*reader.findings.of_run(RUN)]


@pytest.mark.parametrize("seed", range(10))
def test_members_that_write_as_things_happen_are_never_judged_anew(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    journal = Journal(tmp_path, faulty_run(RUN, seed))
    reader = Reader(tmp_path)
    given = 0
    for record in journal.records:
        journal.write(record)
        if draw.random() < 0.2:
            journal.seal(draw.choice(journal.writing))
        if draw.random() < 0.1:
            many = draw.randint(0, len(journal.sealed) - given)
            reader.give(journal.sealed[given : given + many])
            given += many
        if draw.random() < 0.2:
            reader.judge_due(0.01)
        if draw.random() < 0.01:
            draw.choice((reader.die, reader.restart))()
    journal.seal_all()
    reader.give(journal.sealed[given:])
    reader.settle()
    assert reader.found == expected(journal)
    assert reader.said == []


def test_a_frozen_member_holds_nobody_up(tmp_path: Path) -> None:
    records = faulty_run(RUN, 3)
    journal = Journal(tmp_path, records)
    reader = Reader(tmp_path)
    for record in records:
        journal.write(record)
    for writer in journal.writing:
        if writer != "n2":
            journal.seal(writer)
    reader.give(journal.sealed)
    reader.judge_due()
    reader.judge_due(1.0)
    assert reader.found == []  # n2 may write what happened first, so nothing is judged
    reader.judge_due(STALLED_SECONDS)
    frozen = reader.found
    journal.seal_all()
    assert frozen == expected(journal)
    reader.give(journal.sealed[-1:])  # awake again
    reader.settle()
    assert (reader.found, reader.said) == (frozen, [])


def test_what_comes_late_withdraws_what_does_not_hold(tmp_path: Path) -> None:
    records = [msgspec.structs.replace(record, run=RUN) for record in sound_run()]
    journal = Journal(tmp_path, records)
    reader = Reader(tmp_path)
    for record in records:
        if record.member != "n2":
            journal.write(record)
    journal.seal_all()
    reader.give(journal.sealed)
    reader.settle()
    assert reader.found
    for record in records:
        if record.member == "n2":
            journal.write(record)
    journal.seal_all()
    reader.give(journal.sealed[-1:])
    reader.settle()
    assert reader.found == expected(journal)
    assert sum(len(change.withdrawn) for change in reader.changes) > 0
    assert [text for text in reader.said if "judged anew" in text]


def test_an_end_without_waiting_takes_what_is_open(tmp_path: Path) -> None:
    journal = Journal(tmp_path, faulty_run(RUN, 4))
    reader = Reader(tmp_path)
    for record in journal.records:
        journal.write(record)
    with (tmp_path / OPEN_DIRECTORY / f"torn-000001{OPEN_SUFFIX}").open("wb") as torn:
        torn.write(line(journal.records[0])[:50])
    journal.seal("n1")
    reader.give(journal.sealed)
    reader.audit.finish()
    journal.seal_all()
    assert reader.found == expected(journal)


def test_lines_that_are_no_records_are_told_and_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path, faulty_run(RUN, 1))
    reader = Reader(tmp_path)
    for record in journal.records:
        journal.write(record)
    journal.seal_all()
    torn = journal.directory / "torn-000001.jsonl"
    newer = line(journal.records[0]).replace(b'"seq"', b'"colour":"red","seq"')  # not the line that is known
    foreign = line(msgspec.structs.replace(journal.records[0], run="another"))
    torn.write_bytes(newer + b"no json\n" + foreign + line(journal.records[0])[:40])
    reader.give([*journal.sealed, torn])
    reader.settle()
    assert reader.found == expected(journal)
    assert reader.audit.problems == 4
    known = journal.records[0]
    assert sorted(text.split(": ", 1)[1] for text in reader.said) == [
        f"line 1 contradicts the event {known.seq} of {known.uuid}, which occurs elsewhere too",
        "line 2 is not a record, or none that this version knows",
        "line 3 is of another run, 'another'",
        "line 4 is not a record, or none that this version knows",
    ]


def test_a_torn_end_of_the_account_and_of_the_findings_is_forgotten(tmp_path: Path) -> None:
    journal = Journal(tmp_path, faulty_run(RUN, 2))
    reader = Reader(tmp_path)
    for record in journal.records:
        journal.write(record)
    journal.seal_all()
    reader.give(journal.sealed)
    reader.settle()
    found = reader.found
    for path in (tmp_path / "findings.jsonl", tmp_path / "_stream" / "consumed.jsonl"):
        content = path.read_bytes()
        path.write_bytes(content[: content.rstrip(b"\n").rfind(b"\n") + 9])  # its last line was half written
    reader.die()
    reader.settle()
    assert reader.found == found == expected(journal)


def test_a_garbled_account_is_told_with_its_remedy(tmp_path: Path) -> None:
    account = tmp_path / "_stream" / "consumed.jsonl"
    account.parent.mkdir()
    account.write_bytes(b'{"run":"a","files":["x-1.jsonl"]}\n\x00\xffgarbage\n')
    with pytest.raises(CheckpointGarbled, match=f"line 2 was not written by a stream; remove {account.parent} to"):
        ProcessedFiles(account.parent)


def test_many_runs_are_put_aside_and_taken_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quarterdeck.backend.pipeline.streaming.live_audit.MAX_RUNS_IN_MEMORY", 2)
    reader = Reader(tmp_path)
    halves: list[tuple[Path, list[Record]]] = []
    for number in range(5):
        records = faulty_run(f"r{number}", number)
        directory = run_directory(tmp_path, f"r{number}")
        directory.mkdir()
        middle = len(records) // 2
        halves.append((directory, records[middle:]))
        first = directory / "all-000001.jsonl"
        first.write_bytes(b"".join(map(line, records[:middle])))
        reader.give([first])
        reader.settle()
    assert len(reader.audit._runs) == 2
    for directory, records in halves:
        second = directory / "all-000002.jsonl"
        second.write_bytes(b"".join(map(line, records)))
        reader.give([second])
        reader.settle()
    for number in range(5):
        audit = RunAudit(f"r{number}")
        records = faulty_run(f"r{number}", number)
        audit.add(
            ReadRecord(RecordPosition(record.at, "all", place), record, 0) for place, record in enumerate(records)
        )
        audit.judge()
        found = audit.findings(run_directory(tmp_path, f"r{number}"))
        assert sorted(reader.findings.of_run(f"r{number}"), key=msgspec.json.encode) == sorted(
            found, key=msgspec.json.encode
        )


def test_what_contradicts_an_earlier_record_is_told_and_left_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path, [replace(record, run=RUN) for record in sound_run()])
    reader = Reader(tmp_path)
    for record in journal.records:
        journal.write(record)
    journal.seal_all()
    reader.give(journal.sealed)
    reader.settle()
    assert reader.audit.problems == 0
    again = journal.directory / "again-000001.jsonl"
    one = journal.records[3]
    again.write_bytes(line(one) + line(replace(one, at=one.at + 1)))
    reader.give([again])
    reader.settle()
    assert reader.audit.problems == 1
    assert reader.said == [
        f"run {RUN}, {again.name}: line 2 contradicts the event {one.seq} of {one.uuid}, which occurs elsewhere too"
    ]
    reader.restart()
    reader.give([again])
    assert reader.audit.problems == 1, "what came before is known after a restart"


def test_of_one_run_only_that_one_is_looked_at(tmp_path: Path) -> None:
    journal = Journal(tmp_path, faulty_run(RUN, 4))
    for record in journal.records:
        journal.write(record)
    journal.seal("n1")
    run_directory(tmp_path, "other").mkdir()
    findings = FindingsFile(tmp_path / "findings.jsonl")
    about_other = replace(expected(journal)[0], run="other")
    findings.state("other", [about_other])
    audit = LiveAudit(tmp_path, ProcessedFiles(tmp_path / "_stream"), findings, lambda _: None, lambda _: None, "other")
    audit.judge_due(100.0)
    audit.judge_due(100.0 + STALLED_SECONDS)
    audit.finish()
    assert (findings.of_run("other"), findings.of_run(RUN), audit.lines) == ((about_other,), (), 0)


def test_a_file_that_the_stream_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    journal = Journal(tmp_path, faulty_run(RUN, 3))
    reader = Reader(tmp_path)
    for record in journal.records:
        journal.write(record)
    journal.seal_all()
    (journal.directory / "copy.jsonl").write_bytes(line(journal.records[0]))
    reader.give(journal.sealed)
    reader.settle()
    assert reader.found == expected(journal)
