"""What may follow on the prompt: candidates for the word that is being typed, the likeliest first, with their meanings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import get_args

from quarterdeck.app.actions.action import Allowed, WordKind
from quarterdeck.app.actions.registry import command_words
from quarterdeck.app.commands.command_text import NO_KINDS
from quarterdeck.app.commands.grammar import LISTS
from quarterdeck.app.console_interface import Suggestion
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.commands.catalogue import Argument, commands_of_word
from quarterdeck.backend.core.commands.commands import LinkFault
from quarterdeck.backend.core.events import EVENT_KINDS
from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.core.properties import FIXED_AT_START, PROPERTIES

WORD_KINDS: tuple[WordKind, ...] = ("choice", "column", "theme", "cluster", "demo")
"""Kinds of words that are followed by one of some names, which may contain blanks."""


def candidates(
    beginning: str,
    labels: Sequence[str],
    *,
    allowed: Allowed,
    words: Mapping[WordKind, Sequence[str]] | None = None,
    aliases: Mapping[str, str] | None = None,
) -> list[Suggestion]:
    """Return the lines that `beginning` may become, the likeliest first; nothing if that is unknown.

    `words` has the names that may follow a word of their kind, besides members: columns, themes, clusters, demos. A name is
    found by its beginning, by a part of it, or by some of its letters in their order.
    """
    known = command_words(allowed)
    word, space, rest = beginning.partition(" ")
    if not space:
        own = {name: (name, f"your word for: {line}") for name, line in (aliases or {}).items()}
        texts = own | {name: (called.usage, called.meaning) for name, (_, called) in known.items()}
        return [Suggestion(name, *texts[name]) for name in best(word, tuple(texts))]
    if word not in known:
        return []
    called = known[word][1]
    if called.takes in WORD_KINDS:
        follow = called.choices if called.takes == "choice" else (words or {}).get(called.takes, ())
        return [Suggestion(f"{word} {name}", name) for name in best(rest, follow)]
    arguments = max((one.typed for one in commands_of_word(word)), key=len, default=())
    dividers = " ,|" if arguments and any(one.kind in LISTS for one in arguments) else " "
    start = max(beginning.rfind(divider) for divider in dividers) + 1
    last, before = beginning[start:], beginning[len(word) + 1 : start]
    named = re.split(r"[ ,|]+", before.strip(" ,|")) if before.strip(" ,|") else []
    follow = _candidates(arguments, len(named), labels) if arguments else _of_request(called.takes, named, labels)
    found = best(last, [name for name in follow if name not in named])
    return [Suggestion(beginning[:start] + name, name) for name in found]


def complete_line(
    beginning: str,
    labels: Sequence[str],
    *,
    allowed: Allowed,
    words: Mapping[WordKind, Sequence[str]] | None = None,
    aliases: Mapping[str, str] | None = None,
) -> str | None:
    """Return the line that `beginning` most likely becomes, with its last word completed. Return None if that is unknown."""
    word, space, rest = beginning.partition(" ")
    groups = any(argument.kind == "groups" for description in commands_of_word(word) for argument in description.typed)
    if not (word if not space else rest or not groups):
        return None
    found = candidates(beginning, labels, allowed=allowed, words=words, aliases=aliases)
    if not found or (
        space and not rest and (called := command_words(allowed).get(word)) and called[1].takes in WORD_KINDS
    ):
        return None
    return found[0].line


def best(typed: str, names: Sequence[str]) -> list[str]:
    """Return the names that `typed` may mean, without itself: by beginning, by a part, by letters in their order."""
    if not typed:
        return list(names)
    wanted = typed.casefold()
    folded = [(name, name.casefold()) for name in names if name != typed]
    begin = [name for name, text in folded if text.startswith(wanted)]
    hold = [name for name, text in folded if wanted in text and not text.startswith(wanted)]
    letters = re.compile(".*".join(map(re.escape, wanted)))
    apart = [name for name, text in folded if wanted not in text and letters.match(text)]
    return [*begin, *hold, *apart]


def _of_request(takes: WordKind, named: Sequence[str], labels: Sequence[str]) -> Sequence[str]:
    """Return what may follow a word of the console's own, after the words `named`."""
    return labels if not named and takes not in ("text", "file", "nothing") else ()


def _candidates(arguments: Sequence[Argument], place: int, labels: Sequence[str]) -> Sequence[str]:
    """Return what may stand at `place` after a word that takes these arguments."""
    if place >= len(arguments) and arguments[-1].kind not in LISTS:
        return ()
    argument = arguments[min(place, len(arguments) - 1)]
    found = _of_argument(argument, labels, listed=place >= len(arguments))
    if argument.optional and place + 1 < len(arguments):
        return (*_candidates(arguments, place + 1, labels), *found)
    return found


def _of_argument(argument: Argument, labels: Sequence[str], *, listed: bool) -> Sequence[str]:
    """Return what may stand for an argument; `listed`: others of its kind stand there already."""
    match argument:
        case Argument(kind="member" | "other member" | "members" | "groups" | "join list"):
            return labels
        case Argument(kind="cluster state"):
            return CLUSTER_STATES
        case Argument(kind="properties"):
            return tuple(f"{name}=" for name in PROPERTIES if name not in FIXED_AT_START)
        case Argument(kind="event kind"):
            return tuple(EVENT_KINDS)
        case Argument(kind="message kinds"):
            return tuple(MESSAGE_KINDS) if listed or argument.optional else (NO_KINDS, *MESSAGE_KINDS)
        case Argument(kind="link faults"):
            return get_args(LinkFault)
        case Argument(kind="flag") as flag:
            return (flag.key,)
        case _:
            return ()
