"""A kill with a restart, and two splits with their merges, as members of three versions reported them: each is what it was."""

from __future__ import annotations

import pytest

from quarterdeck.backend.boards.operator_questions import removals
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.hazelcast.wire.codec.answer_codec import decode_message
from quarterdeck.backend.hazelcast.wire.codec.frames import FrameLimits, MessageReader
from quarterdeck.backend.hazelcast.wire.messages import Authenticated, ConnectionReport, ErrorAnswer, Heard, Observation
from quarterdeck.backend.hazelcast.wire.route import WATCHED_METRICS
from quarterdeck.backend.hazelcast.witness.cluster_witness import ClusterWitness, HeardEvent
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.replay.tape import Tape
from quarterdeck.backend.picture.replay.timeline import Landmarks
from tests.hazelcast.real.recording import RECORDED_VERSIONS, read_recording

WAKE_US = 200_000


class Recorded:
    """What a witness makes of a recording. That a connection ended shows in the number of the next one."""

    def __init__(self, version: str) -> None:
        self.witness = ClusterWitness()
        self.heard: list[HeardEvent] = []
        self._connections: dict[Address, tuple[int, MessageReader]] = {}
        self._uuids: dict[Address, str] = {}
        pieces = sorted(read_recording(version), key=lambda piece: piece.at_us)
        woken_us = 0
        for piece in pieces:
            now_us = piece.at_us - pieces[0].at_us
            while woken_us < now_us:
                self.heard += self.witness.wake(woken_us)
                woken_us += WAKE_US
            self._receive(now_us, piece.endpoint, piece.number, piece.data)

    def _receive(self, now_us: int, address: Address, number: int, data: bytes) -> None:
        known = self._connections.get(address)
        if known is None or known[0] != number:
            if self._uuids.pop(address, ""):
                self._observe(ConnectionReport(now_us, address, "gone", "connection closed", now_us))
            self._connections[address] = known = number, MessageReader(FrameLimits())
        for frames in known[1].feed(data):
            _, message = decode_message(frames, WATCHED_METRICS)
            if isinstance(message, ErrorAnswer):
                if address not in self._uuids:
                    self._observe(ConnectionReport(now_us, address, "merging", message.message, now_us))
                continue
            if isinstance(message, Authenticated) and message.member_uuid:
                self._uuids[address] = message.member_uuid
                self._observe(ConnectionReport(now_us, address, "connected", "", now_us))
            if address in self._uuids:
                self._observe(Heard(now_us, address, self._uuids[address], message))

    def _observe(self, observation: Observation) -> None:
        self.heard += self.witness.hear(observation)

    @property
    def records(self) -> list[Record]:
        return [
            Record("run", one.address, one.uuid, number, one.at_us, one.at_us, one.event)
            for number, one in enumerate(self.heard, start=1)
        ]


@pytest.mark.parametrize("version", RECORDED_VERSIONS)
def test_merges_are_merges_and_a_restart_is_a_start(version: str) -> None:
    records = Recorded(version).records
    starts = [record for record in records if isinstance(record.event, MemberStarted)]
    merged = [start.member.rpartition(".")[2] for start in starts if start.event.merged_from]  # type: ignore[union-attr]
    assert sorted(merged) == ["3:5701", "3:5701", "4:5701"]
    tape, landmarks, picture = Tape(10_000), Landmarks(), Picture()
    tape.append(records)
    landmarks.follow(tape)
    assert "".join(mark.letter for mark in landmarks.marks) == "SMSM", "the kill and the restart are none of them"
    for record in records:
        picture.apply(record)
    claimants = [removal.remover for removal in removals(picture, records) if removal.claims]
    assert claimants == ["10.77.0.3:5701", "10.77.0.4:5701"]
