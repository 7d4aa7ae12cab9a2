"""`F` on a live cluster: a simulated copy of it in a tab beside it, with its past, to try things in."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.backend.clusters.local import LocalCluster, ProcessCluster
from quarterdeck.backend.clusters.simulated.copied_cluster import CopiedCluster
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands import CommandRefused, PauseMember
from quarterdeck.backend.core.properties import Settings
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.screen_text import screen_text
from tests.ports import take_ports

PORT = take_ports(20)
WAIT_SECONDS = 20


async def until(pilot: Pilot[None], come: Callable[[], bool]) -> None:
    for _ in range(400):
        await pilot.pause(0.05)
        if come():
            return
    raise AssertionError(f"it did not come:\n{screen_text(pilot.app)}")


def running(app: Console) -> int:
    return sum(belief.running for belief in app.session.picture.members.values())


async def test_a_copy_of_a_live_cluster_is_tried_out_beside_it() -> None:
    cluster = LocalCluster(3, settings=Settings.of(preset="training"), base_port=PORT)
    try:
        cluster.started.result(WAIT_SECONDS)
        app = Console(cluster)
        async with app.run_test(size=(140, 40)) as pilot:
            await until(pilot, lambda: running(app) == 3)
            await pilot.press("F")
            await until(pilot, lambda: app.cluster is not cluster)
            copy = app.cluster
            assert isinstance(copy, CopiedCluster) and copy.source == "copy"
            await until(pilot, lambda: "COPY" in screen_text(app))
            assert running(app) == 3 and "esc goes back to the real one" in screen_text(app)
            assert app.session.tape.end_us <= copy.snapshot_taken.at_us <= copy.now_us()
            copy.set_speed(8)
            app.answered(":", "kill n1")
            await until(pilot, lambda: app.session.picture.masters() == ("n2",))
            await pilot.press("escape")
            await until(pilot, lambda: app.cluster is cluster)
            assert app.session.picture.masters() == ("n1",) and "COPY" not in screen_text(app)
            app.answered(":", f"cluster {copy.name}")
            await until(pilot, lambda: app.cluster is copy)
            app.answered(":", "close")
            await until(pilot, lambda: app.cluster is cluster)
            app.answered(":", "fork kill n3")
            await until(pilot, lambda: app.cluster is not cluster)
            await until(pilot, lambda: app.session.picture.members["n3"].status == "killed")
        app.close_owned()
    finally:
        cluster.close()


async def test_a_member_that_does_not_answer_is_said_to_be_silent() -> None:
    cluster = ProcessCluster(2, settings=Settings.of(preset="training"), base_port=PORT)
    try:
        cluster.started.result(WAIT_SECONDS)
        cluster.execute(PauseMember("n2")).result(WAIT_SECONDS)
        app = Console(cluster)
        async with app.run_test(size=(200, 40)) as pilot:
            await until(pilot, lambda: running(app) == 1)
            await pilot.press("F")
            await until(pilot, lambda: app.cluster is not cluster)
            await until(pilot, lambda: "n2 reported nothing (it is paused)" in screen_text(app))
        app.close_owned()
    finally:
        cluster.close()


class Reticent(FakeCluster):
    """Refuses to report what its members know, once that is decided."""

    def __init__(self) -> None:
        super().__init__(("n1", "n2"))
        self.reported: Future[ClusterSnapshot] = Future()

    def snapshot(self) -> Future[ClusterSnapshot]:
        return self.reported


async def test_a_cluster_that_refuses_to_report_gives_no_copy_and_no_view_goes_on_waiting() -> None:
    cluster = Reticent()
    app = Console(cluster)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("F")
        await until(pilot, lambda: "a copy is being made" in screen_text(app))
        await pilot.press("m")
        cluster.reported.set_exception(CommandRefused("watched read-only"))
        await until(pilot, lambda: "no copy: watched read-only" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.top.view == "overview")
        assert "a copy is being made" not in screen_text(app)
