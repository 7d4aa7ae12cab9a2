"""Copying to the clipboard of the operator's terminal by OSC 52, which works over SSH and through tmux.

Terminals accept about 75 kB of base64 at once and drop longer texts entirely. So a longer text is cut, and the operator is
informed.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from textual.app import App

LONGEST_BASE64 = 74_994
"""What the strictest of the common terminals accepts."""

LONGEST_BYTES = LONGEST_BASE64 // 4 * 3


class Copied(NamedTuple):
    """What went to the clipboard: `text` is all of it, or its beginning."""

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
    """Return the longest beginning of `text` that a terminal accepts; no letter is cut in two."""
    whole = text.encode(errors="replace")
    part = whole[:LONGEST_BYTES].decode(errors="ignore")
    return Copied(part, len(part.encode()), len(whole))


def osc_52(text: str) -> str:
    """Return the sequence that puts `text` on the clipboard."""
    return f"\x1b]52;c;{base64.b64encode(text.encode(errors='replace')).decode('ascii')}\a"


def through_tmux(sequence: str) -> str:
    """Wrap `sequence` so that tmux passes it to the terminal outside, if its `allow-passthrough` is on."""
    return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"


def copy(app: App[Any], text: str, environment: Mapping[str, str] = os.environ) -> Copied:
    """Put `text`, or as much as fits, on the clipboard. Return how much that was.

    In tmux both forms are sent: tmux uses the plain one where its `set-clipboard` is on, and passes the wrapped one on.
    """
    copied = as_much_as_fits(text)
    app.copy_to_clipboard(copied.text)
    # Textual has no public way to write a sequence of one's own.
    driver = app._driver
    if environment.get("TMUX") and driver is not None:
        driver.write(through_tmux(osc_52(copied.text)))
    return copied
