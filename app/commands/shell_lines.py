"""Command lines of the shell at the prompt: a line that acts, copied from a page or a runbook, does the same here."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from quarterdeck.app.commands.command_text import PROGRAM
from quarterdeck.backend.core.commands.catalogue import BY_PROMPT, CATALOGUE, FAULT, CommandDescription

FLAGS = ("--tls", "--")
"""Options without a value. All other options of lines that act have one."""

LOAD_OPTIONS = {
    "--keys": "keys", "--value-bytes": "bytes", "--skew": "skew", "--reads": "reads", "--map": "map", "--for": "for",
}  # fmt: skip
"""The options of `map load` as the prompt has them."""

DEFAULT_MAP = "default"


def as_prompt_line(line: str) -> str:
    """Return a command line of the shell as the prompt writes it, and any other line as it is.

    Which cluster is meant, and as whom it is spoken to, is left out: the prompt acts on the cluster in sight.
    """
    try:
        words, options = _divided(shlex.split(line))
    except ValueError:
        return line
    if words[:1] == [PROGRAM]:
        words = words[1:]
    if words[:2] == ["map", "load"] and "--rate" in options:
        said = (f"{word}={options[option]}" for option, word in LOAD_OPTIONS.items() if option in options)
        return " ".join(("load", options["--rate"], *said))
    for group in (BY_PROMPT, FAULT):
        literals = group.split()[:-1]
        if words[: len(literals)] == literals and len(words) > len(literals):
            return " ".join(words[len(literals) :])
    return next((found for one in CATALOGUE if (found := _as_prompt_line(one, words, options))), line)


def _divided(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words of a command line that are no options, and the options with their values."""
    plain, options = list[str](), dict[str, str]()
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            plain.append(word)
        elif word not in FLAGS:
            option, given, value = word.partition("=")
            options[option] = value if given else next(rest, "")
    return plain, options


def _as_prompt_line(description: CommandDescription, words: Sequence[str], options: Mapping[str, str]) -> str:
    """Return the line of this command; empty if the words are not those of its command line."""
    if not description.cli or description.cli in (BY_PROMPT, FAULT):
        return ""
    parts = description.cli.split()
    literals = [part for part in parts if "{" not in part]
    if list(words[: len(literals)]) != literals:
        return ""
    values, free = dict[str, str](), list(words[len(literals) :])
    for part in (part for part in parts if "{" in part):
        option, _, name = part.rstrip("}").partition("{")
        if option:
            values[name] = options.get(option.rstrip("="), DEFAULT_MAP if name == "map" else "")
        elif free:
            values[name] = free.pop(0)
    given = [values[argument.name] for argument in description.typed if values.get(argument.name)]
    return " ".join((description.word, *map(shlex.quote, given), *free))
