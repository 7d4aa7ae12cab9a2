"""A filter's text: held, not held, or an expression."""

from __future__ import annotations

import pytest

from quarterdeck.backend.picture.text.formatting import text_filter

TEXTS = ("athens v7 member", "byzantium v6 member", "cyrene v7 suspected", "a/b v7")


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("MEMBER", [0, 1]),
        ("!member", [2, 3]),
        ("/v[67] member/", [0, 1]),
        ("/^C.*ED$/", [2]),
        ("!/v7/", [1]),
        ("/b", [3]),
        ("/(/", []),
        ("!", []),
        ("/", [3]),
        ("//", []),
    ],
)
def test_what_a_text_selects(text: str, places: list[int]) -> None:
    selects = text_filter(text)
    assert [place for place, one in enumerate(TEXTS) if selects(one)] == places
