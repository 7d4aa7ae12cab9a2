"""Small logs in the forms in which people show theirs: each is read, and each says what it shows."""

from pathlib import Path

import pytest

from quarterdeck.backend.boards.operator_questions import removal_facts
from quarterdeck.backend.hazelcast.logs.log_files import NoLogs
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import LogRecords, read_logs
from quarterdeck.backend.judgement.observations.run_reader import RecordsRead, read_run
from quarterdeck.backend.picture.fold.picture import Picture

PUBLIC = Path(__file__).parent / "public"
LOST = ["10.0.0.3:5701 was removed (silence) and did not come back"]


def read(name: str, below: str = "input") -> LogRecords:
    """Read an input in full, and see that the reading for events only finds the same records."""
    place = PUBLIC / name / below
    found = read_logs([place], LogOptions(run=name))
    skimmed = [
        one for news in read_run(place, LogOptions(run=name)) if isinstance(news, RecordsRead) for one in news.records
    ]
    assert sorted(map(str, skimmed)) == sorted(map(str, found.records))
    return found


def headlines(found: LogRecords) -> list[str]:
    return [observation.headline for story in found.stories for observation in story.observations]


@pytest.mark.parametrize(
    ("name", "below"),
    [
        ("04-newest-first", "input"),
        ("06-json-line-per-object", "input"),
        ("10-payara-odl", "input"),
        ("12-wso2-carbon", "input"),
        ("13a-stern", "input"),
        ("13c-quoted", "input"),
        ("13e-compose-indented", "input"),
        ("14b-loki", "input"),
        ("22-logger-behind-the-message", "input"),
        ("24-american-dates", "input/28th"),
        ("24-american-dates", "input/6th"),
        ("28-ansi-codes-without-escape", "input/a"),
        ("28-ansi-codes-without-escape", "input/b"),
    ],
)
def test_the_removal_is_read_in_each_form(name: str, below: str) -> None:
    found = read(name, below)
    assert headlines(found) == LOST
    assert not found.quarantine


def test_a_last_line_without_its_end_is_a_line() -> None:
    found = read("00-no-end-of-line-at-the-end")
    assert {type(record.event).__name__ for record in found.records} >= {"MemberRemoved", "ListInstalled"}


def test_newest_first_is_said() -> None:
    (story,) = read("04-newest-first").stories
    assert story.reading == ("m1.log: its newest messages stand first; they were put in the order of time",)


def test_the_order_of_a_date_is_said_where_nothing_shows_it() -> None:
    assert read("24-american-dates", "input/6th").stories[0].reading == (
        "m1.log: dates such as 08/06/2023 are read day first; nothing in it shows their order",
    )
    assert read("24-american-dates", "input/28th").stories[0].reading == (
        "m1.log: dates such as 08/28/2023 are read month first",
    )


def test_a_folder_for_each_member_is_one_run() -> None:
    found = read_logs([PUBLIC / "08-a-folder-for-each-member" / "input"])
    assert {record.run for record in found.records} == {"input"}
    assert not any("not among these" in observation.detail for observation in found.stories[0].observations)
    assert "10.0.0.3:5701 led itself alone against 2 others: 105 min, until the logs end" in headlines(found)


def test_a_quiet_log_is_called_one() -> None:
    with pytest.raises(NoLogs, match=r"3 lines of 10\.0\.0\.1:5701, none tells an event \(a quiet log\)"):
        list(read_run(PUBLIC / "16-quiet-and-known-lines" / "input"))


def test_an_hour_that_comes_twice_is_said_and_counted() -> None:
    found = read("30-end-of-summer-time")
    assert headlines(found) == ["10.0.0.3:5701 was removed and did not come back"]
    assert found.stories[0].reading[0].startswith("m1.log: its times fall by about an hour in line 17")


def test_what_members_say_in_words_counts_without_a_list() -> None:
    """Only a master removes members, and the line before says why; another one suspects the same member."""
    events = {
        (record.member, type(record.event).__name__): record.event
        for record in read("02-no-list-yet-is-not-joining").records
    }
    removed, suspected = events["10.0.0.1:5701", "MemberRemoved"], events["10.0.0.2:5701", "SuspicionRaised"]
    assert (removed.cause, suspected.cause) == ("no-heartbeat", "no-heartbeat")
    assert events["10.0.0.1:5701", "MasterChanged"].master == "10.0.0.1:5701"


def test_a_claim_names_the_list_before_it() -> None:
    found = read("26-claim-without-the-list-before")
    lists = [record.event for record in found.records if type(record.event).__name__ == "ListInstalled"]
    assert [(installed.version, len(installed.members)) for installed in lists] == [(6, 2), (7, 1)]
    (lost,) = (observation for observation in found.stories[0].observations if observation.kind == "member-lost")
    assert lost.members[0] == "10.0.0.1:5701" and "master" in lost.headline


def test_a_new_incarnation_that_asks_to_join_proves_a_restart() -> None:
    found = read("20-master-started-again-under-its-address")
    (restart,) = (observation for observation in found.stories[0].observations if observation.kind == "restart")
    assert restart.members == ("10.0.0.1:5701",)
    assert restart.headline == "started again: 10.0.0.1:5701 once (1 without a goodbye)"


