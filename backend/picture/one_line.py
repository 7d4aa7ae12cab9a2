"""Text from elsewhere, made safe to paint: one line, no control characters, nothing that steers a terminal."""

from __future__ import annotations

STAND_IN = "\N{REPLACEMENT CHARACTER}"


def one_line(text: str) -> str:
    """`text` with every unprintable character replaced: line ends, escapes, marks of reading direction."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else STAND_IN for letter in text)
