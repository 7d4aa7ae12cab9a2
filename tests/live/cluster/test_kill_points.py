"""A member that is to die at a named point: what of that instant's doings is still done, and what not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.commands import (
    CommandRefused,
    KillAt,
    KillMember,
    Operate,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.effects import Effect
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.inputs import Input
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.membership.events import JoinFailed, MemberStopped, SuspicionRaised
from quarterdeck.backend.core.membership.messages import Leave
from quarterdeck.backend.live.cluster.local_clusters import LocalCluster
from tests.core.member_state import conclude, state_of
from tests.live.cluster.observed_cluster import BASE_PORT, QUICK, ObservedCluster


class Telling(MemberMachine):
    """Asked to operate, it notes that something has happened, and says goodbye to everybody next."""

    def step(self, now: int, input: Input, because: RecordId | None = None) -> Sequence[Effect]:
        if not isinstance(input, Operate):
            return super().step(now, input, because)
        state = state_of(self)
        state.record(now, JoinFailed({}))
        state.send_all(tuple(state.peers), Leave(state.uuid))
        return conclude(self, now)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObservedCluster]:
    monkeypatch.setattr(LocalCluster, "machine", Telling)
    cluster = LocalCluster(2, settings=QUICK, base_port=BASE_PORT, seed=1)
    try:
        cluster.started.result(60)
        watched = ObservedCluster(cluster)
        watched.until(lambda: watched.agree(["n1", "n2"]))
        yield watched
    finally:
        cluster.close()


@pytest.mark.parametrize("after", [False, True])
def test_what_follows_the_event_is_done_only_if_asked_for(watched: ObservedCluster, after: bool) -> None:
    watched.do(KillAt("n1", "join-failed", after))
    watched.do(Operate("n1"))
    watched.until(lambda: watched.view("n2") == ["n2"])
    assert watched.events(ProcessKilled) == [ProcessKilled("n1")]
    reasons = {event.reason for event in watched.events(SuspicionRaised, "n2")}
    assert ("it said goodbye" in reasons) == after, reasons


def test_a_member_that_is_down_dies_in_its_next_life_and_in_no_other(watched: ObservedCluster) -> None:
    watched.do(KillMember("n2"))
    watched.do(KillAt("n2", "member-started"))
    for _ in range(2):
        watched.do(StartMember("n2"))
    watched.until(lambda: watched.agree(["n1", "n2"]))
    assert watched.events(ProcessKilled) == [ProcessKilled("n2")] * 2


def test_a_life_that_ends_otherwise_takes_its_named_point_along(watched: ObservedCluster) -> None:
    watched.do(KillAt("n2", "join-failed"))
    watched.do(StopMember("n2"))
    watched.until(lambda: watched.events(MemberStopped, "n2"))
    watched.do(StartMember("n2"))
    watched.until(lambda: watched.view("n2") == ["n1", "n2"])
    watched.do(Operate("n2"))
    watched.until(lambda: watched.events(JoinFailed, "n2"))
    assert not watched.events(ProcessKilled)


def test_an_event_that_does_not_exist_is_refused(watched: ObservedCluster) -> None:
    with pytest.raises(CommandRefused, match="no kind of event 'join-faild'"):
        watched.do(KillAt("n1", "join-faild"))
