"""How the operator wants the console: what stands under ``console:`` in the configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from quarterdeck.app.themes.registry import DEFAULT_THEME

Clock = Literal["run", "utc"]
"""What events are dated by: seconds since the run began, or UTC."""


@dataclass(frozen=True)
class ConsoleSettings:
    """Settings that were checked: the theme exists, and no keys clash (`app.key_map.check_keys`)."""

    theme: str = DEFAULT_THEME
    mouse: bool = True
    """Without, the terminal selects text with its mouse as it always does."""
    clock: Clock = "run"
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys as Textual names them, separated by commas, by the id of the action; empty for an action without a key."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """What a word at the prompt stands for; whatever follows the word is put behind it."""

    def expand_alias(self, line: str) -> str:
        """`line` of the prompt with its first word replaced by what it stands for, if it is an alias."""
        word, space, rest = line.strip().partition(" ")
        meant = self.aliases.get(word)
        return line if meant is None else f"{meant}{space}{rest}"