def test_phrases_of_old_versions_are_known() -> None:
    found = read("18-phrases-of-3.4-to-3.11")
    assert not found.quarantine
    kinds = [type(record.event).__name__ for record in found.records]
    assert {"MergeStarted", "MemberMerging", "JoinFailed"} <= set(kinds)
    assert [(one.planned, one.end_us is None) for one in found.stories[0].migrations] == [(271, False)]
    uuids = {record.uuid for record in found.records if type(record.event).__name__ == "MergeStarted"}
    assert uuids == {"86f53f7e-3602-42d7-9ff9-6b4ebacd0567"}


SAID = "2026-11-21 12:15:50,000 [ INFO] [x] [c.h.i.c.M]: [10.0.0.1]:5701 [dev] [5.3.8] "


def test_why_members_never_found_each_other_is_observed(tmp_path: Path) -> None:
    wrong = "Wrong bind request from [10.0.0.2]:5701! This node is not the requested endpoint: [203.0.113.7]:5701"
    forbidden = "Kubernetes API access is forbidden! Starting standalone. To use Hazelcast Kubernetes discovery, …"
    (tmp_path / "m1.log").write_text(f"{SAID}{wrong}\n{SAID}{forbidden}\n")
    found = read_logs([tmp_path], LogOptions(run="r"))
    said = " ".join(f"{one.headline} {one.detail} {one.remedy}" for one in found.stories[0].observations)
    assert "10.0.0.2:5701 was refused once: it connects to another address than the member's own" in said
    assert "203.0.113.7" in said and "public-address" in said
    assert "forbidden" in said and "role" in said


def test_a_cut_claim_is_a_claim(tmp_path: Path) -> None:
    (tmp_path / "m1.log").write_text(
        f"{SAID}Starting mastership claim process...\n"
        f"{SAID}Mastership is claimed with: MembersView{{version=7, members=[MemberInfo{{address=[10.0.0.1]:57\n"
        f"{SAID.replace('12:15', '12:25')}[10.0.0.1]:5701 is STARTED\n"
    )
    assert not headlines(read_logs([tmp_path], LogOptions(run="r")))


def test_a_list_whose_lines_are_lost_makes_the_list_unknown(tmp_path: Path) -> None:
    """As `grep` keeps the first lines of messages only."""
    text = (PUBLIC / "06-json-line-per-object" / "input" / "m2.ndjson").read_text().splitlines()
    kept = [line.partition('"message": "')[2].removesuffix('"}') for line in text]
    whole_list = kept.index("Members {size:3, ver:6} [")
    lines = [
        line
        for number, line in enumerate(kept)
        if line[:4] == "2023" or number in range(whole_list - 1, whole_list + 5)
    ]
    (tmp_path / "m2.log").write_text("".join(f"{line}\n" for line in lines).replace("\\t", "\t"))
    said = headlines(read_logs([tmp_path], LogOptions(run="r")))
    assert not any("stayed on the list" in line or "until the logs end" in line for line in said)


def accounts(name: str) -> str:
    return "\n".join(sentence for story in read(name).stories for sentence in story.account)


def test_what_a_colleague_would_say_first_comes_first() -> None:
    """Who logs, from when to when, whose log is missing, what happened with its line, and what would tell the rest."""
    said = accounts("04-newest-first").split("\n")
    assert said[0] == (
        "1 member logs here, from 2023-08-28 15:39:59 to 2023-08-28 17:30:09 UTC (110 min): 10.0.0.1:5701"
    )
    assert said[1].startswith("The logs of 10.0.0.2:5701 and 10.0.0.3:5701 are not among these")
    assert said[2] == "15:44:02 10.0.0.3:5701 was removed (silence) and did not come back (m1.log:9)"
    assert said[3].endswith("ran on meanwhile; their own logs would tell it")


def test_an_account_tells_deeds_without_a_list_and_what_is_missing() -> None:
    said = accounts("02-no-list-yet-is-not-joining")
    assert "10.0.0.1:5701 removed 10.0.0.3:5701 (no-heartbeat) (m1.log:2)" in said
    assert "10.0.0.2:5701 suspected 10.0.0.3:5701" in said
    assert "Not known: who was on the list of 10.0.0.1:5701 and 10.0.0.2:5701" in said


def test_an_account_of_a_merge_names_it() -> None:
    assert "10.0.0.1:5701 began to merge into the cluster of 10.0.0.2:5701" in accounts("18-phrases-of-3.4-to-3.11")


@pytest.mark.parametrize(
    ("has_removals", "said"),
    [(True, "10.0.0.3:5701 by 10.0.0.1:5701"), (False, "not known: the logs of 10.0.0.1:5701, 10.0.0.2:5701 have no")],
)
def test_who_was_removed_is_told_without_a_list_or_not_known(has_removals: bool, said: str) -> None:
    records = sorted(read("02-no-list-yet-is-not-joining").records, key=lambda record: record.at)
    kept = [record for record in records if has_removals or type(record.event).__name__ != "MemberRemoved"]
    picture = Picture()
    for record in records:
        picture.apply(record)
    (fact,) = removal_facts(picture, kept, records[-1].at)
    assert fact.text.startswith(said)
