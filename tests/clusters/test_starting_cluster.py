"""A cluster that is made beside whoever shows it: asked before it is there, never made, and made in vain."""

from __future__ import annotations

import threading

import pytest

from quarterdeck.backend.clusters.starting_cluster import StartingCluster
from quarterdeck.backend.core.commands import CommandRefused, Heal, KillMember
from tests.app.fakes.fake_cluster import FakeCluster
from tests.waiting import wait_until


class MadeCluster(FakeCluster):
    """Is started at once."""

    def __init__(self) -> None:
        from concurrent.futures import Future

        super().__init__(("n1",))
        self.form()
        self.started: Future[None] = Future()
        self.started.set_result(None)


def test_what_is_asked_before_it_is_there_waits_for_it() -> None:
    made, go_on = MadeCluster(), threading.Event()

    def make() -> MadeCluster:
        go_on.wait(30)
        return made

    cluster = StartingCluster(("n1",), make, name="dev")  # type: ignore[arg-type]
    assert (cluster.labels, cluster.name, cluster.source, cluster.now_us()) == (("n1",), "dev", "live", 0)
    assert cluster.drain() == []
    asked = cluster.execute(Heal())
    assert not asked.done() and not cluster.started.done()
    go_on.set()
    asked.result(30)
    cluster.started.result(30)
    assert made.commands == [Heal()] and len(cluster.drain()) == 2 and cluster.now_us() == made.now_us()
    cluster.close()
    assert made.closed


def test_it_is_not_made_when_nobody_looks() -> None:
    cluster = StartingCluster(("n1",), MadeCluster, name="dev")  # type: ignore[arg-type]
    cluster.close()
    assert not cluster.started.done()


def test_what_went_wrong_is_told() -> None:
    def make() -> MadeCluster:
        raise OSError("no port is free")

    cluster = StartingCluster(("n1",), make, name="dev")  # type: ignore[arg-type]
    cluster.drain()
    wait_until(cluster.started.done)
    with pytest.raises(OSError, match="no port is free"):
        cluster.started.result()
    with pytest.raises(CommandRefused, match="no port is free"):
        cluster.execute(KillMember("n1")).result(30)
    cluster.close()
