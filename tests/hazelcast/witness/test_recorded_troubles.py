"""What real members of three versions reported to a client, byte for byte: what is observed of it, and nothing that is not so."""

from collections.abc import Iterator

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.witnessed.events import ConnectionState
from quarterdeck.backend.hazelcast.wire.codec.answer_codec import decode_message
from quarterdeck.backend.hazelcast.wire.codec.frames import FrameLimits, MessageReader
from quarterdeck.backend.hazelcast.wire.messages import (
    Authenticated,
    ConnectionReport,
    ErrorAnswer,
    Heard,
    Observation,
)
from quarterdeck.backend.hazelcast.witness.cluster_witness import ClusterWitness
from quarterdeck.backend.judgement.observations.story import RecordObservers
from tests.hazelcast.real.recording import RECORDED_VERSIONS, read_recording


def heard(version: str) -> Iterator[Observation]:
    """Yield what a watch made of the bytes. A connection ended before the next one to the same member began."""
    readers: dict[tuple[Address, int], MessageReader] = {}
    uuids: dict[tuple[Address, int], str] = {}
    latest: dict[Address, tuple[int, int]] = {}
    began_us = next(iter(read_recording(version))).at_us
    for piece in read_recording(version):
        connection, at_us = (piece.endpoint, piece.number), piece.at_us - began_us
        number, before_us = latest.get(piece.endpoint, (piece.number, at_us))
        if number != piece.number and (piece.endpoint, number) in uuids:
            yield _report(before_us, piece.endpoint, "gone")
        latest[piece.endpoint] = piece.number, at_us
        for frames in readers.setdefault(connection, MessageReader(FrameLimits())).feed(piece.data):
            message = decode_message(frames)[1]
            if isinstance(message, Authenticated) and message.member_uuid is not None:
                uuids[connection] = message.member_uuid
                yield _report(at_us, piece.endpoint, "connected")
            if connection in uuids:
                yield Heard(at_us, piece.endpoint, uuids[connection], message)
            elif isinstance(message, ErrorAnswer):
                yield _report(at_us, piece.endpoint, "merging")


def _report(at_us: int, address: Address, state: ConnectionState) -> Observation:
    return ConnectionReport(at_us, address, state, "", at_us)


@pytest.mark.parametrize("version", RECORDED_VERSIONS)
def test_a_kill_a_lone_member_and_a_split_are_observed_as_they_were(version: str) -> None:
    witness, observers, seqs = ClusterWitness(), RecordObservers("r"), dict[str, int]()
    for observation in heard(version):
        for event in witness.hear(observation):
            seq = seqs[event.uuid] = seqs.get(event.uuid, 0) + 1
            observers.add(Record("r", event.address, event.uuid, seq, event.at_us, event.at_us, event.event))
    story = observers.story()
    assert story is not None
    first, second, third, fourth = (f"10.77.0.{host}:5701" for host in (1, 2, 3, 4))
    restart, alone, lost, apart = story.observations
    assert restart.headline == f"started again: {fourth} once"
    assert alone.headline.startswith(f"{third} led itself alone against 3 others: ") and not alone.is_open
    assert (lost.kind, apart.kind) == ("partition-lost", "halves-apart")
    assert f"{first} led {first} and {second}; {fourth} led {third} and {fourth}." in apart.detail and not apart.is_open
    assert all(
        "its logs may show" in finding.detail and "said nothing" not in finding.detail for finding in (alone, apart)
    )
    assert sum(migration.planned for migration in story.migrations) < 400
    assert all(
        migration.completed == migration.planned for migration in story.migrations if migration.completed is not None
    )
