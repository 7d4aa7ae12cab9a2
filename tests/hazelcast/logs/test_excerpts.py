"""Excerpts as people publish them with their questions, from releases 3.4 to 5.4: what a reader would note down."""

from pathlib import Path

import pytest

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import read_logs

EXCERPTS = Path(__file__).parent / "excerpts"
LISTS = {
    "spring-boot-3.8": [("172.17.0.6:5701", 1, "172.17.0.2:5701", 2)],
    "default-3.4": [("192.168.0.19:5701", 1, "192.168.0.19:5701", 2)],
    "swedish-default-jet": [("10.0.75.1:5701", 1, "10.0.75.1:5701", 1)],
    "two-members-and-threads-without-a-date": [
        ("127.0.0.1:15702", 5, "127.0.0.1:15702", 2),
        ("127.0.0.1:15704", 5, "127.0.0.1:15702", 2),
    ],
    "compose-5.4-with-consensus-groups": [("172.28.0.13:5701", 4, "172.28.0.13:5701", 2)],
    "syslog-of-a-service": [("10.1.0.216:10081", 1405, "10.1.0.87:10081", 2)],
    "logback-through-a-wrapper": [("172.18.0.1:5701", 1, "172.18.0.1:5701", 1)],
}
"""By excerpt: whose list it is, its version, its master, and how many stand on it."""


def installed(records: list[Record]) -> list[tuple[str, int, str, int]]:
    return [
        (record.member, record.event.version, str(record.event.master), len(record.event.members))
        for record in records
        if isinstance(record.event, ListInstalled)
    ]


@pytest.mark.parametrize("name", sorted(LISTS))
def test_an_excerpt_gives_its_lists(name: str) -> None:
    reading = read_logs([EXCERPTS / f"{name}.log"])
    assert installed(reading.records) == LISTS[name]
    assert [aside.text for aside in reading.quarantine] == (["something else"] if name == "syslog-of-a-service" else [])


def test_merges_that_come_to_nothing_are_told_once(tmp_path: Path) -> None:
    """A day and a time, as one pattern has it, without month and year."""
    said = "INFO c.h.i.c.i.ClusterJoinManager - [10.244.243.91]:5701 [main] [5.3.1] We should merge to [10.244.219.87]:5701 "
    why = "because their data member count is bigger than ours [2 > 1]"
    lines = [f"26 07:{minute}:27,133 [hz.gould.generic-operation.thread-0] {said}{why}\n" for minute in (49, 51, 53)]
    (tmp_path / "member.log").write_text("".join(lines))
    reading = read_logs([tmp_path], LogOptions(date="2023-10-26"))
    assert [type(record.event).__name__ for record in reading.records] == ["MemberWitnessed", "MergeVerdict"]
    assert reading.quarantine == []
