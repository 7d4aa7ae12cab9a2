"""Whatever stands in a journal is text on the page, and nothing more."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.backend.pipeline.report.output import as_html, as_markdown
from tests.pipeline.report.handmade_rows import finding, report_of, rows_of
from tests.thoroughness import examples

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=http://evil.example/x onerror=alert(1)>',
    "</title></style></svg><iframe>",
    "' onload='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "[a](javascript:alert(1)) | `x` ![b](http://evil.example)",
    "x\n## heading\n| a | b |\r\n<b>",
    "\u202egpj.exe\x00\x1b[31m",
)


class Skeleton(HTMLParser):
    """Tags with the names of their attributes, without any text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def html_with(name: str) -> str:
    return as_html(report_of(rows_of(name, name=name), finding(name, name)))


def page_with(name: str) -> Skeleton:
    return Skeleton(html_with(name))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_change_no_tag_of_the_page(name: str) -> None:
    page = page_with(name)
    assert page.tags == page_with("tame" * (1 + len(name) // 4)).tags
    assert not {"img", "iframe", "object", "base"} & {tag for tag, _ in page.tags}


@given(st.text(min_size=1, max_size=40))
@settings(max_examples=examples(30))
def test_no_text_changes_the_tags(name: str) -> None:
    html = html_with(name)
    assert not {"img", "iframe", "object", "base"} & {tag for tag, _ in Skeleton(html).tags}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", html)


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_keeps_its_shape(name: str) -> None:
    text = as_markdown(report_of(rows_of(name, name=name), finding(name, name)))
    tame = as_markdown(report_of(rows_of("tame", name="tame"), finding("tame", "tame")))
    assert text.count("\n") == tame.count("\n")
    outside = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    assert not re.search(r"(?<!\\)[<>`]", outside)
    assert not re.search(r"(?<!\\)\]\(", outside)


def test_the_page_has_no_address_and_its_policy_forbids_them() -> None:
    page = as_html(report_of(rows_of(), finding()))
    assert "default-src 'none'" in unescape(page)
    assert "http://" not in page
    assert "https://" not in page
    assert not re.search(r"\b(?:src|href)=\"(?!#|data:,)", page)
    assert not re.search(r"\sstyle=", page)
    assert not re.search(r"\son\w+=", page)
