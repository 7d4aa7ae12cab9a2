"""Writing what a view shows to a file, its rows as CSV or JSON, the screen as SVG or text; and copying it to the clipboard.

An existing file is overwritten only when the operator asks for it. The clipboard is that of the terminal, by OSC 52, which
works over SSH and through tmux. Terminals accept about 75 kB of base64 at once and drop longer texts entirely: a longer text is
cut, and the operator is informed.
"""

from __future__ import annotations

import base64
import csv
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from quarterdeck.backend.picture.text.formatting import Refusal, counted, one_line
from quarterdeck.widgets.dialog import Dialog

OVERWRITE_SIGN = "!"

Row = Mapping[str, str]
"""The cells of one row by the titles of their columns."""


class BadExport(Refusal):
    """Nothing was written; the message says why and what to write instead."""


class Target(NamedTuple):
    """Where to write. `overwrite` allows replacing a file."""

    file: Path
    overwrite: bool

    @property
    def suffix(self) -> str:
        return self.file.suffix.lower()


def target_of(text: str, usage: str) -> Target:
    """Return what follows ``:export`` and ``:screenshot``: a file, and perhaps ``!``. Raises `BadExport`."""
    named = text.strip()
    overwrite = named.endswith(OVERWRITE_SIGN)
    named = named.removesuffix(OVERWRITE_SIGN).strip()
    if not named:
        raise BadExport(f"which file? write {usage}")
    try:
        return Target(Path(named).expanduser(), overwrite)
    except RuntimeError as problem:
        raise BadExport(f"{named}: this machine has no user of that name; write the folder in full") from problem


def export_rows(app: App[Any], rows: Iterable[Row], target: Target) -> str:
    """Write the rows in the format that the file's suffix names. Return the message to show. Raises `BadExport`."""
    listed = list(rows)
    match target.suffix:
        case ".csv":
            content = as_csv(listed)
        case ".json":
            content = as_json(listed)
        case other:
            raise BadExport(f"{other or 'no suffix'} is not a format of tables; write FILE.csv or FILE.json")
    return f"{counted(len(listed), 'row')} {deliver(app, target, content)}"


def export_screen(app: App[Any], target: Target) -> str:
    """Write the screen as a picture (.svg) or as text (.txt). Return the message to show. Raises `BadExport`."""
    match target.suffix:
        case ".svg":
            content = without_fonts(app.export_screenshot())
        case ".txt":
            content = screen_text(app)
        case other:
            raise BadExport(f"{other or 'no suffix'} is not a format of screens; write FILE.svg or FILE.txt")
    return deliver(app, target, content)


def deliver(app: App[Any], target: Target, content: str) -> str:
    """Write `content`, or in a browser offer it as a download, which touches no file on this machine.

    Return the message to show.
    """
    if app.is_web:
        app.deliver_text(io.StringIO(content), save_filename=target.file.name)
        return f"sent to the browser as {target.file.name}"
    write(target, content)
    return f"written to {target.file}"


def as_csv(rows: Sequence[Row]) -> str:
    """Return a line of titles, then a line for each row. Columns are in the order in which rows bring them."""
    titles = list(dict.fromkeys(title for row in rows for title in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, titles, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(rows: Sequence[Row]) -> str:
    """Return a list with an object for each row, one row on a line."""
    if not rows:
        return "[]\n"
    return "[\n" + ",\n".join(msgspec.json.encode(row).decode() for row in rows) + "\n]\n"


def as_text(rows: Sequence[Row]) -> str:
    """Return text for pasting: a line for each row, with tabs between cells, as spreadsheets accept it."""
    return "\n".join("\t".join(cell.strip() for cell in row.values()) for row in rows)


def screen_text(app: App[Any]) -> str:
    """Return every line of the screen without colours and without blanks at the right."""
    strips = app.screen._compositor.render_strips()  # the only place where the painted screen stands as text
    return "".join(f"{''.join(segment.text for segment in strip).rstrip()}\n" for strip in strips)


def without_fonts(svg: str) -> str:
    """Return the picture without references to fonts on the net; it names a monospaced one that every viewer has."""
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def write(target: Target, content: str) -> None:
    """Put `content` into the file. Raises `BadExport` if it exists already, or cannot be written."""
    file = target.file
    try:
        with file.open("w" if target.overwrite else "x", encoding="utf-8", errors="replace", newline="") as out:
            out.write(content)
    except FileExistsError as problem:
        raise BadExport(f"{file} exists already; put {OVERWRITE_SIGN} after its name to overwrite it") from problem
    except FileNotFoundError as problem:
        raise BadExport(f"there is no folder {file.parent}; make it first, or write elsewhere") from problem
    except IsADirectoryError as problem:
        raise BadExport(f"{file} is a folder; name a file in it") from problem
    except (OSError, ValueError) as problem:
        raise BadExport(f"{file} cannot be written: {getattr(problem, 'strerror', None) or problem}") from problem


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


class CommandLinesScreen(Dialog[None]):
    """Shows the lines whole, wrapped to the width."""

    DEFAULT_CSS = """
    CommandLinesScreen { align: center middle; }
    #lines-box {
        width: 110; max-width: 95%; height: auto; max-height: 90%; border: round $primary; background: $surface; padding: 0 1;
    }
    #lines-text { height: auto; }
    #lines-hint { height: 1; margin: 1 0 0 0; color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,dollar_sign", "dismiss", "Close"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, done: Sequence[str], shows: str) -> None:
        """Create the screen.

        `done` are the lines of what was done last, `shows` is the one of the current view; either may be empty.
        """
        super().__init__()
        self._done, self._shows = tuple(done), shows

    def compose(self) -> ComposeResult:
        with Vertical(id="lines-box"):
            yield Static(self._text(), id="lines-text")
            yield Static("y copies, esc closes", id="lines-hint", markup=False)

    def action_copy(self) -> None:
        lines = [*self._done, *([self._shows] if self._shows else [])]
        if lines:
            copied = copy(self.app, "".join(f"{line}\n" for line in lines))
            self.query_one("#lines-hint", Static).update(Text(copied.sentence))

    def _text(self) -> Text:
        text = Text()
        text.append("What was done last\n", "bold")
        text.append("".join(f"$ {one_line(line)}\n" for line in self._done) or "nothing that a command line can do\n")
        text.append("What is in sight\n", "bold")
        text.append(f"$ {one_line(self._shows)}" if self._shows else "only the console shows this")
        return text
