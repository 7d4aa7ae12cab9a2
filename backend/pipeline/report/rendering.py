"""The one environment in which templates are filled in."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from quarterdeck.backend.pipeline.report import drawing, scale
from quarterdeck.backend.pipeline.report.model import Report

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


def as_html(report: Report) -> str:
    """The page. Whatever comes from a journal is escaped."""
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = environment(_shown, markup=True).get_template("report.html.j2")
    return page.render(report=report, policy=policy, style=Markup(style), script=Markup(script), drawing=drawing)


def _shown(value: object) -> object:
    """What stands in the page for a value: text without anything that cannot be seen."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


SIGNS = re.compile(r"([\\`*_{}\[\]<>()#|~!&])")
"""What Markdown, or HTML inside of it, could take for more than a letter."""


def as_markdown(report: Report) -> str:
    """The text. Whatever comes from a journal is escaped."""
    filled = environment(_markdown_text, markup=False)
    filled.filters["code"] = _code_block
    text = filled.get_template("report.md.j2").render(report=report)
    return re.sub(r"\n{3,}", "\n\n", text)


def _markdown_text(value: object) -> object:
    return SIGNS.sub(r"\\\1", visible(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _code_block(text: str) -> Markup:
    """For an indented block, where nothing but the end of the line has a meaning."""
    return Markup(visible(text))


def visible(text: str) -> str:
    """`text` in one line; controls, marks that turn the direction of writing and the like become codes."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
