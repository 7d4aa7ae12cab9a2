"""Recordings of real members in trouble: each trouble is found, with its times, its members and the lines that show it."""

import json
from pathlib import Path

import pytest

from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.core.membership.events import (
    ClaimAnswered,
    ExplicitSuspicionReceived,
    MemberRemoved,
    ObserverPaused,
)
from quarterdeck.backend.judgement.observations.observation import Observation
from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.judgement.observations.story import LogStory, headline

DATA = Path(__file__).parents[2] / "hazelcast" / "logs" / "data"


def member(number: int) -> str:
    return f"10.78.0.{number}:5701"


def story(run: str) -> LogStory:
    (found,) = read_logs([DATA / run]).stories
    return found


def only(run: str) -> Observation:
    (found,) = story(run).observations
    return found


def done_at(run: str, what: str) -> list[float]:
    """Seconds since 1970 at which something was done."""
    lines = map(json.loads, (DATA / run / "lab.jsonl").read_text().splitlines())
    return [float(line["at"]) for line in lines if line["what"] == what]


def test_a_member_that_flaps() -> None:
    flapping, claim = story("flapping").observations
    assert flapping.headline == f"{member(2)} removed and readmitted 5 times in 84 s (partial disconnection)"
    assert flapping.kind == "flapping" and not flapping.is_open
    assert "from version 5 to 14" in flapping.detail
    (cut,), (mended,) = done_at("flapping", "cut"), done_at("flapping", "mend")
    assert cut < flapping.start_utc / 1e6 < flapping.end_utc / 1e6 < mended + 15
    assert claim.kind == "claim-not-accepted" and claim.members == (member(2), member(4))
    assert "claims mastership but it is not a member" in claim.detail


@pytest.mark.parametrize(
    "run",
    [
        "flapping",
        "formation-and-crash",
        "halves-apart",
        "lasting-suspicion",
        "master-alone",
        "migrations",
        "paused-master",
        "restarts",
    ],
)
def test_evidence_names_the_line_that_shows_it(run: str) -> None:
    for observation in story(run).observations:
        assert observation.cause and observation.remedy and observation.evidence_lines >= len(observation.evidence) > 0
        for line in observation.evidence:
            lines = Path(line.file).read_text().splitlines()
            first_words = line.text.split()[:2]
            assert all(word in " ".join(lines[line.line - 1 : line.line + 4]) for word in first_words)


def test_halves_that_do_not_merge_say_why_to_the_end() -> None:
    apart = only("halves-apart")
    assert apart.kind == "halves-apart" and apart.is_open
    assert apart.headline == (
        f"{member(1)} (2 members) and {member(3)} (2 members) were apart: 67 s, until the logs end"
    )
    should_merge = "should merge to us, both have the same data member count: 2"
    lines = [line for line in (DATA / "halves-apart" / "h1.log").read_text().splitlines() if should_merge in line]
    assert len(lines) == 13
    assert (
        f"The side of {member(1)} spoke of merging 13 times; its last word: “[10.78.0.3]:5701 {should_merge}”"
        in apart.detail
    )
    assert (
        f"The side of {member(3)} spoke of merging 13 times; its last word: “We should merge to [10.78.0.1]:5701"
        in apart.detail
    )
    assert "hazelcast.merge.first.run.delay.seconds" in apart.cause


def test_a_master_alone_that_reaches_no_other_master() -> None:
    alone = only("master-alone")
    assert alone.kind == "lone-master" and alone.is_open
    assert alone.headline == f"{member(3)} led itself alone against 3 others: 46 s, until the logs end"
    assert "not their master" in alone.cause


def test_two_that_suspect_each_other_while_the_master_keeps_both() -> None:
    suspicion = only("lasting-suspicion")
    assert suspicion.kind == "lasting-suspicion" and suspicion.members == (member(2), member(3))
    assert suspicion.headline.startswith(f"{member(2)} and {member(3)} suspected each other for 46 s")


