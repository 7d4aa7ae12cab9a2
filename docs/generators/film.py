"""A demo as a film: the console's own screens, one after the other, in one SVG that moves by itself and needs no net.

The demo is played in simulated time, whose clock goes on only here. A screen is taken at each of the given moments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.app.console_state import ConsoleSettings
from quarterdeck.app.export import without_fonts
from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.clusters.simulated.simulated_cluster import SimulatedCluster
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.scenarios.format.scenario import Scenario

STEP_US = 500_000
TICK_SECONDS = 0.15
"""A little longer than the console waits between two looks at its cluster."""

SHOWN_SECONDS = 1.8
"""How long a screen stands."""

LAST_SECONDS = 4.0
"""How long the last one does, before the film begins anew."""

VIEW_BOX = re.compile(r'<svg[^>]*viewBox="([^"]+)"')


class Moment(NamedTuple):
    """A screen at `at_seconds` of the demo's own time, after these keys of the console."""

    at_seconds: float
    keys: tuple[str, ...] = ()


async def film_of(
    scenario: Scenario, name: str, seed: int, seconds: float, moments: Sequence[Moment], *, size: tuple[int, int]
) -> str:
    """Return an SVG of these moments among the first `seconds` of the demo's own time."""
    waiting = sorted(moments)
    now_us = 0
    cluster = SimulatedCluster(scenario, seed, name=name, clock_us=lambda: now_us)
    console = Console(cluster, settings=ConsoleSettings(theme="dark"))
    screens: list[str] = []
    try:
        async with console.run_test(size=size) as pilot:
            while now_us <= seconds * SECOND_US:
                await until_shown(pilot, cluster, now_us)
                while waiting and waiting[0].at_seconds * SECOND_US <= now_us:
                    for key in waiting.pop(0).keys:
                        await pilot.press(key)
                        await until_shown(pilot, cluster, now_us)
                    screens.append(without_fonts(console.export_screenshot()))
                now_us += STEP_US
    finally:
        cluster.close()
    return joined(screens)


def joined(screens: Sequence[str]) -> str:
    """Screens, each an SVG of one size, as one that shows them by turns."""
    found = VIEW_BOX.search(screens[0]) if screens else None
    if found is None:
        raise ValueError("there is no screen to be shown")
    whole = SHOWN_SECONDS * (len(screens) - 1) + LAST_SECONDS
    parts = []
    for number, screen in enumerate(screens):
        begin, end = number * SHOWN_SECONDS / whole, min((number + 1) * SHOWN_SECONDS / whole, 1.0)
        times, values = ["0"], ["visible" if number == 0 else "hidden"]
        if number:
            times.append(f"{begin:.4f}")
            values.append("visible")
        if number < len(screens) - 1:
            times.append(f"{end:.4f}")
            values.append("hidden")
        turn = (
            f'<animate attributeName="visibility" calcMode="discrete" repeatCount="indefinite" dur="{whole:g}s" '
            f'keyTimes="{";".join(times)}" values="{";".join(values)}"/>'
        )
        still = "visible" if number == len(screens) - 1 else "hidden"  # where nothing moves, the end is seen
        parts.append(f'<g visibility="{still}">{turn}{screen}</g>')
    return f'<svg viewBox="{found[1]}" xmlns="http://www.w3.org/2000/svg">\n' + "\n".join(parts) + "\n</svg>\n"


async def until_shown(pilot: Pilot[None], cluster: Cluster, now_us: int) -> None:
    """Return when the cluster's time is `now_us` and what happened until then is on the screen."""
    await pilot.pause(TICK_SECONDS)
    while cluster.now_us() < now_us:
        await pilot.pause(TICK_SECONDS)
    await pilot.pause(TICK_SECONDS)
