"""The settings of the console, and what it remembers between runs: how views were arranged, and what was typed.

The memory is one small JSON file, replaced as a whole, so it is never half written. Several consoles may be open: each
applies its change to the present content of the file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from quarterdeck.app.themes import DEFAULT_THEME

Clock = Literal["auto", "run", "utc"]
"""How events are dated: in seconds since the run began, or in UTC. `auto` is UTC for clusters that run elsewhere and journals."""


class ConsoleSettings(Struct, frozen=True):
    """The section ``console:`` of the configuration file, checked.

    The theme exists, and no keys clash (`app.key_map.check_keys`).
    """

    theme: str = DEFAULT_THEME
    mouse: bool = True
    """Whether the console uses the mouse. If not, the terminal selects text with it as usual."""
    clock: Clock = "auto"
    keys: Mapping[str, str] = {}
    """Keys as Textual names them, separated by commas, by the id of the action; empty for an action without a key."""
    aliases: Mapping[str, str] = {}
    """What a word at the prompt stands for; the rest of the line is appended."""

    def expand_alias(self, line: str) -> str:
        """Return `line` with its first word replaced by what it stands for, if it is an alias."""
        word, space, rest = line.strip().partition(" ")
        meant = self.aliases.get(word)
        return line if meant is None else f"{meant}{space}{rest}"


class TableSettings(Struct, frozen=True):
    """How a reader wants a table. `sort` and `hidden` are titles of columns."""

    sort: str = ""
    reverse: bool = False
    hidden: tuple[str, ...] = ()
    filter: str = ""


FORMAT = 1
HISTORY_LENGTH = 100
"""Lines kept for each sign of the prompt."""


class _Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The file. Fields that a later version adds are ignored."""

    format: int = FORMAT
    views: dict[str, TableSettings] = {}
    history: dict[str, list[str]] = {}
    """The lines by sign of the prompt, the latest last."""


class ConsoleState:
    """The memory, kept in a file, or without one until the console ends. It never raises: a problem is reported, once."""

    def __init__(self, file: Path | None, report: Callable[[str], None]) -> None:
        """Read `file`. `report` is called with a sentence for the operator when the file cannot be read or written."""
        self._file = file
        self._report = report
        self._problem_shown = self._unwritten = False
        self._memory = self._read()

    def table_settings_of(self, view: str) -> TableSettings:
        return self._memory.views.get(view, TableSettings())

    def keep(self, view: str, table_settings: TableSettings, *, with_filter: bool = False) -> None:
        """Remember the hidden columns; filter and sorting only `with_filter`.

        A forgotten filter would hide members the next day, and an unexpected order confuses; so they are kept only if they
        were saved on purpose, and stay until they are saved again or reset.
        """
        saved = self.table_settings_of(view)
        kept = table_settings
        if not with_filter:
            kept = replace(kept, filter=saved.filter, sort=saved.sort, reverse=saved.reverse)
        if kept == saved:
            return

        def changed(now: _Memory) -> _Memory:
            views = {**now.views, view: kept}
            return replace(now, views={name: wanted for name, wanted in views.items() if wanted != TableSettings()})

        self._change(changed)

    def forget(self, view: str) -> None:
        self.keep(view, TableSettings(), with_filter=True)

    def typed_before(self, sign: str) -> Sequence[str]:
        """Return what was typed after this sign of the prompt, the latest last."""
        return tuple(self._memory.history.get(sign, ()))

    def add_to_history(self, sign: str, line: str) -> None:
        if not line.strip():
            return

        def added(now: _Memory) -> _Memory:
            past = [previous for previous in now.history.get(sign, []) if previous != line]
            return replace(now, history={**now.history, sign: [*past, line][-HISTORY_LENGTH:]})

        self._change(added)

    def _change(self, changed: Callable[[_Memory], _Memory]) -> None:
        self._memory = changed(self._memory if self._file is None or self._unwritten else self._read())
        if self._file is not None:
            try:
                write_atomically(self._file, msgspec.json.format(msgspec.json.encode(self._memory), indent=1))
                self._unwritten = False
            except OSError as problem:
                self._unwritten = True
                self._report_once(f"views and history are not kept: {problem}")

    def _read(self) -> _Memory:
        if self._file is None:
            return _Memory()
        try:
            memory = msgspec.json.decode(self._file.read_bytes(), type=_Memory)
        except FileNotFoundError:
            return _Memory()
        except OSError as problem:
            self._report_once(f"what was remembered cannot be read: {problem}")
            return _Memory()
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            self._set_aside(problem)
            return _Memory()
        if memory.format != FORMAT:
            self._set_aside(ValueError(f"its format is {memory.format}, this console knows {FORMAT}"))
            return _Memory()
        return memory

    def _set_aside(self, problem: Exception) -> None:
        """Rename the file, so that it can be inspected, and start with an empty memory."""
        assert self._file is not None
        aside = self._file.with_suffix(".unreadable")
        try:
            self._file.replace(aside)
            self._report_once(f"what was remembered cannot be read and is set aside as {aside}: {problem}")
        except OSError as failure:
            self._report_once(f"what was remembered cannot be read ({problem}) and cannot be set aside: {failure}")

    def _report_once(self, sentence: str) -> None:
        if not self._problem_shown:
            self._problem_shown = True
            self._report(sentence)


def write_atomically(file: Path, content: bytes) -> None:
    """Replace `file` such that others see either the old or the new content. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Readable by its owner alone: what was typed may contain values of maps.
    fresh = tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False)
    try:
        with fresh:
            fresh.write(content)
        Path(fresh.name).replace(file)
    except OSError:
        Path(fresh.name).unlink(missing_ok=True)
        raise
