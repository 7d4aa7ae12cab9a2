"""Copying to the clipboard of the terminal that the operator sits at, by OSC 52: over SSH and through tmux alike.

Terminals take about 75 kB of base64 at once and drop longer ones whole, so a longer text is cut, and that is said.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from textual.app import App

LONGEST_BASE64 = 74_994
"""What the strictest of the common terminals takes."""

LONGEST_BYTES = LONGEST_BASE64 // 4 * 3


class Copied(NamedTuple):
    """What went to the clipboard: `text` is all or the beginning of what was to be copied."""

    text: str
    bytes: int
    bytes_wanted: int

    @property
    def sentence(self) -> str:
        if self.bytes == self.bytes_wanted:
            return f"copied {self.bytes:,} bytes"
        return (
            f"copied only the first {self.bytes:,} of {self.bytes_wanted:,} bytes, as much as terminals take; "
            ":export writes all to a file"
        )


def as_much_as_fits(text: str) -> Copied:
    """The longest beginning of `text` that a terminal takes; no letter is cut in two."""
    whole = text.encode(errors="replace")
    part = whole[:LONGEST_BYTES].decode(errors="ignore")
    return Copied(part, len(part.encode()), len(whole))


def osc_52(text: str) -> str:
    """The sequence that puts `text` on the clipboard."""
    return f"\x1b]52;c;{base64.b64encode(text.encode(errors='replace')).decode('ascii')}\a"


def through_tmux(sequence: str) -> str:
    """`sequence` wrapped so that tmux hands it on to the terminal outside, if its `allow-passthrough` is on."""
    return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"


def copy(app: App[Any], text: str, environment: Mapping[str, str] = os.environ) -> Copied:
    """Put `text`, or as much as fits, on the clipboard; what is returned says how much, in words for the operator.

    In tmux both forms are sent: tmux takes the plain one itself where its `set-clipboard` is on, and hands on the wrapped one.
    """
    copied = as_much_as_fits(text)
    app.copy_to_clipboard(copied.text)
    # Textual has no public way to write a sequence of one's own.
    driver = app._driver
    if environment.get("TMUX") and driver is not None:
        driver.write(through_tmux(osc_52(copied.text)))
    return copied
