"""The console and every command follow a cluster by the same class, so that they say the same of the same moment."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.cluster import ConnectionStatus, watcher_of
from quarterdeck.backend.clusters.follower import Follower
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, ConnectionState, MemberWitnessed
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.watcher import recorded_watcher
from tests.app.fakes.fake_cluster import FIVE, FakeCluster

LATER = 10 * SECOND_US


class Watched(FakeCluster):
    """Five members of Hazelcast. The watcher reaches all of them but those in `states`."""

    environment = ""

    def __init__(self) -> None:
        super().__init__(FIVE, source="hazelcast")
        self.states: dict[str, tuple[ConnectionState, int]] = {}
        for label in FIVE:
            self.happen(label, MemberWitnessed(("client-protocol",), ("owners",)))
            self.happen(label, ConnectionChanged("connected"))
            self.install(label, 5, FIVE)

    def lose(self, label: str, state: ConnectionState) -> None:
        self.happen(label, ConnectionChanged(state, "no answer"))
        self.states[label] = state, self._at

    def agree_without(self, lost: str) -> None:
        rest = [label for label in FIVE if label != lost]
        for label in rest:
            self.install(label, 6, rest)
        self.pass_time(LATER)

    def pass_time(self, by_us: int) -> None:
        self._at += by_us

    def connection_status(self) -> Mapping[str, ConnectionStatus]:
        lost = {
            label: ConnectionStatus("", "stale", at_us, "no answer", state == "refused", state, is_gone=state == "gone")
            for label, (state, at_us) in self.states.items()
        }
        return {label: lost.get(label) or ConnectionStatus("", "connected", 0) for label in self.labels}


def test_a_member_that_is_forgotten_is_forgotten_by_console_command_and_recording() -> None:
    cluster = Watched()
    cluster.lose("n5", "silent")
    cluster.agree_without("n5")
    session, records = ConsoleSession(cluster), cluster.drain()
    follower = Follower(cluster)
    for taker in (follower, session._follower):
        taker.fold(records)
        assert "n5 out of reach" in taker.judge().health.sentence
    cluster.happen("n5", ConnectionChanged("forgotten"))
    cluster.labels = FIVE[:4]
    forgotten = cluster.drain()
    session.tape.append([*records, *forgotten])
    for taker in (follower, session._follower):
        taker.fold(forgotten)
        assert "n5" not in taker.picture.members and taker.judge().health.sentence.startswith("healthy")
    session.poll()
    assert session.health.sentence == follower.judge().health.sentence
    assert "n5" not in session.tape.picture_at(cluster.now_us()).members, "nor is it remembered in the past"
    assert "n5" in session.tape.picture_at(records[-1].at).members


@pytest.mark.parametrize("state", ["silent", "gone", "refused", "merging"])
@pytest.mark.parametrize("left", [True, False])
def test_the_past_is_judged_as_it_was_judged_when_it_was_the_present(state: ConnectionState, *, left: bool) -> None:
    cluster = Watched()
    cluster.lose("n5", state)
    if left:
        cluster.agree_without("n5")
    else:
        cluster.pass_time(LATER)
    follower = Follower(cluster)
    follower.follow()
    live, recorded = follower.watcher, recorded_watcher(follower.picture)
    assert live == watcher_of(cluster.connection_status(), recorded.since_us)
    assert live == recorded
    now_us = cluster.now_us()
    as_recorded = Judge(follower.picture, recorded, now_us).health
    assert follower.judge().health.as_fields(now_us) == as_recorded.as_fields(now_us)


def test_a_moment_is_judged_once_however_many_surfaces_ask() -> None:
    cluster = Watched()
    follower = Follower(cluster)
    follower.follow()
    assert follower.judge() is follower.judge()
    before = follower.judge()
    cluster.lose("n2", "gone")
    follower.follow()
    assert follower.judge() is not before


def test_a_burst_is_folded_in_parts_and_nothing_is_lost() -> None:
    cluster = Watched()
    follower = Follower(cluster)
    parts = [len(follower.follow(4)) for _ in range(5)]
    assert parts == [4, 4, 4, 3, 0]
    assert len(follower.picture.members) == 5
