"""The member lists of a recorded run, in the text that operators know from logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, ProcessKilled, Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberStarted
from quarterdeck.backend.core.membership.views.identity import Member
from tests.cli.conftest import Quarterdeck

LABELS = ("athens", "byzantium", "cyrene")
UUIDS = (
    "e40081de-056a-4ae5-8ffe-632caf8a6cf1",
    "93e82109-16bf-4b16-9c87-f4a6d0873080",
    "06fb4e61-9757-443b-a19f-7af1f3966f30",
)
ADDRESSES = tuple(Address(f"127.0.0.1:{port}") for port in (5701, 5702, 5703))
MEMBERS = tuple(Member(ADDRESSES[place], UUIDS[place], place + 1) for place in range(3))

NEW = """\
Members {size:3, ver:3} [
	Member [127.0.0.1]:5701 - e40081de-056a-4ae5-8ffe-632caf8a6cf1 this
	Member [127.0.0.1]:5702 - 93e82109-16bf-4b16-9c87-f4a6d0873080
	Member [127.0.0.1]:5703 - 06fb4e61-9757-443b-a19f-7af1f3966f30
]
"""
"""As in Cluster Service Consistency Improvements, User Interaction, with the tabs that real logs have."""

LEGACY = NEW.replace("{size:3, ver:3} [", "[3] {").replace("]\n", "}\n")


def as_seen_by(label: str, text: str = NEW) -> str:
    own = UUIDS[LABELS.index(label)]
    return text.replace(" this", "").replace(own, f"{own} this")


Recorded = Callable[..., Path]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """A journal of one run: the three members find one another in their first three seconds, then cyrene is killed."""

    def write(run: str = "three", members: tuple[Member, ...] = MEMBERS, *, zero_us: int = 0) -> Path:
        lines: list[bytes] = []

        def record(at_seconds: float, label: str, event: Event) -> None:
            uuid = UUIDS[LABELS.index(label)] if label in LABELS else f"outside-{run}"
            at_us = zero_us + round(at_seconds * 1e6)
            whole = Record(run, label, uuid, len(lines) + 1, at_us, at_us if zero_us else 0, event)
            lines.append(msgspec.json.encode(whole) + b"\n")

        for place, label in enumerate(LABELS):
            record(place, label, MemberStarted(ADDRESSES[place], False, ADDRESSES))
            for observer in LABELS[: place + 1]:
                listed = members[: place + 1]
                installed = ListInstalled(place + 1, "lineage", ADDRESSES[0], listed, ADDRESSES[0], "join")
                record(place + 0.5, observer, installed)
        record(3, "cluster", ProcessKilled("cyrene"))
        directory = tmp_path / "journal" / f"run={run}"
        directory.mkdir(parents=True)
        (directory / "test-000001.jsonl").write_bytes(b"".join(lines))
        return directory

    return write


@pytest.mark.parametrize(("options", "text"), [((), NEW), (("--legacy",), LEGACY)])
def test_one_members_list_is_the_text_alone(
    quarterdeck: Quarterdeck, recorded: Recorded, options: tuple[str, ...], text: str
) -> None:
    result = quarterdeck("journal", "lists", recorded(), "--member", "athens", *options)
    assert (result.returncode, result.stdout, result.stderr) == (0, text, "")


def test_every_member_shows_its_own(quarterdeck: Quarterdeck, recorded: Recorded) -> None:
    result = quarterdeck("journal", "lists", recorded().parent)
    assert result.stdout == f"athens\n{as_seen_by('athens')}\nbyzantium\n{as_seen_by('byzantium')}"
    assert result.stderr == "cyrene holds no list: it is killed\n"


def test_at_a_time(quarterdeck: Quarterdeck, recorded: Recorded) -> None:
    journal = recorded()
    assert quarterdeck("journal", "lists", journal, "--at", "2.5", "--member", "cyrene").stdout == as_seen_by("cyrene")
    early = quarterdeck("journal", "lists", journal, "--at", "1")
    assert early.stdout.startswith("athens\nMembers {size:1, ver:1} [\n")
    assert early.stderr == "byzantium holds no list: it is joining\n"


def test_a_time_counts_from_the_beginning_where_members_were_processes(
    quarterdeck: Quarterdeck, recorded: Recorded
) -> None:
    """Their records count from 1970."""
    journal = recorded(zero_us=1_790_000_000_000_000)
    result = quarterdeck("journal", "lists", journal, "--at", "2.5", "--member", "cyrene")
    assert result.stdout == as_seen_by("cyrene")


def test_lite_members_are_marked(quarterdeck: Quarterdeck, recorded: Recorded) -> None:
    lite = (*MEMBERS[:2], msgspec.structs.replace(MEMBERS[2], lite=True))
    result = quarterdeck("journal", "lists", recorded(members=lite), "--member", "athens")
    assert f"{UUIDS[2]} lite\n" in result.stdout


def test_a_journal_cannot_steer_the_terminal(quarterdeck: Quarterdeck, recorded: Recorded) -> None:
    hostile = (*MEMBERS[:2], msgspec.structs.replace(MEMBERS[2], uuid="\x1b[2J\nMember"))
    result = quarterdeck("journal", "lists", recorded(members=hostile), "--member", "athens")
    assert "\x1b" not in result.stdout
    assert result.stdout.count("\n") == 5


def test_bad_input_is_one_line(quarterdeck: Quarterdeck, recorded: Recorded) -> None:
    journal = recorded()
    strange = msgspec.structs.replace(MEMBERS[0], address=Address("athens"))
    unlisted = recorded("strange", members=(strange, *MEMBERS[1:]))
    for arguments, hint in (
        (("nowhere",), "nowhere"),
        (
            (journal, "--member", "delphi"),
            "--member: 'delphi' was not seen by then; seen were athens, byzantium, cyrene",
        ),
        ((journal, "--at", "-1"), "--at: -1.0 is not a time of a run"),
        ((journal, "--at", "nan"), "--at: nan is not a time of a run"),
        ((journal.parent,), "holds several runs; name one of them, as in"),
        ((unlisted,), "the list of athens"),
    ):
        result = quarterdeck("journal", "lists", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.count("\n") == 1 and hint in result.stderr, result.stderr


def test_an_unreadable_line_is_told_and_exits_with_1(quarterdeck: Quarterdeck, recorded: Recorded) -> None:
    journal = recorded()
    with (journal / "test-000001.jsonl").open("ab") as file:
        file.write(b"nonsense\n")
    result = quarterdeck("journal", "lists", journal, "--member", "athens")
    assert (result.returncode, result.stdout) == (1, NEW)
    assert "test-000001.jsonl:" in result.stderr