def test_a_frozen_master_stood_still_and_a_merging_one_did_not() -> None:
    pause = only("paused-master")
    assert pause.kind == "clock-jump"
    assert pause.headline == f"{member(1)} stood still for 13 s; {member(2)} and {member(3)} held it for dead meanwhile"
    records = read_logs([DATA / "paused-master"]).records
    assert [record.member for record in records if isinstance(record.event, ObserverPaused)] == [member(1)]


def test_jumps_after_a_merge_are_no_pauses() -> None:
    """Five times a removed member merges back, and each time its heartbeats have rested meanwhile."""
    log = (DATA / "flapping" / "h2.log").read_text()
    records = read_logs([DATA / "flapping"]).records
    assert log.count("huge system clock jump") > 0
    assert [record for record in records if isinstance(record.event, ObserverPaused)] == []


def test_requests_to_be_suspected_are_heeded_in_their_own_thread() -> None:
    """Both removals follow, the second behind a list that another thread prints."""
    records = read_logs([DATA / "paused-master"]).records
    asked = [
        record.event
        for record in records
        if isinstance(record.event, ExplicitSuspicionReceived) and record.member == member(1)
    ]
    assert [(request.sender, request.heeded) for request in asked[:2]] == [(member(2), True), (member(3), True)]
    removed = [
        record.event for record in records if isinstance(record.event, MemberRemoved) and record.member == member(1)
    ]
    assert [(event.address, event.cause) for event in removed[-2:]] == [(member(2), "asked"), (member(3), "asked")]


def test_restarts_are_counted_once_a_process() -> None:
    assert only("restarts").headline == f"started again: {member(3)} 3 times (3 without a goodbye)"


@pytest.mark.parametrize(
    ("run", "causes"),
    [
        ("migrations", ["refused", "refused"]),
        ("formation-and-crash", ["refused"]),
        ("split-and-merge", ["no-heartbeat", "no-heartbeat"]),
        ("flapping", ["disconnected"] * 5),
    ],
)
def test_a_removal_has_its_cause_also_from_the_line_before_it(run: str, causes: list[SuspicionCause]) -> None:
    records = read_logs([DATA / run]).records
    removed = [record.event for record in records if isinstance(record.event, MemberRemoved)]
    assert [event.cause for event in removed] == causes
    assert all(event.reason for event in removed)


def test_a_claim_tells_who_accepted_it() -> None:
    records = read_logs([DATA / "formation-and-crash"]).records
    answers = [
        (record.member[-6:], record.event.by[-6:], record.event.answer)
        for record in records
        if isinstance(record.event, ClaimAnswered)
    ]
    assert answers == [("2:5701", "3:5701", "accepted"), ("2:5701", "4:5701", "accepted")]


def test_migrations_are_counted_and_three_rounds_at_once_are_a_storm() -> None:
    found = story("migrations")
    assert [(migration.planned, migration.completed) for migration in found.migrations] == [
        (203, 203),
        (271, 271),
        (201, 201),
    ]
    (storm,) = (observation for observation in found.observations if observation.kind == "migration-storm")
    assert storm.headline == "675 migrations in 3 rounds within 8.0 s"
    assert headline([storm]) == f"1 observation: {storm.headline}"


def test_members_that_were_killed_are_lost() -> None:
    """A slave and then the master. One that was told to end, and one that came back by a merge, are not."""
    master, slave = sorted(story("formation-and-crash").observations, key=lambda lost: lost.members)
    assert slave.headline == "10.77.0.5:5701 was removed (connection refused) and did not come back"
    assert master.headline == (
        "the master 10.77.0.1:5701 was removed (connection refused) and did not come back; 10.77.0.2:5701 led from then on"
    )
    assert "Its own log ends at that moment, without a word of stopping." in master.detail
    assert (slave.kind, slave.is_open, master.evidence[0].member) == ("member-lost", True, "10.77.0.2:5701")
    assert [
        observation.members for observation in story("migrations").observations if observation.kind == "member-lost"
    ] == [("10.77.0.4:5701",)]
    assert headline(()) == ""
