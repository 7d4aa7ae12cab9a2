"""What stands on the screen, as text: glyphs and words, without styles."""

from __future__ import annotations

from textual.app import App
from textual.pilot import Pilot


def screen_text(app: App[None]) -> str:
    """Every line of the screen, without blanks at the right."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


async def settle(pilot: Pilot[None]) -> None:
    """Let the console's clock tick and the screen be painted."""
    await pilot.pause(0.35)
    await pilot.pause()
