"""A recorded run: read as it was written, in pieces, with what is wrong or left out told."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import msgspec
import pytest

from quarterdeck.backend.clusters.cluster import Cluster, StatusNotes
from quarterdeck.backend.clusters.recorded.recorded_cluster import RECORDS_A_DRAIN, RecordedCluster
from quarterdeck.backend.core.commands import CommandRefused, Heal
from quarterdeck.backend.core.events import Event, Record, StrangerRefused
from quarterdeck.backend.core.operations import Get
from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.journal.reader import list_runs
from quarterdeck.backend.journal.writer import JournalWriter
from tests.picture.replay.random_records import EVENTS

ENCODE = msgspec.json.encode

IN_2026_US = 1_790_000_000_000_000


def records_of(run: str, count: int, *, label: str = "n1", first_us: int = 0, step_us: int = 10) -> list[Record]:
    def event(place: int) -> Event:
        return EVENTS[5 + place % 2]

    return [
        Record(run, label, f"{run}-{label}", place + 1, first_us + place * step_us, place, event(place))
        for place in range(count)
    ]


def write(root: Path, run: str, writer: str, records: list[Record]) -> None:
    with JournalWriter(root, run, writer) as journal:
        for record in records:
            journal.append(record)


def read(cluster: RecordedCluster) -> list[Record]:
    records: list[Record] = []
    while not cluster.complete:
        fresh = cluster.drain()
        assert len(fresh) <= RECORDS_A_DRAIN
        records += fresh
    return records


def test_a_run_comes_back_in_pieces_and_in_order(tmp_path: Path) -> None:
    ours, theirs = records_of("r", 6_000), records_of("r", 6_000, label="n2", first_us=5)
    write(tmp_path, "r", "one", ours)
    write(tmp_path, "r", "two", theirs)
    cluster = RecordedCluster(tmp_path)
    watched: Cluster = cluster
    assert (
        watched.source == "recorded"
        and not watched.writable
        and watched.name == "r"
        and isinstance(cluster, StatusNotes)
    )
    first = cluster.drain()
    assert len(first) == RECORDS_A_DRAIN and cluster.now_us() == first[-1].at
    assert any("reading the journal" in note for note in cluster.notes())
    records = first + read(cluster)
    assert records == sorted(ours + theirs, key=lambda record: record.at)
    assert cluster.now_us() == records[-1].at and cluster.labels == ("n1", "n2")
    assert cluster.notes() == [] and cluster.drain() == []


def test_several_runs_have_to_be_named(tmp_path: Path) -> None:
    for run in ("a", "b"):
        write(tmp_path, run, "one", records_of(run, 3))
    with pytest.raises(NoJournal, match=r"holds 2 runs; name one with --run, or as .*run=… : a, b"):
        RecordedCluster(tmp_path)
    assert read(RecordedCluster(tmp_path / "run=b")) == records_of("b", 3)
    with pytest.raises(NoJournal, match="no such file"):
        RecordedCluster(tmp_path / "nothing")


def test_bad_lines_are_told_and_the_rest_is_read(tmp_path: Path) -> None:
    good = records_of("r", 40)
    lines = [ENCODE(record) for record in good]
    for place in range(8):
        lines.insert(place * 3, b'{"kind": "nonsense"}')
    lines.insert(20, ENCODE(records_of("other", 1)[0]))
    file = tmp_path / "some.jsonl"
    file.write_bytes(b"\n".join(lines) + b'\n{"run": "r", "torn')
    cluster = RecordedCluster(file)
    assert read(cluster) == good
    notes = cluster.notes()
    assert notes[0].startswith("9 lines could not be read") and notes[1].startswith("some.jsonl:1: ")
    assert len(notes) == 7 and notes[-1] == "1 record of other runs in the same files left out"
    (tmp_path / "none.jsonl").write_text("nothing\n" * 3)
    with pytest.raises(NoJournal, match="no line in it is a record"):
        RecordedCluster(tmp_path / "none.jsonl")


def test_what_comes_long_after_the_moment_in_question_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, "r", "one", records_of("r", 30_000))
    cluster = RecordedCluster(tmp_path, until_us=20_000, most_records=3_000)
    records = read(cluster)
    assert records[-1].at > 20_000 and len(records) == RECORDS_A_DRAIN
    note = cluster.notes()[0]
    assert note.startswith("the run goes on after 0.040 s, which is not read; about ") and "left out" in note
    assert len(read(RecordedCluster(tmp_path, until_us=20_000))) == 30_000


def test_a_file_that_is_finished_meanwhile_is_read_once(tmp_path: Path) -> None:
    records = records_of("r", 100)
    for directory, suffix in (("_open", ".jsonl.open"), ("run=r", ".jsonl")):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / f"one-000001{suffix}").write_bytes(b"\n".join(map(ENCODE, records)) + b"\n")
    assert read(RecordedCluster(tmp_path)) == records


def test_rotated_files_of_many_writers_merge_in_time(tmp_path: Path) -> None:
    draws = Random(3)
    by_writer = {f"w-{place}": records_of("r", 500, label=f"n{place}", step_us=7 + place) for place in range(4)}
    (tmp_path / "run=r").mkdir()
    for writer, records in by_writer.items():
        number = 1
        while records:
            count = draws.randrange(1, 90)
            text = b"\n".join(map(ENCODE, records[:count])) + b"\n"
            (tmp_path / "run=r" / f"{writer}-{number:06d}.jsonl").write_bytes(text)
            records, number = records[count:], number + 1
    read_back = read(RecordedCluster(tmp_path))
    assert len(read_back) == 2_000 and all(a.at <= b.at for a, b in itertools.pairwise(read_back))


def test_nothing_can_be_done_to_it(tmp_path: Path) -> None:
    write(tmp_path, "r", "one", records_of("r", 3))
    cluster = RecordedCluster(tmp_path)
    for future in (cluster.execute(Heal()), cluster.call("n1", Get("m", "k"))):
        with pytest.raises(CommandRefused, match="recorded run"):
            future.result(0)
    cluster.close()
    assert cluster.drain() == [] and cluster.complete


def test_members_that_were_processes_count_from_the_beginning_of_the_run(tmp_path: Path) -> None:
    """They share no clock but UTC, so what they record counts from 1970. What is recorded of a cluster makes no member of it."""

    def recorded(label: str, uuid: str, seq: int, after_us: int, event: Event) -> Record:
        return Record("dev", label, uuid, seq, IN_2026_US + after_us, IN_2026_US + after_us, event)

    later, first = recorded("m2", "2", 1, 500, EVENTS[5]), recorded("m1", "1", 1, 0, EVENTS[5])
    stranger = recorded("dev", "face", 1, 12_000_000, StrangerRefused("10.0.0.9:1", "no Hazelcast"))
    write(tmp_path, "dev", "m2", [later, stranger])
    write(tmp_path, "dev", "m1", [first])
    cluster = RecordedCluster(tmp_path)
    assert [record.at for record in read(cluster)] == [0, 500, 12_000_000]
    assert cluster.now_us() == 12_000_000 and cluster.labels == ("m1", "m2")
    assert RecordedCluster(tmp_path).moment_of("m2", 1) == 500
    assert [record.utc for record in read(RecordedCluster(tmp_path, until_us=0))] == [
        IN_2026_US,
        IN_2026_US + 500,
        IN_2026_US + 12_000_000,
    ]
    (listing,) = list_runs(tmp_path)
    assert listing.members == ("m1", "m2")
