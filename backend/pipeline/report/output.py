"""Renders a report as HTML, Markdown or JSON, and writes it to a file. Imports no Spark."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from quarterdeck.backend.pipeline.commit import write_whole
from quarterdeck.backend.pipeline.report import drawing
from quarterdeck.backend.pipeline.report.run_section import Row

FORMATS = (".html", ".md", ".json")


class ReportRefused(ValueError):
    """A report cannot be written there. The message says why."""


def check_destination(path: Path) -> None:
    """Check, before long work, that `write_report` can write to `path`. Raises `ReportRefused`."""
    if path.suffix.lower() not in FORMATS:
        raise ReportRefused(f"{path}: a report is a file that ends with {', '.join(FORMATS)}")
    if path.is_dir():
        raise ReportRefused(f"{path} is a directory; name a file")
    if not path.parent.is_dir():
        raise ReportRefused(f"{path.parent}: no such directory; make it first")


def as_bytes(report: Row, form: str) -> bytes:
    """Encode the report in one of `FORMATS`."""
    if form == ".json":
        return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"
    return (as_markdown(report) if form == ".md" else as_html(report)).encode()


def write_report(report: Row, path: Path) -> None:
    """Write the report in the format of the file name, whole or not at all. Raises `ReportRefused` and OSError."""
    check_destination(path)
    write_whole(path.parent, path.name, as_bytes(report, path.suffix.lower()))


# HTML and Markdown

TEMPLATES = Path(__file__).with_name("templates")


def _environment(finalize: Callable[[object], object], *, markup: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=markup,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"clock": drawing.clock, "span": drawing.span, "quantity": drawing.quantity}
    return environment


def as_html(report: Row) -> str:
    """Render the report as an HTML page. Text of a journal is escaped."""
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _environment(_shown, markup=True).get_template("report.html.j2")
    return page.render(report=report, policy=policy, style=Markup(style), script=Markup(script), drawing=drawing)


def _shown(value: object) -> object:
    return _visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


SIGNS = re.compile(r"([\\`*_{}\[\]<>()#|~!&])")
"""Characters that mean something to Markdown, or to HTML inside of it."""


def as_markdown(report: Row) -> str:
    """Render the report as Markdown. Text of a journal is escaped."""
    environment = _environment(_markdown_text, markup=False)
    environment.filters["code"] = lambda text: Markup(_visible(text))  # an indented block needs no other escapes
    text = environment.get_template("report.md.j2").render(report=report)
    return re.sub(r"\n{3,}", "\n\n", text)


def _markdown_text(value: object) -> object:
    return SIGNS.sub(r"\\\1", _visible(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _visible(text: str) -> str:
    """Return `text` in one line, with escapes for control characters, marks of writing direction and the like."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
