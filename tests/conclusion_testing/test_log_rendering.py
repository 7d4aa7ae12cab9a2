"""What members decide is rendered as the product logs it, and read back as what they decided."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.backend.conclusion_testing.log_rendering import LIFECYCLE, LIST, PHRASES, VERSION, RenderedLog
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import (
    ClusterStateChanged,
    ListInstalled,
    MemberStarted,
    MemberStopped,
    SuspicionRaised,
)
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import read_logs

TSV = Path(__file__).parents[1] / "hazelcast" / "phrases" / "phrases.tsv"
A, B = Address("127.0.0.1:5701"), Address("127.0.0.1:5702")
UUIDS = {A: "aaaaaaaa-0000-4000-8000-000000000001", B: "bbbbbbbb-0000-4000-8000-000000000002"}
NOT_LISTED = (LIST, LIFECYCLE)
"""The words of the first are put together in a loop, and the class of the second is not among those that are listed."""


def test_each_phrase_is_one_of_the_product() -> None:
    rows = [line.split("\t") for line in TSV.read_text(encoding="utf-8").splitlines()]
    said = {(logger, level, words) for logger, level, words, versions in rows if VERSION in versions.split()}
    assert not {phrase for phrase in PHRASES if phrase not in NOT_LISTED} - said


def test_a_rendered_log_is_read_as_what_was_decided(tmp_path: Path) -> None:
    members = tuple(Member(address, uuid, number) for number, (address, uuid) in enumerate(UUIDS.items(), start=1))
    decided: tuple[Event, ...] = (
        MemberStarted(A, False, ()),
        ListInstalled(2, UUIDS[A], A, members, A, "unknown"),
        SuspicionRaised(B, UUIDS[B], "no heartbeat"),
        ClusterStateChanged("PASSIVE", ""),
        PartitionLost(7, ALL_LOST),
        MemberStopped("asked to stop"),
    )
    log = RenderedLog(A)
    lines = (
        log.lines(Record("r", "n1", UUIDS[A], number, at, at, event), 1_700_000_000_000_000 + at)
        for number, event in enumerate(decided, start=1)
        for at in [number * 1_000_000]
    )
    (tmp_path / "n1.log").write_text("".join(lines), encoding="utf-8")
    read = read_logs([tmp_path], LogOptions(run="r"))
    assert not read.quarantine
    kinds = [type(record.event) for record in read.records]
    assert [kind for kind in kinds if kind in map(type, decided)] == list(map(type, decided))
    (installed,) = (record.event for record in read.records if isinstance(record.event, ListInstalled))
    assert [(member.address, member.uuid) for member in installed.members] == list(UUIDS.items())
