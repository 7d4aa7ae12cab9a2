"""Logs read for their events only tell the same as logs that are read whole."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs import skimming
from quarterdeck.backend.hazelcast.logs.lines.envelope import strip_envelope
from quarterdeck.backend.hazelcast.logs.lines.file_splits import plan_splits, whole_file
from quarterdeck.backend.hazelcast.logs.log_files import NoLogs
from quarterdeck.backend.hazelcast.logs.skimming import skim
from quarterdeck.backend.hazelcast.logs.split_parser import EventMessage, LogOptions, SplitSummary, parse_split
from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.judgement.observations.run_reader import LogLine, ReadProgress, RecordsRead, RunRead, read_run
from tests.hazelcast.logs.test_envelopes import docker_json_of_containers, dressed, journald

HERE = Path(__file__).parent
DATA = HERE / "data"
RUNS = sorted(folder.name for folder in DATA.iterdir() if folder.is_dir())
OPTIONS = LogOptions(date="2026-11-21")


def whole(file: Path) -> list[EventMessage]:
    found = parse_split(whole_file(file), OPTIONS)
    return sorted((message for message in found if isinstance(message, EventMessage)), key=lambda one: one.offset)


def skimmed(file: Path) -> list[EventMessage]:
    found = skim(whole_file(file), OPTIONS, lambda _: None)
    return sorted((message for message in found if isinstance(message, EventMessage)), key=lambda one: one.offset)


def told(folder: Path) -> Iterator[tuple[Record, LogLine]]:
    for news in read_run(folder):
        if isinstance(news, RecordsRead):
            yield from zip(news.records, news.lines, strict=True)


@pytest.mark.parametrize("file", sorted(HERE.rglob("*.log")), ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_message_that_makes_an_event_is_found(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the beginning and the end that are read whole are short, and with blocks of a few lines."""
    expected = whole(file)
    assert skimmed(file) == expected
    monkeypatch.setattr(skimming, "END_BYTES", 200)
    monkeypatch.setattr(skimming, "BLOCK_BYTES", 8_000)
    monkeypatch.setattr(skimming, "CARRIED_BYTES", 6_000)
    # Where the clock of a member steps back for a moment, that is seen only by who reads every line.
    places = [(message.offset, message.number, message.utc, message.member, message.text) for message in skimmed(file)]
    assert places == [
        (message.offset, message.number, message.utc, message.member, message.text) for message in expected
    ]


