"""The report as one HTML page that needs nothing else: no network, no font, and without its little script it says the same.

Style and script stand inside, and the page's policy names their digests: whatever else got in would not run.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from markupsafe import Markup

from quarterdeck.backend.pipeline.report import drawing
from quarterdeck.backend.pipeline.report.model import Report
from quarterdeck.backend.pipeline.report.plain_text import visible
from quarterdeck.backend.pipeline.report.templating import TEMPLATES, environment


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
