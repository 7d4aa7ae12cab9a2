"""The section ``console:`` of the user's configuration file: colours, mouse, clock, keys, and words of one's own.

For example::

    console:
      theme: high-contrast
      mouse: false
      clock: utc
      keys:
        kill: ctrl+k
        stop: [x, delete]
        screenshot: []
      aliases:
        halves: partition athens,byzantium|cyrene,delphi,euphesus
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from quarterdeck.app.actions.action import EVERYTHING
from quarterdeck.app.actions.registry import command_words
from quarterdeck.app.console_state import Clock, ConsoleSettings
from quarterdeck.app.key_map import check_keys, key_named
from quarterdeck.app.themes import DEFAULT_THEME, theme_called


def _as_list(keys: object) -> object:
    """One key stands for a list of it; a digit needs no quotes."""
    listed = keys if isinstance(keys, list | tuple) else [] if keys is None else [keys]
    return [str(key) if isinstance(key, int) and not isinstance(key, bool) else key for key in listed]


def _word(word: str) -> str:
    if word in command_words(EVERYTHING):
        raise ValueError(f"{word} is a command already; choose another word")
    if not word.isprintable() or " " in word or not word:
        raise ValueError(f"{word!r} is not a word; write letters without blanks")
    return word


def _meaning(line: str) -> str:
    word = line.strip().lstrip(":").partition(" ")[0]
    if word not in command_words(EVERYTHING):
        hint = "what an alias stands for begins with one of those that `:help` lists"
        raise ValueError(f"{word!r} is not a command; {hint}")
    return line.strip().lstrip(":")


Key = Annotated[str, AfterValidator(key_named)]
Keys = Annotated[tuple[Key, ...], BeforeValidator(_as_list, json_schema_input_type=str | list[str])]


class ConsoleSection(BaseModel):
    """All of it may be left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    theme: Annotated[str, AfterValidator(lambda name: theme_called(name).name)] = DEFAULT_THEME
    mouse: bool = True
    """Off, the terminal's own selection works as it does everywhere."""
    clock: Clock = "auto"
    keys: dict[str, Keys] = {}
    """By the id of the action, as `quarterdeck keys` lists them. An empty list takes the key away."""
    aliases: dict[Annotated[str, AfterValidator(_word)], Annotated[str, AfterValidator(_meaning)]] = {}
    """Words for the prompt, and the beginning of the line that each stands for."""


def settings_of(section: ConsoleSection) -> ConsoleSettings:
    """Return the settings that the section describes.

    Raises:
        BadKeys: A key is wrong.
    """
    wanted = {action: ",".join(keys) for action, keys in section.keys.items()}
    check_keys(wanted)
    return ConsoleSettings(section.theme, section.mouse, section.clock, wanted, section.aliases)