@pytest.mark.parametrize(
    "file", sorted(DATA.glob("split-and-merge*/*.log")), ids=lambda file: f"{file.parent.name}/{file.name}"
)
@pytest.mark.parametrize("split_bytes", [1_000, 9_973])
def test_what_is_found_in_splits_is_what_is_there(
    file: Path, split_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message is in one split, with its number there, and each line is counted in one."""
    monkeypatch.setattr(skimming, "END_BYTES", 200)
    monkeypatch.setattr(skimming, "BLOCK_BYTES", 8_000)
    monkeypatch.setattr(skimming, "CARRIED_BYTES", 6_000)
    for split in plan_splits([file], split_bytes):
        expected, found = list(parse_split(split, OPTIONS)), list(skim(split, OPTIONS, lambda _: None))
        places = [
            sorted((it.offset, it.number, it.utc, it.member, it.text) for it in many if isinstance(it, EventMessage))
            for many in (expected, found)
        ]
        assert places[0] == places[1]
        lines = [it.lines for many in (expected, found) for it in many if isinstance(it, SplitSummary)]
        assert lines[0] == lines[1]


def test_what_another_program_logs_in_the_same_words_is_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is any message of the product missed beside it: by its prefix, its loggers, its threads."""
    monkeypatch.setattr(skimming, "END_BYTES", 200)
    ours = (DATA / "split-and-merge-log4j2" / "h1.log").read_text()
    foreign = (
        "2026-11-21 12:27:00,000 INFO [exec-3] [o.e.shop.Sessions] Removing expired session 7, merging its basket\n"
    )
    heads = [line for line in ours.splitlines(keepends=True) if line.startswith("2026-")]
    (tmp_path / "h1.log").write_text(foreign * 50 + ours.replace(heads[-1], foreign * 50 + heads[-1]) + foreign * 50)
    parsed: list[str] = []
    given = strip_envelope
    monkeypatch.setattr(skimming, "strip_envelope", lambda line, form: parsed.append(line) or given(line, form))
    found = skimmed(tmp_path / "h1.log")
    assert [message.text for message in found] == [
        message.text for message in skimmed(DATA / "split-and-merge-log4j2" / "h1.log")
    ]
    assert sum(line == foreign for line in parsed) < 60


@pytest.mark.parametrize("run", ["split-and-merge", "split-and-merge-log4j2"])
@pytest.mark.parametrize("dress", [docker_json_of_containers, journald])
@pytest.mark.parametrize("end_bytes", [200, 1 << 16])
def test_it_is_found_where_the_lines_of_several_members_take_turns(
    run: str, dress: Callable[[str, str], str], end_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the time of a message stands in the line before, with lines of others between the two."""
    monkeypatch.setattr(skimming, "END_BYTES", end_bytes)
    (file,) = dressed(run, tmp_path / "logs", dress, one_file=True).iterdir()
    expected = {(record.offset, record.utc, record.member, record.text) for record in whole(file)}
    assert {(message.offset, message.utc, message.member, message.text) for message in skimmed(file)} == expected


@pytest.mark.parametrize("run", RUNS)
def test_a_run_has_the_records_and_the_story_of_its_logs(run: str) -> None:
    *_, end = read_run(DATA / run)
    found = sorted((record for record, _ in told(DATA / run)), key=lambda one: (one.member, one.uuid, one.seq))
    expected = read_logs([DATA / run])
    assert found == sorted(expected.records, key=lambda one: (one.member, one.uuid, one.seq))
    assert isinstance(end, RunRead)
    assert [end.story] == list(expected.stories)


def test_each_record_has_the_line_that_told_it() -> None:
    for record, line in told(DATA / "split-and-merge"):
        text = Path(line.file).read_bytes()
        assert text[line.offset :].startswith(text.splitlines()[line.line - 1])
        if type(record.event).__name__ == "ListInstalled":
            assert b"Members {size" in text[line.offset : line.offset + 400]
        if type(record.event).__name__ == "MemberStarted":
            assert b"starting at" in text[line.offset : line.offset + 400] or b"Resetting local" in text[line.offset :]


def test_progress_is_told_and_packed_files_are_read(tmp_path: Path) -> None:
    for log in sorted((DATA / "split-and-merge").glob("*.log")):
        (tmp_path / f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    news = list(read_run(tmp_path, LogOptions(run="split-and-merge")))
    assert any(isinstance(part, ReadProgress) and part.done for part in news)
    records = [record for part in news if isinstance(part, RecordsRead) for record in part.records]
    assert len(records) == len(list(told(DATA / "split-and-merge")))


def test_many_members_in_one_file_are_one_run(tmp_path: Path) -> None:
    together = tmp_path / "all.log"
    together.write_bytes(b"".join(log.read_bytes() for log in sorted((DATA / "split-and-merge").glob("*.log"))))
    assert len({record.member for record, _ in told(together)}) == 5


def test_members_that_log_in_folders_of_their_own_are_one_run(tmp_path: Path) -> None:
    for log in sorted((DATA / "split-and-merge").glob("*.log")):
        (tmp_path / log.stem).mkdir()
        (tmp_path / log.stem / "hazelcast.log").write_bytes(log.read_bytes())
    records = [record for record, _ in told(tmp_path)]
    assert {record.run for record in records} == {tmp_path.name}
    assert len({record.member for record in records}) == 5


def test_several_runs_and_what_is_no_log_are_refused_with_words(tmp_path: Path) -> None:
    with pytest.raises(NoLogs, match="several runs; name one of"):
        list(read_run(DATA))
    (tmp_path / "notes.txt").write_text("milk, eggs\n")
    with pytest.raises(NoLogs, match="not a journal"):
        list(read_run(tmp_path))
