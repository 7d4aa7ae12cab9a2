"""The follower without sockets: when it dials, what it asks and when, and what that costs a member."""

from __future__ import annotations

from random import Random

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.codec.frames import PREAMBLE, FrameLimits, Frames, MessageReader, encode_frames
from quarterdeck.backend.hazelcast.wire.codec.request_codec import number_of
from quarterdeck.backend.hazelcast.wire.follower import Dial, MemberFollower, Output, Send
from quarterdeck.backend.hazelcast.wire.messages import (
    Answer,
    Authenticated,
    ClusterMetadata,
    ConnectionReport,
    ListenerAdded,
    MemberConfig,
    Metrics,
    MetricSample,
    MetricSet,
    SystemProperties,
)
from quarterdeck.backend.hazelcast.wire.requests import (
    AddClusterViewListener,
    Authenticate,
    GetClusterMetadata,
    GetMemberConfig,
    GetSystemProperties,
    ReadMetrics,
    Request,
)
from quarterdeck.backend.hazelcast.wire.route import SECOND_US, Ending, Pace, WatchSettings
from tests.hazelcast.wire.member_codec import answer_frames, decode_request

ADDRESS = Address("10.0.0.1:5701")
UUID = "00000000-0000-0000-0000-000000000001"


NAMES = Random(2)
METRICS = Metrics(1, (MetricSet(0, tuple(MetricSample(f"{NAMES.getrandbits(64):016x}", 1) for _ in range(300))),))
"""About four kilobytes, as a member's are."""


class Played:
    """A follower and a healthy member, both without sockets, on a clock that is set by hand."""

    def __init__(self, pace: Pace | None = None, *, answers: bool = True) -> None:
        settings = WatchSettings((ADDRESS,), pace=pace or Pace())
        self.now_us = 0
        self.follower = MemberFollower(ADDRESS, ADDRESS, settings, UUID, Random(1), 0, pinned=True)
        self.answers = answers
        self.refuses = False
        self.config_bytes = 9_000
        self.asked: list[tuple[int, Request]] = []
        self.outputs: list[tuple[int, Output]] = []
        self.bytes = 0
        self._reader = MessageReader(FrameLimits())

    def run(self, seconds: float) -> None:
        """Let time go by from deadline to deadline."""
        until_us = self.now_us + round(seconds * SECOND_US)
        steps = 0
        while self.follower.deadline_us <= until_us:
            self.now_us = max(self.now_us, self.follower.deadline_us)
            self.take(self.follower.tick(self.now_us))
            steps += 1
            assert steps < 100_000, "it wants the time again and again"
        self.now_us = until_us

    def take(self, outputs: list[Output]) -> None:
        """Do what the follower wants; the member answers at once."""
        for output in outputs:
            self.outputs.append((self.now_us, output))
            if isinstance(output, Dial) and self.answers:
                self._reader = MessageReader(FrameLimits())
                self.take(self.follower.opened(self.now_us, output.connection))
            elif isinstance(output, Send):
                self.bytes += len(output.data)
                for frames in self._reader.feed(output.data.removeprefix(PREAMBLE)):
                    self._answer(frames)

    def _answer(self, frames: Frames) -> None:
        correlation, request = decode_request(frames)
        assert not isinstance(request, int)
        self.asked.append((self.now_us, request))
        if self.answers:
            answer = encode_frames(answer_frames(self._answer_to(request), number_of(request), correlation))
            self.bytes += len(answer)
            self.take(self.follower.received(self.now_us, self.follower.connection, answer))

    def _answer_to(self, request: Request) -> Answer:
        match request:
            case Authenticate() if self.refuses:
                return Authenticated("credentials failed", None, None, "5.3.8")
            case Authenticate():
                return Authenticated("authenticated", ADDRESS, UUID, "5.3.8")
            case AddClusterViewListener():
                return ListenerAdded()
            case GetMemberConfig():
                return MemberConfig("x" * self.config_bytes)
            case GetSystemProperties():
                return SystemProperties({"a": "b" * 1_700})
            case ReadMetrics():
                return METRICS
            case _:
                return ClusterMetadata("ACTIVE")

    def times(self, kind: type[Request]) -> list[int]:
        """When a kind of request was sent."""
        return [at_us for at_us, request in self.asked if isinstance(request, kind)]

    def dialled(self) -> list[int]:
        """When it was dialled."""
        return [at_us for at_us, output in self.outputs if isinstance(output, Dial)]

    def told(self) -> list[tuple[str, int, int]]:
        """How it stood: state, when that was told, since when."""
        return [(one.state, at_us, one.since_us) for at_us, one in self.outputs if isinstance(one, ConnectionReport)]


def test_watching_costs_a_member_less_than_two_kilobytes_a_second() -> None:
    played = Played()
    played.run(200)
    assert played.bytes < 2_000 * 200 + Pace().burst_bytes
    assert len(played.times(GetClusterMetadata)) == 401  # twice a second, whatever else is asked
    assert len(played.times(GetMemberConfig)) >= 6
    assert len(played.times(ReadMetrics)) >= 30
    assert len(played.times(GetSystemProperties)) == 1


def test_a_great_configuration_is_asked_for_less_often_and_the_sign_of_life_as_ever() -> None:
    played = Played()
    played.config_bytes = 100_000
    played.run(200)
    assert len(played.times(GetMemberConfig)) <= 2
    assert len(played.times(GetClusterMetadata)) == 401
    assert len(played.times(ReadMetrics)) >= 20
    assert played.bytes < 2_000 * 200 + Pace().burst_bytes


