"""The terminal that the console draws on: it is stdout, and is left as it was."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver


class TerminalDriver(LinuxDriver):
    """Textual's driver, but drawing on stdout, so that `2>errors.txt` takes nothing from the screen."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._file = TerminalOutput()

    def _disable_mouse_support(self) -> None:
        super()._disable_mouse_support()
        if self._mouse_pixels:  # Textual leaves this one on
            self.write("\x1b[?1016l")


class TerminalOutput(io.TextIOWrapper):
    """Writes to the terminal behind stdout. What is written after it is gone is lost without an error."""

    def __init__(self) -> None:
        assert sys.__stdout__ is not None, "who has no stdout has no terminal"
        raw = os.fdopen(os.dup(sys.__stdout__.fileno()), "wb")
        super().__init__(raw, encoding=sys.__stdout__.encoding, errors="backslashreplace")

    def write(self, text: str, /) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def driver_for(chosen: type[Driver]) -> type[Driver]:
    """Return our driver in place of the one for terminals; a browser has its own."""
    return TerminalDriver if chosen is LinuxDriver else chosen
