"""A session tells its views of every record once, or of an epoch in which they begin anew."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quarterdeck.app.session import JUDGED_ALWAYS, ConsoleSession
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, Record
from quarterdeck.backend.core.membership.events import ListInstalled, ListRejected
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from tests.app.fakes.fake_cluster import FakeCluster, formed


class Viewer:
    """A view as it gathers records: begun anew whenever the epoch is another one."""

    def __init__(self, session: ConsoleSession) -> None:
        self.session = session
        self.epoch = session.epoch
        self.seen: list[Record] = []

    def look(self) -> list[Record]:
        self.seen += self.session.poll()
        if self.epoch != self.session.epoch:
            self.epoch, self.seen = self.session.epoch, list(self.session.recent)
        return self.seen


def eventful() -> tuple[FakeCluster, ConsoleSession, Viewer]:
    cluster = formed(("a", "b", "c"))
    session = ConsoleSession(cluster)
    viewer = Viewer(session)
    viewer.look()
    return cluster, session, viewer


def test_what_happened_while_it_stood_still_is_not_missing_afterwards() -> None:
    cluster, session, viewer = eventful()
    session.playhead.pause()
    before = len(viewer.look())
    cluster.happen("dev", ProcessPaused("b"))
    assert len(viewer.look()) == before and len(session.arrived) == 1
    session.playhead.follow()
    cluster.happen("dev", ProcessKilled("c"))
    assert viewer.look() == session.tape.last(1_000)


def test_each_step_on_brings_the_events_of_its_moment() -> None:
    _, session, viewer = eventful()
    everything = list(viewer.look())
    while session.playhead.step(forward=False):
        assert viewer.look() == list(session.recent)
    while session.playhead.step(forward=True):
        assert viewer.look() == list(session.recent)
    assert viewer.look() == everything


class Reread(FakeCluster):
    """A recorded run that is read in these pieces."""

    def __init__(self, *pieces: list[Record]) -> None:
        super().__init__(("a",), source="recorded", writable=False)
        self._pieces = list(pieces)

    def drain(self) -> list[Record]:
        piece = self._pieces.pop(0) if self._pieces else []
        self._at = max([self._at, *(record.at for record in piece)])
        return piece


def installed(version: int, at: int) -> Record:
    here = Address("10.0.0.1:5701")
    members = (Member(here, "u1", 1),)
    return Record(
        "r", "a", "u1", version, at, at, ListInstalled(version, "L", here, members, here, "unknown", "told by a test")
    )


def test_what_was_overtaken_in_a_journal_is_no_violation_wherever_the_pieces_end() -> None:
    session = ConsoleSession(
        Reread([installed(1, 1_000), installed(3, 3_000)], [installed(2, 2_000)], [installed(4, 4_000)])
    )
    for _ in range(5):
        session.poll()
    assert list(session.violations) == []
    session = ConsoleSession(Reread([installed(5, 1_000)], [installed(4, 2_000)]))
    for _ in range(4):
        session.poll()
    assert "version" in [violation.invariant for violation in session.violations], "told once all is read"


def test_episodes_are_those_of_the_moment_that_is_shown() -> None:
    cluster, session, viewer = eventful()
    viewer.look()
    assert sum(episode.count for episode in session.episodes.all) == len(session.tape)
    session.playhead.pause()
    cluster.happen("dev", ProcessKilled("c"))
    for _ in range(3):
        viewer.look()
        assert "kill" not in [episode.kind for episode in session.episodes.all]
    while session.playhead.step(forward=False):
        viewer.look()
        assert sum(episode.count for episode in session.episodes.all) == len(session.recent)
    while session.playhead.step(forward=True):
        viewer.look()
        assert sum(episode.count for episode in session.episodes.all) == len(session.recent)
    assert "kill" in [episode.kind for episode in session.episodes.all]
    session.playhead.follow()
    viewer.look()
    assert "kill" in [episode.kind for episode in session.episodes.all]


@pytest.mark.parametrize(("members", "beats"), [(5, 4), (100, 1)])
def test_a_detail_of_a_large_cluster_is_made_again_once_a_second(members: int, beats: int) -> None:
    cluster = formed([f"m{place}" for place in range(members)])
    session = ConsoleSession(cluster)
    session.poll()
    found = {session.detail_beat}
    for place in range(3):
        cluster.happen(f"m{place}", ListRejected(1, cluster.address("m0"), "an older list"))
        session.poll()
        found.add(session.detail_beat)
    assert len(found) == beats


def test_of_many_members_the_order_is_looked_at_once_a_second() -> None:
    labels = tuple(f"n{number}" for number in range(1, JUDGED_ALWAYS + 3))
    cluster = formed(labels)
    session = ConsoleSession(cluster)
    session.poll()
    before = session.labels
    assert before == labels
    for label in labels:
        cluster.happen(label, list_of(cluster, labels[::-1]), after_us=0)
    session.poll()
    assert session.labels is before, "in the same second"
    cluster.happen("dev", ProcessPaused("n1"), after_us=SECOND_US)
    session.poll()
    assert session.labels == labels[::-1]


def list_of(cluster: FakeCluster, labels: Sequence[str]) -> ListInstalled:
    members = tuple(cluster.member(label) for label in labels)
    return ListInstalled(99, "L2", members[0].address, members, members[0].address, "unknown", "another order")