def test_attempts_wait_longer_and_longer_and_each_a_little_differently() -> None:
    played = Played(answers=False)
    played.run(120)
    assert [state for state, *_ in played.told()] == ["silent"]
    waits = [
        later - earlier - Pace().dial_us for earlier, later in zip(played.dialled(), played.dialled()[1:], strict=False)
    ]
    assert waits[0] <= Pace().first_wait_us < waits[3] <= Pace().longest_wait_us
    assert len(set(waits)) == len(waits)
    assert all(wait_us >= Pace().first_wait_us / 2 for wait_us in waits)


def test_a_silence_is_told_after_two_seconds_with_its_beginning_and_ends_with_the_next_message() -> None:
    played = Played()
    played.run(60)
    began_us = played.times(GetClusterMetadata)[-1]
    played.answers = False
    played.run(10)
    state, told_us, since_us = played.told()[-1]
    assert (state, since_us) == ("silent", began_us)
    assert 2 * SECOND_US <= told_us - since_us <= 2.6 * SECOND_US
    assert len(played.dialled()) == 1
    played.run(10)
    assert len(played.dialled()) > 1, "a path that was cut does not say that it is whole again"
    played.answers = True
    played.run(30)
    assert [state for state, *_ in played.told()] == ["connected", "silent", "connected"]


def test_who_stood_still_itself_calls_no_member_silent() -> None:
    played = Played()
    played.run(60)
    played.answers = False
    played.run(0.6)  # an answer is owed
    played.now_us += 30 * SECOND_US
    played.take(played.follower.tick(played.now_us))
    assert played.told()[-1][0] == "connected"
    played.run(10)
    assert played.told()[-1][0] == "silent"


def test_the_first_answer_may_take_longer() -> None:
    played = Played(answers=False)
    played.run(0)
    played.take(played.follower.opened(0, played.follower.connection))
    played.run(5)
    assert played.told() == []
    played.run(2)
    assert played.told() == [("silent", 6 * SECOND_US, 0)]
    assert "accepts the connection and says nothing" in played.follower.reason


def test_a_member_of_another_cluster_is_asked_once_and_then_rarely_until_it_is_on_a_list() -> None:
    played = Played()
    played.refuses = True
    played.run(3600)
    attempts = len(played.times(Authenticate))
    assert 6 <= attempts <= 13
    assert [state for state, *_ in played.told()] == ["refused"]
    played.refuses = False
    for _ in range(2):
        played.take(played.follower.listed(played.now_us, UUID))
    played.run(1)
    assert played.follower.state == "connected"


@pytest.mark.parametrize(
    ("ending", "states"),
    [("absent", ["connected", "gone"]), ("unreachable", ["connected", "silent"]), (None, ["connected", "silent"])],
)
def test_a_closed_connection_is_no_end_of_the_member_until_no_process_listens(
    ending: Ending | None, states: list[str]
) -> None:
    """A member that merges closes its connections, too; it is dialled at once to learn what the end means."""
    played = Played()
    played.run(1)
    played.answers = False
    closed_us = played.now_us
    played.take(played.follower.closed(closed_us, played.follower.connection, "it has closed the connection"))
    assert [state for state, *_ in played.told()] == ["connected"]
    played.run(0.001)
    assert played.dialled()[-1] == closed_us
    if ending is None:
        played.run(1)
    else:
        played.take(played.follower.closed(played.now_us, played.follower.connection, "as the host says", ending))
    assert [state for state, *_ in played.told()] == states


def test_a_member_that_had_ended_is_dialled_as_soon_as_a_list_has_its_next_incarnation() -> None:
    played = Played()
    played.run(1)
    played.answers = False
    played.take(played.follower.closed(played.now_us, played.follower.connection, "it has closed the connection"))
    for _ in range(6):
        played.take(played.follower.tick(played.follower.deadline_us))
        played.now_us = played.follower.deadline_us
        played.take(played.follower.closed(played.now_us, played.follower.connection, "no process listens", "absent"))
    assert played.follower.state == "gone"
    before = len(played.dialled())
    played.take(played.follower.listed(played.now_us, UUID))
    played.run(0.001)
    assert len(played.dialled()) == before, "that is the one that has ended"
    played.take(played.follower.listed(played.now_us, UUID.replace("1", "2")))
    played.run(0.001)
    assert len(played.dialled()) == before + 1


def test_an_incarnation_that_answers_at_once_after_an_end_is_connected_anew() -> None:
    played = Played()
    played.run(1)
    played.take(played.follower.closed(played.now_us, played.follower.connection, "it has closed the connection"))
    played.run(1)
    assert [state for state, *_ in played.told()] == ["connected", "silent", "connected"]


def test_an_earlier_connection_has_no_say() -> None:
    played = Played()
    played.run(1)
    old = played.follower.connection
    played.take(played.follower.closed(played.now_us, old, "reset"))
    played.run(1)
    assert played.follower.connection != old
    before = len(played.outputs)
    for outputs in (
        played.follower.opened(played.now_us, old),
        played.follower.received(played.now_us, old, b"garbage"),
        played.follower.closed(played.now_us, old, "late"),
    ):
        played.take(outputs)
    assert len(played.outputs) == before
    assert played.follower.state == "connected"


def test_the_same_seed_dials_at_the_same_times() -> None:
    runs = [Played(answers=False), Played(answers=False)]
    for played in runs:
        played.run(300)
    assert runs[0].dialled() == runs[1].dialled()
