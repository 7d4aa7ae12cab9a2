"""Recordings of real members, read and compared with what was done to them, and with what one sees who reads the logs by eye."""

import json
from collections import Counter
from pathlib import Path

import pytest

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import (
    ClaimFinished,
    ClaimStarted,
    ClusterStateChanged,
    ListInstalled,
    MasterChanged,
    MemberMerging,
    MemberRemoved,
    MemberStarted,
    MemberStopped,
    MergeStarted,
    MergeVerdict,
    SuspicionRaised,
)
from quarterdeck.backend.judgement.observations.reader import LogRecords, read_logs

DATA = Path(__file__).parent / "data"
SPLITS = ["split-and-merge", "split-and-merge-log4j2"]
TROUBLES = ["flapping", "halves-apart", "lasting-suspicion", "master-alone", "paused-master", "restarts"]
FORMED = ["1", "12", "123", "1234", "12345"]


def name(address: str) -> str:
    """10.77.0.4:5701 is 4."""
    return address.partition(":")[0].rpartition(".")[2]


def reading_of(run: str) -> LogRecords:
    return read_logs([DATA / run])


def views(records: list[Record]) -> dict[str, list[tuple[int, str]]]:
    """Of each member, the versions that it installed and who was on them."""
    seen: dict[str, list[tuple[int, str]]] = {}
    for record in records:
        if isinstance(record.event, ListInstalled):
            members = "".join(name(member.address) for member in record.event.members)
            seen.setdefault(name(record.member), []).append((record.event.version, members))
    return seen


def done(run: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (DATA / run / "lab.jsonl").read_text().splitlines()]


def when(run: str, **what: object) -> float:
    """Seconds since 1970 at which the first such thing was done or reached."""
    return next(float(str(view["at"])) for view in done(run) if what.items() <= view.items())


@pytest.mark.parametrize("run", SPLITS)
def test_the_views_of_a_split_and_merge_are_what_one_reads_by_eye(run: str) -> None:
    seen = views(reading_of(run).records)
    formation = list(enumerate(FORMED, start=1))
    merged = "12345" if run == "split-and-merge" else "12354"  # the two came back in this order
    assert seen["1"] == [*formation, (6, "1235"), (7, "123"), (9, merged)]
    assert seen["2"] == [*formation[1:], (6, "1235"), (7, "123"), (9, merged)]
    assert seen["3"] == [*formation[2:], (6, "1235"), (7, "123"), (9, merged)]
    assert seen["4"] == [*formation[3:], (6, "45"), (9, merged)]
    assert seen["5"] == [*formation[4:], (6, "45"), (9, merged)]


@pytest.mark.parametrize("run", SPLITS)
def test_masters_claims_and_merges_have_their_authors(run: str) -> None:
    records = reading_of(run).records
    changes = [
        (name(record.member), name(record.event.master))
        for record in records
        if isinstance(record.event, MasterChanged)
    ]
    masters = {member: [master for who, master in changes if who == member] for member in "12345"}
    assert masters == {"1": ["1"], "2": ["1"], "3": ["1"], "4": ["1", "4", "1"], "5": ["1", "4", "1"]}

    by_kind = {
        kind: [record for record in records if isinstance(record.event, kind)]
        for kind in (ClaimStarted, ClaimFinished, MergeStarted)
    }
    assert {kind: [name(record.member) for record in found] for kind, found in by_kind.items()} == {
        ClaimStarted: ["4"], ClaimFinished: ["4"], MergeStarted: ["4"],
    }  # fmt: skip
    (claim,) = (record.event for record in by_kind[ClaimStarted] if isinstance(record.event, ClaimStarted))
    assert (claim.version, [*map(name, claim.suspected)], [*map(name, claim.asked)]) == (5, ["1", "2", "3"], ["5"])
    (finished,) = (record for record in by_kind[ClaimFinished])
    assert isinstance(finished.event, ClaimFinished)
    assert (finished.event.version, finished.event.lineage, [*map(name, finished.event.accepted)]) == (
        6,
        finished.uuid,
        ["5"],
    )

    verdicts = {
        (name(record.member), record.event.decision, record.event.rule)
        for record in records
        if isinstance(record.event, MergeVerdict)
    }
    assert verdicts == {("1", "remote-merges", "data-members"), ("4", "local-merges", "data-members")}
    frozen = {
        (name(record.member), record.event.state) for record in records if isinstance(record.event, ClusterStateChanged)
    }
    assert frozen == {("4", "FROZEN"), ("5", "FROZEN")}


@pytest.mark.parametrize("run", SPLITS)
def test_lives_end_in_the_merge_and_go_on_under_the_next_uuid(run: str) -> None:
    records = reading_of(run).records
    merging = {record.uuid: record.event for record in records if isinstance(record.event, MemberMerging)}
    reborn = {
        record.event.merged_from: record.uuid
        for record in records
        if isinstance(record.event, MemberStarted) and record.event.merged_from
    }
    assert {before: event.next_uuid for before, event in merging.items()} == reborn
    assert len(reborn) == 2
    assert {name(event.target) for event in merging.values()} == {"1"}
    for uuid in merging:
        life = [record for record in records if record.uuid == uuid]
        assert isinstance(life[-1].event, MemberMerging)


