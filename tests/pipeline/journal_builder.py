"""Journals for tests, told as stories: lives that install lists, one run for each story."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import ListInstalled, MasterChanged, SuspicionCleared, SuspicionRaised
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.journal.writer import JournalWriter

PORTS = {label: 5701 + number for number, label in enumerate("abcdefg")}


def address(label: str) -> Address:
    return Address(f"10.0.0.1:{PORTS[label[0]]}")


@dataclass
class JournalBuilder:
    """The records of one run. A life is named by its label and its number, `d2` is the second life of d."""

    run: str
    records: list[Record] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def happens(self, life: str, event: Event, skip: int = 0) -> None:
        seq = self.numbers[life] = self.numbers.get(life, 0) + 1 + skip
        at = 1_000 * (len(self.records) + 1)
        self.records.append(Record(self.run, life[0], f"uuid-{life}", seq, at, 1_700_000_000_000_000 + at, event))

    def installs(self, lives: str, lineage: str, version: int, members: str, *, master: str = "") -> None:
        """Each of `lives` installs the list of `members`; both are lives parted by spaces."""
        listed = tuple(Member(address(life), f"uuid-{life}", 1, life[0] == "g") for life in members.split())
        leader = address(master) if master else listed[0].address
        for life in lives.split():
            self.happens(life, ListInstalled(version, lineage, leader, listed, leader, "unknown", "told by a test"))

    def suspects(self, life: str, suspect: str) -> None:
        self.happens(life, SuspicionRaised(address(suspect), f"uuid-{suspect}", "no heartbeat for 5 s"))

    def trusts_again(self, life: str, suspect: str) -> None:
        self.happens(life, SuspicionCleared(address(suspect), f"uuid-{suspect}", "heartbeat"))

    def says(self, life: str, skip: int = 0) -> None:
        self.happens(life, MasterChanged(address("a"), "told by a test"), skip)


def clean_story(run: str) -> JournalBuilder:
    """Formation, a split into two lineages that use the same version numbers, and a merge with new uuids."""
    story = JournalBuilder(run)
    story.installs("a1", "one/1", 1, "a1")
    story.installs("a1 b1", "one/1", 2, "a1 b1")
    story.installs("a1 b1 c1 d1", "one/1", 4, "a1 b1 c1 d1")  # b and the rest skip version 3, as a batch of joins does
    story.suspects("b1", "c1")
    story.trusts_again("b1", "c1")
    story.suspects("a1", "c1")
    story.suspects("a1", "d1")
    story.suspects("c1", "a1")
    story.suspects("c1", "b1")
    story.installs("a1 b1", "one/1", 6, "a1 b1")
    story.installs("c1 d1", "two/6", 6, "c1 d1")
    story.installs("a1 b1 e1", "one/1", 7, "a1 b1 e1")
    story.installs("c1 d1 f1", "two/6", 7, "c1 d1 f1")
    story.installs("d2 b1 a1 e1", "one/1", 8, "a1 b1 e1 d2")
    story.installs("a1 b1 e1 d2 c2 f2", "one/1", 10, "a1 b1 e1 d2 c2 f2")
    return story


def write(root: Path, *stories: JournalBuilder) -> Path:
    for story in stories:
        with JournalWriter(root, story.run, "test") as journal:
            for record in story.records:
                journal.append(record)
    return root


def line(record: Record) -> bytes:
    return msgspec.json.encode(record) + b"\n"
