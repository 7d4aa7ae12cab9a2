"""Any keys, in any view, while events stream in and the terminal changes its size: nothing breaks."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key
from textual.keys import key_to_character

from quarterdeck.app.actions.registry import ACTIONS
from quarterdeck.app.console import Console
from quarterdeck.app.key_map import keys_for
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import MigrationDecided
from tests.app.fakes.long_run_cluster import SIX, LongRunCluster
from tests.app.fakes.screen_text import screen_text, settle
from tests.thoroughness import examples, long_after

PRESSES = int(os.environ.get("QUARTERDECK_PRESSES", examples(500)))
"""In each of the runs; more when they are asked for by hand."""

PRESSES_A_STEP = 10

MOVING = (
    *(
        "up",
        "down",
        "left",
        "right",
        "home",
        "end",
        "pageup",
        "pagedown",
        "j",
        "k",
        "g",
        "G",
        "space",
        "tab",
        "shift+tab",
    ),
    *("escape", "enter", "backspace", "ctrl+p", "delete", "ctrl+a", "ctrl+s", "ctrl+t"),
)
BOUND = tuple(sorted({key for action in ACTIONS for key in keys_for(action)}))
TYPED = (*"abcdefghijklmnopqrstuvwxyz0123456789|,:-", "full_stop", "space", "tab", "up", "enter")

LINES = (
    *(
        "demos",
        "at 12.5",
        "at start",
        "live",
        "speed 4",
        "filter kind:suspicion*",
        "filter [",
        "sort member",
        "hide list",
    ),
    *(
        "preset racks 2",
        "undo 1",
        "story fez",
        "table-of fez",
        "show-partition 3",
        "theme light",
        "theme dark",
        "look fez",
    ),
    *(
        "partition athens,fez|cyrene",
        "edit-all-lists",
        "zoom-rows 1s",
        "mark p1",
        "layout matrix",
        "bookmark [/]x",
        "reset",
    ),
)


def nobody_is_started(*_: Any) -> Any:
    raise OSError("no live members here")


def stream(cluster: LongRunCluster, draw: random.Random, step: int) -> None:
    """A handful of events that may make sense or not."""
    observer, other = draw.sample(SIX, 2)
    cluster.suspect(observer, other)
    cluster.install(draw.choice(SIX), 20 + step, draw.sample(SIX, 3), lineage=draw.choice(["L1", "L2"]))
    cluster.happen("dev", LinkChanged(observer, other, blocked=draw.choice(["", "reset", "blackhole"])))
    cluster.begin("byzantium", f"m{step}", step % 48, observer, other)
    cluster.change_table(draw.choice(SIX), 2_000 + step, {step % 48: [observer, other], (step + 7) % 48: [other]})
    match draw.randrange(6):
        case 0:
            cluster.happen("dev", ProcessKilled(observer))
            cluster.happen(other, events.MemberStopped("asked to"))
        case 1:
            cluster.happen("dev", ProcessPaused(observer))
        case 2:
            cluster.happen("dev", ProcessResumed(observer))
        case 3:
            cluster.start(observer, life=2 + step)
        case 4:
            cluster.happen("byzantium", MigrationDecided(f"m{step}", step % 48, draw.random() < 0.5, 9, "left"))
        case _:
            cluster.happen(
                observer,
                events.NotMerging(
                    f"nobody answers at {cluster.address(other)}", None, "nobody-answers", (cluster.address(other),)
                ),
            )


@pytest.mark.parametrize("seed", long_after(1, [1, 2, 3]))
async def test_any_keys_in_any_view_break_nothing(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("quarterdeck.app.views.demos.LiveDemo", nobody_is_started)

    draw = random.Random(f"{seed}/{os.environ.get('QUARTERDECK_SEED', '')}")
    cluster = LongRunCluster(writable=seed % 3 != 0)
    app = Console(cluster)
    monkeypatch.setattr(app, "exit", lambda: None)
    seen: set[str] = set()
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        for step in range(PRESSES // PRESSES_A_STEP):
            stream(cluster, draw, step)
            kinds = draw.choices((BOUND, MOVING, TYPED), weights=(5, 3, 1), k=PRESSES_A_STEP)
            for key in (draw.choice(kind) for kind in kinds):
                app.post_message(Key(key, key_to_character(key)))
            await pilot.pause(0)
            if step % 5 == 0 and app.screen is app.top:
                app.answered(":", draw.choice(LINES))
            if step % 7 == 3:
                await pilot.resize_terminal(draw.randint(20, 160), draw.randint(5, 50))
            if step % 9 == 8 and app.screen is app.top:  # else it would stay where a confirmation or a lesson is
                app.goto(draw.choice(["network", "events", "time", "partitions", "join-lists", "suspicions", "demos"]))
            seen.add(app.top.view)
            app._tick()
        await settle(pilot)
        assert app.is_running and screen_text(app)
    assert PRESSES < 500 or len(seen) >= 6, seen
    app.close_owned()