@pytest.mark.parametrize("run", SPLITS)
def test_suspicions_are_those_that_the_members_speak_of(run: str) -> None:
    records = reading_of(run).records
    suspicions = {
        (name(record.member), name(record.event.suspect))
        for record in records
        if isinstance(record.event, SuspicionRaised)
    }
    assert {pair for pair in suspicions if pair[0] in "45"} == {(who, whom) for who in "45" for whom in "123"}
    assert {pair for pair in suspicions if pair[0] == "1"} == {("1", "4"), ("1", "5")}
    assert all(whom in "45" for who, whom in suspicions if who in "123")
    removed = [
        (name(record.member), name(record.event.address))
        for record in records
        if isinstance(record.event, MemberRemoved)
    ]
    assert removed == [("1", "4"), ("1", "5")]


@pytest.mark.parametrize("run", SPLITS)
def test_split_and_merge_fall_into_their_windows(run: str) -> None:
    """Everything happens between what was done and when it was seen; the default layout tells whole seconds only."""
    records = reading_of(run).records
    cut = when(run, what="partition")
    split_seen = when(run, what="reached", state="split lists installed")
    healed, merged_seen = when(run, what="heal"), when(run, what="reached", state="merged")
    slack = 1.0 if run == "split-and-merge" else 0.0

    def within(began: float, ended: float, version_of: dict[str, int]) -> None:
        for record in records:
            if isinstance(record.event, ListInstalled) and version_of.get(name(record.member)) == record.event.version:
                assert began - slack <= record.utc / 1e6 <= ended + slack

    within(cut, split_seen, {"1": 7, "2": 7, "3": 7, "4": 6, "5": 6})
    within(healed, merged_seen, dict.fromkeys("12345", 9))
    timeout = 5.0
    raised = [record.utc / 1e6 for record in records if isinstance(record.event, SuspicionRaised)]
    assert all(cut + timeout - 1 - slack <= at <= split_seen + slack for at in raised)


@pytest.mark.parametrize("run", [*SPLITS, "formation-and-crash", "migrations"])
def test_members_start_when_they_were_started(run: str) -> None:
    slack = 0.0 if run.endswith("log4j2") else 1.0
    started = {str(view["member"]): float(str(view["at"])) for view in done(run) if view["what"] == "start"}
    for record in reading_of(run).records:
        if isinstance(record.event, MemberStarted) and not record.event.merged_from:
            assert started[name(record.member)] - slack <= record.utc / 1e6 <= started[name(record.member)] + 3


def test_both_layouts_tell_the_same_story() -> None:
    """The two recordings are two runs of the same: what differs is uuids, times, and who came back first."""

    def story(run: str) -> dict[str, Counter[str]]:
        told: dict[str, Counter[str]] = {}
        for record in reading_of(run).records:
            if not isinstance(record.event, SuspicionRaised):
                told.setdefault(record.member, Counter())[type(record.event).__name__] += 1
        return told

    assert story(SPLITS[0]) == story(SPLITS[1])


def test_a_killed_master_is_followed_by_the_oldest_that_is_left() -> None:
    records = reading_of("formation-and-crash").records
    seen = views(records)
    formation = list(enumerate(FORMED, start=1))
    assert seen["1"] == [*formation, (6, "1234")]
    for member in "234":
        assert seen[member] == [*formation[int(member) - 1 :], (6, "1234"), (7, "234")]
    assert seen["5"] == [(5, "12345")]
    lineages = {
        record.event.lineage
        for record in records
        if isinstance(record.event, ListInstalled) and record.event.version == 7
    }
    assert lineages == {record.uuid for record in records if isinstance(record.event, ClaimFinished)}
    assert not [record for record in records if isinstance(record.event, MemberStopped)]


def test_a_member_that_is_told_to_end_stops_even_if_its_log_is_cut() -> None:
    records = reading_of("migrations").records
    stopped = [
        (name(record.member), record.event.reason) for record in records if isinstance(record.event, MemberStopped)
    ]
    assert stopped == [("5", "the process was asked to end")]
    assert views(records)["1"] == [*list(enumerate(FORMED[:4], start=1)), (5, "123"), (6, "1235"), (7, "123")]


@pytest.mark.parametrize("run", [*SPLITS, *TROUBLES, "formation-and-crash", "migrations"])
def test_every_line_is_accounted_for_and_nothing_is_unknown(run: str) -> None:
    reading = reading_of(run)
    assert reading.quarantine == []
    for file, counts in reading.counts.items():
        assert sum(lines for _, lines in counts.values()) == len(Path(file).read_bytes().splitlines())


@pytest.mark.parametrize("run", [*SPLITS, *TROUBLES, "formation-and-crash", "migrations"])
def test_lives_are_numbered_without_gaps_and_time_only_goes_on(run: str) -> None:
    last: dict[str, Record] = {}
    for record in reading_of(run).records:
        before = last.get(record.uuid)
        assert record.seq == (before.seq + 1 if before else 1)
        assert before is None or before.at <= record.at
        assert record.at >= 0
        last[record.uuid] = record
