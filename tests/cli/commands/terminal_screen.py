"""What somebody sees who sits at a terminal: the text of its screen, as escape sequences have put it there."""

from __future__ import annotations

import re

from rich.cells import cell_len

TOKENS = re.compile(
    r"\x1b\[(?P<arguments>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]P_^].*?(?:\x07|\x1b\\)"
    r"|\x1b[^\[\]P_^]"
    r"|(?P<line>[\r\n])"
    r"|(?P<text>[^\x1b\r\n]+)",
    re.DOTALL,
)


class TerminalScreen:
    """Understands what moves the cursor, erases and writes; colours and modes are nothing to read."""

    def __init__(self, rows: int, columns: int) -> None:
        self._cells = [[" "] * columns for _ in range(rows)]
        self._row = self._column = 0
        self._rest = ""

    @property
    def text(self) -> str:
        """Line by line, without blanks at the right."""
        return "\n".join("".join(line).rstrip() for line in self._cells)

    def feed(self, shown: str) -> None:
        """Take in what the terminal was sent; the beginning of a sequence waits for its end."""
        shown = self._rest + shown
        at = 0
        while (token := TOKENS.match(shown, at)) is not None:
            at = token.end()
            if token["final"]:
                self._control(token["final"], token["arguments"])
            elif token["line"]:
                self._column = 0
                self._row += token["line"] == "\n"
            elif token["text"]:
                self._write(token["text"])
        self._rest = shown[at:]

    def _control(self, final: str, arguments: str) -> None:
        numbers = [int(argument) if argument.isdecimal() else 1 for argument in arguments.split(";")]
        if final == "H":
            self._row, self._column = numbers[0] - 1, (numbers[1] if len(numbers) > 1 else 1) - 1
        elif final == "J":
            for line in self._cells:
                line[:] = " " * len(line)

    def _write(self, text: str) -> None:
        for letter in text:
            width = cell_len(letter)
            if 0 <= self._row < len(self._cells) and self._column + width <= len(self._cells[0]) and width:
                self._cells[self._row][self._column : self._column + width] = [letter, *[""] * (width - 1)]
            self._column += width
