"""Members' logs as a recorded run: what is read, what is shown of it, and logs that are still written."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quarterdeck.backend.clusters.follower import Follower
from quarterdeck.backend.clusters.observed_story import story_landmarks
from quarterdeck.backend.clusters.recorded import log_reading
from quarterdeck.backend.clusters.recorded.log_lines import RunExists, excerpt_of, import_run
from quarterdeck.backend.clusters.recorded.recorded_cluster import RecordedCluster
from quarterdeck.backend.clusters.recorded.recorded_run import LogCluster, LoggedCluster, recorded_run
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.invariants import Violation
from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.picture.fold.picture import Picture
from tests.clusters.recorded.test_recorded_cluster import records_of, write
from tests.waiting import wait_until

DATA = Path(__file__).parents[2] / "hazelcast" / "logs" / "data"
SPLIT = DATA / "split-and-merge"


@pytest.fixture
def opened() -> Iterator[Callable[..., LogCluster]]:
    clusters: list[LogCluster] = []

    def open_logs(path: Path, *, follow: bool = False) -> LogCluster:
        clusters.append(LogCluster(path, follow=follow))
        return clusters[-1]

    yield open_logs
    for cluster in clusters:
        cluster.close()


def all_of(cluster: LogCluster) -> list[Record]:
    records: list[Record] = []
    wait_until(lambda: records.extend(cluster.drain()) or cluster.complete)
    return records


def test_records_lines_and_observations(opened: Callable[..., LogCluster]) -> None:
    cluster = opened(DATA / "flapping")
    records = all_of(cluster)
    expected = read_logs([DATA / "flapping"])
    assert sorted(map(repr, records)) == sorted(map(repr, expected.records))
    assert [record.at for record in records] == sorted(record.at for record in records)
    assert cluster.labels == ("10.78.0.1:5701", "10.78.0.2:5701", "10.78.0.3:5701", "10.78.0.4:5701")
    assert cluster.notes()[0].startswith("4 members log here, from 2026-11-22 16:56:18 to 2026-11-22 16:58:31 UTC")
    assert any("(h1.log:74)" in note for note in cluster.notes())
    assert [mark.text for mark in story_landmarks(cluster.story)] == [
        observation.headline for observation in expected.stories[0].observations
    ]
    assert cluster.now_us() >= records[-1].at


def test_a_line_is_shown_with_its_message_marked(opened: Callable[..., LogCluster]) -> None:
    cluster = opened(SPLIT)
    installed = [record for record in all_of(cluster) if isinstance(record.event, ListInstalled)][-1]
    line = cluster.line_of(installed)
    assert line is not None and cluster.place_of(installed) == f"{Path(line.file).name}:{line.line}"
    excerpt = excerpt_of(line)
    told = [excerpt.lines[number - excerpt.first] for number in excerpt.message]
    assert told[3] == "Members {size:5, ver:9} [" and told[-1] == "]"
    assert excerpt.lines == tuple(Path(line.file).read_text().expandtabs(4).splitlines())

    with pytest.raises(OSError, match="No such file"):
        excerpt_of(type(line)("/nowhere/h1.log", 1, 0))


def test_much_is_read_in_a_process_of_its_own(
    opened: Callable[..., LogCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = all_of(opened(SPLIT))
    monkeypatch.setattr(log_reading, "IN_THREAD_BYTES", 0)
    assert all_of(opened(SPLIT)) == here


def test_what_went_wrong_is_a_note(opened: Callable[..., LogCluster], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk, eggs\n")
    cluster = opened(tmp_path)
    all_of(cluster)
    assert cluster.notes()[0].startswith("reading stopped: ") and "not a journal" in cluster.notes()[0]


def test_what_is_there_is_found_out(tmp_path: Path) -> None:
    write(tmp_path / "journal", "r", "one", records_of("r", 3))
    assert isinstance(recorded_run(tmp_path / "journal"), RecordedCluster)
    for path in (SPLIT, SPLIT / "h1.log"):
        cluster = recorded_run(path)
        assert isinstance(cluster, LogCluster)
        cluster.close()
    for path, said in ((DATA, "several runs"), (tmp_path / "none", "no such file"), (Path(__file__), "not a journal")):
        with pytest.raises(NoJournal, match=said):
            recorded_run(path)
    with pytest.raises(NoJournal, match="only members' logs can be followed"):
        recorded_run(tmp_path / "journal", follow=True)


def test_imported_logs_are_a_journal_of_the_same_records(tmp_path: Path, opened: Callable[..., LogCluster]) -> None:
    options = LogOptions(run="incident")
    *_, observed = import_run(SPLIT, tmp_path, options)
    assert "were apart" in observed
    journal = RecordedCluster(tmp_path)
    records: list[Record] = []
    following = Follower(journal)
    wait_until(lambda: records.extend(following.follow()) or journal.complete)
    from_logs = all_of(opened(SPLIT))
    assert [(record.uuid, record.seq, record.at, record.event) for record in records] == [
        (record.uuid, record.seq, record.at, record.event) for record in from_logs
    ]
    assert following.story is not None
    assert [observation.kind for observation in following.story.observations] == ["halves-apart"]
    with pytest.raises(RunExists, match="--run"):
        list(import_run(SPLIT, tmp_path, options))


def test_an_imported_journal_still_knows_its_lines_and_what_was_observed(
    tmp_path: Path, opened: Callable[..., LogCluster]
) -> None:
    list(import_run(SPLIT, tmp_path, LogOptions(run="incident")))
    logs = opened(SPLIT)
    from_logs = all_of(logs)
    for path in (tmp_path, tmp_path / "run=incident", next((tmp_path / "run=incident").glob("*.jsonl"))):
        imported = recorded_run(path)
        assert isinstance(imported, LoggedCluster)
        records: list[Record] = []
        wait_until(lambda records=records, it=imported: records.extend(it.drain()) or it.complete)
        assert [imported.line_of(record) for record in records] == [logs.line_of(record) for record in from_logs]
        assert imported.place_of(records[0]) == logs.place_of(from_logs[0]) != ""
        assert len(imported.story.observations) == len(logs.story.observations) > 0
        assert story_landmarks(imported.story) == story_landmarks(logs.story) and imported.notes() == logs.notes()
    (tmp_path / "run=incident" / "logs.json").write_text("{")
    assert not isinstance(recorded_run(tmp_path), LoggedCluster)


def test_only_what_witnesses_prove_is_watched(opened: Callable[..., LogCluster]) -> None:
    """Flapping members seem to break the rules of mastership, for their logs do not tell everything."""
    from quarterdeck.backend.clusters.invariant_monitor import InvariantMonitor

    monitor = InvariantMonitor()
    monitor.take(all_of(opened(DATA / "flapping")), 10**12)
    found: tuple[Violation, ...] = tuple(monitor.violations)
    assert found == ()


# Logs that are still written


def grown(folder: Path, share: float, done: float = 0.0) -> None:
    """Every member has logged so much of what it is going to."""
    for log in sorted(SPLIT.glob("*.log")):
        text = log.read_bytes()
        with (folder / log.name).open("ab") as out:
            out.write(text[round(len(text) * done) : round(len(text) * share)])


def picture_of(records: list[Record]) -> Picture:
    picture = Picture()
    for record in records:
        picture.apply(record)
    return picture


@pytest.mark.parametrize("how", ["grows", "rotates", "cut off"])
def test_logs_that_grow_are_followed(
    how: str, tmp_path: Path, opened: Callable[..., LogCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reading, "LOOK_SECONDS", 0.02)
    grown(tmp_path, 0.6)
    cluster = opened(tmp_path, follow=True)
    records: list[Record] = []
    wait_until(lambda: records.extend(cluster.drain()) or bool(records))
    before = len(records)
    if how == "rotates":
        (tmp_path / "h1.log").rename(tmp_path / "h1.log.1")
        (tmp_path / "h1.log").touch()
    elif how == "cut off":
        shutil.copyfile(tmp_path / "h1.log", tmp_path.parent / "kept.log")
        (tmp_path / "h1.log").write_text("")
        wait_until(lambda: records.extend(cluster.drain()) or True)
    grown(tmp_path, 1.0, 0.6)
    wait_until(lambda: records.extend(cluster.drain()) or (len(picture_of(records).members) == 5 and merged(records)))
    assert len(records) > before and not cluster.complete
    if how == "grows":
        numbered = {(record.uuid, record.seq) for record in records}
        assert len(numbered) == len(records)
        told = {repr(record.event) for record in read_logs([SPLIT]).records}
        assert {repr(record.event) for record in records} == told
    wait_until(lambda: cluster.drain() or any("were apart" in note for note in cluster.notes()))


def merged(records: list[Record]) -> bool:
    """Whether all hold the last list."""
    lists = {record.member: record.event.version for record in records if isinstance(record.event, ListInstalled)}
    return len(lists) == 5 and set(lists.values()) == {9}
