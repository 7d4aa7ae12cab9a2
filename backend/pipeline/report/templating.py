"""The one environment in which templates are filled in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from quarterdeck.backend.pipeline.report import scale

TEMPLATES = Path(__file__).with_name("templates")


def environment(shown: Callable[[object], object], *, markup: bool) -> Environment:
    """`shown` is applied to every value that a template writes; `markup`: they are then escaped for HTML."""
    filled = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=markup,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filled.filters |= {"clock": scale.clock, "span": scale.span, "quantity": scale.quantity}
    return filled
