"""Text from journals is anybody's: what cannot be seen is shown as its code."""

from __future__ import annotations


def visible(text: str) -> str:
    """`text` in one line; controls, marks that turn the direction of writing and the like become codes."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _code(letter) for letter in text)


def _code(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
