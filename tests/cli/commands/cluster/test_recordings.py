"""Every question is asked of a recording as of running members, and answered by what was recorded up to the moment only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.cluster import watcher_of
from quarterdeck.backend.clusters.recorded.recorded_run import recorded_run
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.picture.fold.picture import Picture
from tests.cli.conftest import Quarterdeck
from tests.clusters.recorded.test_recorded_cluster import read, write
from tests.hazelcast.real.kept_run import KeptConsole
from tests.waiting import wait_until

TESTS = Path(__file__).parents[3]
LOGS = TESTS / "hazelcast" / "logs" / "data" / "split-and-merge"
KEPT = TESTS / "hazelcast" / "real" / "kept"
DEMO = TESTS.parent / "backend" / "training" / "scripts" / "split.yaml"
LATE_US = SECOND_US // 10
QUESTIONS = ("status", "why", "members", "suspicions", "lists", "migrations")


def ask(quarterdeck: Quarterdeck, question: str, path: Path, *options: str) -> str:
    asked = quarterdeck("cluster", question, "--replay", path, *options, "-o", "json")
    assert asked.returncode == 0, asked.stderr
    return asked.stdout


def sentence_of(quarterdeck: Quarterdeck, path: Path, at: str) -> str:
    return str(json.loads(ask(quarterdeck, "status", path, "--at", at))["sentence"])


def in_the_console(path: Path, at_us: int) -> str:
    """Return the first line of a console on the recording that stands at this moment."""
    cluster = recorded_run(path)
    session = ConsoleSession(cluster)
    try:
        wait_until(lambda: not session.poll() and cluster.complete)
        session.playhead.go(at_us)
        return session.health.sentence
    finally:
        cluster.close()


def records_of_logs() -> list[Record]:
    cluster = recorded_run(LOGS)
    found: list[Record] = []
    wait_until(lambda: found.extend(cluster.drain()) or cluster.complete)
    cluster.close()
    return found


def up_to(records: Sequence[Record], at_us: int) -> list[Record]:
    return [record for record in records if record.at <= at_us]


def test_a_journal_answers_as_if_it_ended_at_the_moment(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    quarterdeck("simulate", DEMO, "--seed", "7", "--journal", tmp_path / "whole")
    records = read(recorded_run(tmp_path / "whole"))  # type: ignore[arg-type]
    sentences = set()
    for part in (4, 7, 9):
        at_us = records[len(records) * part // 10].at
        cut, at = tmp_path / f"cut-{part}", str(at_us / SECOND_US)
        write(cut, records[0].run, "w", up_to(records, at_us))
        for question in QUESTIONS:
            told = ask(quarterdeck, question, tmp_path / "whole", "--at", at)
            assert told == ask(quarterdeck, question, cut), (question, at)
        sentences.add(sentence_of(quarterdeck, tmp_path / "whole", at))
        assert sentence_of(quarterdeck, tmp_path / "whole", at) == in_the_console(tmp_path / "whole", at_us)
    assert len(sentences) > 1


@pytest.mark.parametrize("name", ["split-and-heal-5.3.8", "two-killed-at-once-5.3.8"])
def test_a_witnessed_run_answers_as_the_console_that_recorded_it_answered(
    quarterdeck: Quarterdeck, tmp_path: Path, name: str
) -> None:
    kept = KeptConsole.read(KEPT / name, "without-logs")
    write(tmp_path, kept.records[0].run, "witness", kept.records)
    picture, read_so_far, compared = Picture(), 0, 0
    for look in kept.looks:
        for record in kept.records[read_so_far : look.records]:
            picture.apply(record)
        read_so_far = look.records
        if any(record.at <= look.now_us + LATE_US for record in kept.records[look.records :]):
            continue  # the console did not have it yet, or had a connection that is not on record yet
        then = Judge(picture, watcher_of(look.connections), look.now_us).health
        at = str(look.now_us / SECOND_US)
        told = json.loads(ask(quarterdeck, "status", tmp_path, "--at", at))
        if look.now_us <= kept.records[-1].at:
            assert {name: told[name] for name in then.as_fields(0)} == then.as_fields(look.now_us), at
        reached = {label for label, status in look.connections.items() if status.contact == "connected"}
        assert set(told["reached"]) == reached, at
        compared += 1
    assert compared > len(kept.looks) // 2


def test_a_witnessed_run_answers_as_if_it_ended_at_the_moment(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    records = sorted(KeptConsole.read(KEPT / "split-and-heal-5.3.8", "with-logs").records, key=lambda one: one.at)
    write(tmp_path / "whole", records[0].run, "witness", records)
    for part in (4, 8):
        at_us = records[len(records) * part // 10].at
        cut, at = tmp_path / f"cut-{part}", str(at_us / SECOND_US)
        write(cut, records[0].run, "witness", up_to(records, at_us))
        for question in QUESTIONS:
            told = ask(quarterdeck, question, tmp_path / "whole", "--at", at)
            assert told == ask(quarterdeck, question, cut), (question, at)


def test_the_table_of_a_recording_has_what_its_members_reported(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    records = KeptConsole.read(KEPT / "two-killed-at-once-5.3.8", "without-logs").records
    write(tmp_path, records[0].run, "witness", records)
    (row,) = json.loads(ask(quarterdeck, "table", tmp_path, "--from", "3", "--to", "3"))
    assert row["partition"] == 3 and len(row["replicas"]) == 1 and row["backups"] is None


def test_a_folder_of_logs_answers_as_the_console_does(quarterdeck: Quarterdeck) -> None:
    for at, beginning in (
        ("8.5", "healthy · 2 members agree"),
        ("35", "SPLIT · 3 + 2"),
        ("44", "healthy · 5"),
    ):
        sentence = sentence_of(quarterdeck, LOGS, at)
        assert sentence.startswith(beginning)
        assert sentence == in_the_console(LOGS, round(float(at) * SECOND_US))
    of_masters = json.loads(ask(quarterdeck, "why", LOGS, "--at", "35"))
    assert [row["member"] for row in of_masters] == ["10.77.0.1:5701", "10.77.0.4:5701"]
    assert json.loads(ask(quarterdeck, "members", LOGS, "--at", "8.5"))[1]["list_size"] == 2


def test_a_moment_is_named_in_seconds_by_a_time_or_by_an_event(quarterdeck: Quarterdeck) -> None:
    told = ask(quarterdeck, "status", LOGS, "--at", "35")
    for at in ("2026-11-21T12:16:10Z", "2026-11-21 14:16:10+02:00", "20261121T121610", "35000ms"):
        assert ask(quarterdeck, "status", LOGS, "--at", at) == told, at
    in_athens = ask(quarterdeck, "status", LOGS, "--at", "2026-11-21T12:16:10", "--zone", "Europe/Athens")
    assert in_athens == told, "a time without a zone is of the zone of the logs"
    installed = next(record for record in records_of_logs() if isinstance(record.event, ListInstalled))
    of_event = json.loads(ask(quarterdeck, "status", LOGS, "--at", f"{installed.member}#{installed.seq}"))
    assert of_event["lists"][0]["members"] == ["10.77.0.1:5701"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--replay", "{}", "--at", "soon"), "--at: 'soon' names no moment"),
        (
            ("--replay", "{}", "--at", "2026-13-01T00:00:00"),
            "--at: '2026-13-01T00:00:00' names no moment: month must be",
        ),
        (("--replay", "{}", "--at", "h9#3"), "--at: there is no event h9#3"),
        (("--replay", "{}", "--run", "other"), "leave out --run"),
        (("--replay", "{}/none"), "no such file or directory"),
        (("--replay", "{}", "--connect", "http://127.0.0.1:1"), "leave out --connect and --cluster"),
        (("--at", "3"), "--at is for a run that is opened with --replay"),
        (("--run", "r"), "--run is for a run that is opened with --replay"),
    ],
)
def test_bad_input_is_one_clear_line(quarterdeck: Quarterdeck, options: Sequence[str], said: str) -> None:
    asked = quarterdeck("cluster", "status", *(option.format(LOGS) for option in options))
    assert (asked.returncode, asked.stdout) == (2, "")
    assert said in asked.stderr and asked.stderr.count("\n") == 1


def test_of_several_runs_one_is_named(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    names = ("rolling-restart-of-seven-5.3.8", "two-killed-at-once-5.3.8")
    for name in names:
        records = KeptConsole.read(KEPT / name, "without-logs").records
        write(tmp_path, name, "witness", [replace(record, run=name) for record in records])
    several = quarterdeck("cluster", "status", "--replay", tmp_path)
    assert several.returncode == 2 and "holds 2 runs; name one with --run" in several.stderr
    none = quarterdeck("cluster", "status", "--replay", tmp_path, "--run", "third")
    assert none.returncode == 2 and "has no run third; name one with --run" in none.stderr
    sizes = [len(json.loads(ask(quarterdeck, "members", tmp_path, "--run", name))) for name in names]
    assert sizes == [7, 5]


def test_a_check_of_a_recording_fails_as_one_of_running_members(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    kept = KeptConsole.read(KEPT / "split-and-heal-5.3.8", "without-logs")
    write(tmp_path, kept.records[0].run, "witness", kept.records)
    found = {}
    for look in kept.looks:
        checked = quarterdeck(
            "cluster", "status", "--check", "--replay", tmp_path, "--at", str(look.now_us / SECOND_US)
        )
        found[checked.stdout.split(" ", 1)[0]] = checked.returncode
    assert found["healthy"] == 0 and found["SPLIT"] == 1
