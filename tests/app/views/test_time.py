"""The screen of time and going back in every view: recorded, live and simulated alike, and forks of simulated runs."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.app.console import Console
from quarterdeck.backend.clusters.simulated.simulated_cluster import SimulatedCluster
from quarterdeck.backend.core.commands import KillMember
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.events import ClaimStarted
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.scenarios.format.reading import load_scenario
from tests.app.fakes.console_driver import type_line
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.app.fakes.screen_text import screen_text, settle


def eventful() -> FakeCluster:
    """Formed in 0.8 s; then one second an event."""
    cluster = formed()
    cluster.source = "live"
    cluster.happen("dev", LinkChanged("n1", "n3", blocked="blackhole"), after_us=SECOND_US)
    cluster.happen("n2", ClaimStarted(5, (cluster.address("n1"),), (cluster.address("n1"),)), after_us=SECOND_US)
    cluster.happen("dev", ProcessKilled("n3"), after_us=SECOND_US)
    return cluster


def killed(app: Console, label: str) -> bool:
    return app.session.picture.members[label].status == "killed"


async def test_the_strip_shows_what_stands_out_and_keys_go_through_it() -> None:
    cluster = eventful()
    app = Console(cluster)
    async with app.run_test(size=(110, 30)) as pilot:
        await settle(pilot)
        await pilot.press("9")
        await settle(pilot)
        text = screen_text(app)
        assert "● following, at " in text and "faults" in text and "▼" in text
        strip = next(line for line in text.splitlines() if line.startswith("faults"))
        assert "L" in strip and "K" in strip
        end_us = app.session.playhead.shown_us
        await pilot.press("less_than_sign")
        await settle(pilot)
        text = screen_text(app)
        assert "‖ standing at" in text and "● here" in text
        assert app.session.playhead.shown_us == end_us - SECOND_US
        assert not killed(app, "n3")
        await pilot.press("greater_than_sign")
        assert killed(app, "n3")
        await pilot.press("M")
        await settle(pilot)
        assert app.session.playhead.shown_us < end_us and "claims the mastership" in screen_text(app)
        await pilot.press("home")
        await settle(pilot)
        assert app.session.playhead.shown_us == app.session.tape.start_us
        await pilot.press("right", "right")
        await pilot.press("full_stop")
        assert app.session.playhead.mode == "playing"
        await pilot.press("end")
        assert app.session.live
        await pilot.press("up", "up", "enter")
        await settle(pilot)
        assert not app.session.live


async def test_the_past_is_shown_in_every_view_and_nothing_is_done_in_it() -> None:
    cluster = eventful()
    app = Console(cluster)
    async with app.run_test(size=(110, 30)) as pilot:
        await settle(pilot)
        await type_line(pilot, "at 1.5")
        await settle(pilot)
        assert app.session.playhead.shown_us == 1_500_000 and "past" in screen_text(app)
        await pilot.press("x")
        await settle(pilot)
        assert not cluster.commands and "what is shown is the past" in screen_text(app)
        await pilot.press("left_square_bracket")
        assert app.session.playhead.shown_us == 500_000
        await pilot.press("B")
        await type_line(pilot, "bookmark [b]here")
        await settle(pilot)
        assert [mark.name for mark in app.session.tape.bookmarks] == ["mark-1", "[b]here"]
        assert "[b]here" in screen_text(app)
        await pilot.press("L")
        assert app.session.live
        await type_line(pilot, "at mark-1")
        assert app.session.playhead.shown_us == 500_000
        for line, answer in (
            ("at nowhere", "names no moment"), ("at n1#99", "no event n1#99"), ("speed x", "is not a speed"),
            ("speed 0", "more than 0"), ("fork kill n1", "cannot be done by this cluster"), ("at 99999", "is not remembered"),
        ):  # fmt: skip
            await type_line(pilot, line)
            await settle(pilot)
            assert answer in screen_text(app), line


async def test_zoom_and_small_screens() -> None:
    app = Console(eventful())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("9", "plus", "plus")
        await settle(pilot)
        assert "1/4 of the run in sight" in screen_text(app)
        await pilot.press(*["plus"] * 40, "minus", "z")
        await settle(pilot)
        assert "the whole run in sight" in screen_text(app)
        await pilot.click("#strip", offset=(40, 2))
        await settle(pilot)
        assert not app.session.live
        await pilot.press("home", "n")
        await settle(pilot)
        first = app.session.violations[0]
        assert app.session.playhead.shown_us == max(record.at for record in first.witnesses)
        assert first.text[:30] in screen_text(app)
        await pilot.press("end", "n")
        await settle(pilot)
        assert "no violation was found after this" in screen_text(app)


async def test_a_simulated_run_is_held_stepped_and_forked(tmp_path: Path) -> None:
    file = tmp_path / "three.yaml"
    file.write_text("title: Three\nmembers: [n1, n2, n3]\nsteps:\n  - say: It begins.\n  - do: {wait: 60s}\n")

    cluster = SimulatedCluster(load_scenario(file), 3, name="three", speed=20.0)
    app = Console(cluster)
    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await pilot.press("9", "full_stop")
        await settle(pilot)
        at_us = cluster.now_us()
        text = screen_text(app)
        assert cluster.paused and "standing still" in text and "step 2 of 2" in text and "It begins." in text
        await pilot.press("right_square_bracket")
        await settle(pilot)
        assert cluster.now_us() == at_us + SECOND_US and app.session.live
        await pilot.press("right_curly_bracket")
        assert cluster.speed == 32
        await pilot.press("left_square_bracket")
        fork_us = app.session.playhead.shown_us
        assert not app.session.live
        await type_line(pilot, "fork help")
        await settle(pilot)
        assert "does nothing to a cluster" in screen_text(app)
        await type_line(pilot, "fork kill n1")
        await settle(pilot)
        fork = app.session.cluster
        assert isinstance(fork, SimulatedCluster) and fork is not cluster
        assert "three-fork-1" in screen_text(app) and screen_text(app).splitlines()[2].startswith(" COPY")
        assert [(action.at_us, action.command) for action in fork.commands] == [(fork_us, KillMember("n1"))]
        assert killed(app, "n1")
    app.close_owned()
    cluster.close()
    assert fork.drain() == []
