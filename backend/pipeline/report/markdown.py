"""The report as Markdown, with the same content as the page and without its drawings."""

from __future__ import annotations

import re

from markupsafe import Markup

from quarterdeck.backend.pipeline.report.model import Report
from quarterdeck.backend.pipeline.report.plain_text import visible
from quarterdeck.backend.pipeline.report.templating import environment

SIGNS = re.compile(r"([\\`*_{}\[\]<>()#|~!&])")
"""What Markdown, or HTML inside of it, could take for more than a letter."""


def as_markdown(report: Report) -> str:
    """The text. Whatever comes from a journal is escaped."""
    filled = environment(_shown, markup=False)
    filled.filters["code"] = _code
    text = filled.get_template("report.md.j2").render(report=report)
    return re.sub(r"\n{3,}", "\n\n", text)


def _shown(value: object) -> object:
    return SIGNS.sub(r"\\\1", visible(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _code(text: str) -> Markup:
    """For an indented block, where nothing but the end of the line has a meaning."""
    return Markup(visible(text))
