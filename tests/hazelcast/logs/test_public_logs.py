"""Small logs in the forms in which people show theirs: each is read, and each says what it shows."""

from pathlib import Path

import pytest

from quarterdeck.backend.hazelcast.logs.log_files import NoLogs
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import LogRecords, read_logs
from quarterdeck.backend.judgement.observations.run_reader import RecordsRead, read_run

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
