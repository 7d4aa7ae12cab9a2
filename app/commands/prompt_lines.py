"""The lines of the prompt: candidates, effects, and execution. Imported when the prompt is first used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, get_args

from quarterdeck.app.actions.action import Allowed, WordKind, allowed_on
from quarterdeck.app.actions.registry import action_called, command_words
from quarterdeck.app.commands.command_text import NO_KINDS, as_prompt_line, describe
from quarterdeck.app.commands.grammar import LISTS, BadLine, ConsoleRequest, parse_line
from quarterdeck.app.console_interface import ConsoleInterface, Suggestion, Suggestions
from quarterdeck.app.console_state import ConsoleSettings
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.commands.catalogue import Argument, ArgumentKind, commands_of_word
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.commands import Command, CutLink, Heal, HealLink, LinkFault, Partition
from quarterdeck.backend.core.events import EVENT_KINDS
from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.core.properties import FIXED_AT_START, PROPERTIES
from quarterdeck.backend.judgement.what_if.blast_radius import blast_radius
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import counted, one_line

PAST = "refused: what is shown is the past; go to its end first"


class Vocabulary(NamedTuple):
    """What may stand in a line: members, and names by the kind of word that they follow, such as columns and themes."""

    labels: Sequence[str]
    allowed: Allowed
    words: Mapping[WordKind, Sequence[str]] = MappingProxyType({})
    aliases: Mapping[str, str] = MappingProxyType({})


class PromptLines:
    """Reads lines for the session in sight."""

    def __init__(
        self,
        console: ConsoleInterface,
        session: Callable[[], ConsoleSession],
        words: Callable[[], Mapping[WordKind, Sequence[str]]],
        settings: ConsoleSettings,
    ) -> None:
        """Create a reader. `words` returns the names that may follow a word of their kind where the prompt is open."""
        self._console, self._session, self._words, self._settings = console, session, words, settings

    def complete(self, beginning: str) -> str | None:
        """Return the line that `beginning` most likely becomes, with a blank behind a word that others follow."""
        vocabulary = self._vocabulary
        whole = complete_line(beginning, vocabulary)
        called = command_words(vocabulary.allowed).get(whole or beginning)
        return f"{whole or beginning} " if called is not None and called[1].usage != (whole or beginning) else whole

    @property
    def _vocabulary(self) -> Vocabulary:
        cluster = self._session().cluster
        return Vocabulary(cluster.labels, allowed_on(cluster), self._words(), self._settings.aliases)

    def suggestions(self, beginning: str, selected: str) -> Suggestions:
        """Return what to show above the prompt. `selected` stands in for a member that is left out."""
        vocabulary = self._vocabulary
        labels, allowed = vocabulary.labels, vocabulary.allowed
        found = candidates(beginning, vocabulary)
        if not beginning.strip():
            return Suggestions(found, "type a command; tab completes it, ↑ has those before")
        try:
            parsed = parse_line(self._expanded(beginning), labels, allowed=allowed, selected=selected)
        except BadLine as problem:
            word = command_words(allowed).get(beginning.split()[0])
            return Suggestions(found, word[1].usage if word is not None else str(problem))
        if isinstance(parsed, ConsoleRequest):
            called = next(known for known in action_called(parsed.action_id).words if known.word == parsed.word)
            return Suggestions(found, f"{called.usage}: {called.meaning}")
        if not self._session().live:
            return Suggestions(found, PAST)
        return Suggestions(found, effect(self._session().picture, parsed))

    def execute(self, line: str, selected: str) -> None:
        """Do what a line says, or show what is wrong with it."""
        line = self._expanded(line)
        cluster = self._session().cluster
        allowed = allowed_on(cluster)
        try:
            parsed = parse_line(line, cluster.labels, allowed=allowed, selected=selected)
        except BadLine as problem:
            self._console.show_message(str(problem), error=True)
            return
        if isinstance(parsed, ConsoleRequest):
            action = action_called(parsed.action_id)
            # A handler is given the word as well where an action has several.
            text = f"{parsed.word} {parsed.text}".strip() if len(action.words) > 1 else parsed.text
            self._console.action_act(parsed.action_id, text)
        elif not self._session().live:
            self._console.show_message(PAST, error=True)
        else:
            self._console.request(command_words(allowed)[line.split()[0]][0].id, [parsed])

    def _expanded(self, line: str) -> str:
        return as_prompt_line(self._settings.expand_alias(line))


def effect(picture: Picture, command: Command) -> str:
    """Describe in a few words what `command` would do to what `picture` shows."""
    match command:
        case Partition(groups=groups):
            sizes = [len(group) for group in groups]
            links = (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2
            return f"would cut {counted(links, 'link')}"
        case CutLink(one_way=one_way):
            return "would cut one link, one way" if one_way else "would cut one link"
        case Heal():
            return f"would heal {counted(len(picture.links), 'one-way link')}"
        case HealLink():
            return "would heal one link"
    return blast_radius(picture, [command]) or one_line(f"would do: {describe(command)}")


WORD_KINDS: tuple[WordKind, ...] = ("choice", "column", "theme", "cluster", "demo")
"""Kinds of words that are followed by one of some names, which may contain blanks."""


def candidates(beginning: str, vocabulary: Vocabulary) -> list[Suggestion]:
    """Return the lines that `beginning` may become, the likeliest first; nothing if that is unknown.

    A name is found by its beginning, by a part of it, or by some of its letters in their order.
    """
    labels, allowed, words, aliases = vocabulary
    known = command_words(allowed)
    word, space, rest = beginning.partition(" ")
    if not space:
        own = {name: (name, f"your word for: {line}") for name, line in aliases.items()}
        texts = own | {name: (called.usage, called.meaning) for name, (_, called) in known.items()}
        return [Suggestion(name, *texts[name]) for name in best(word, tuple(texts))]
    if word not in known:
        return []
    called = known[word][1]
    if called.takes in WORD_KINDS:
        follow = called.choices if called.takes == "choice" else words.get(called.takes, ())
        return [Suggestion(f"{word} {name}", name) for name in best(rest, follow)]
    arguments = max((command.typed for command in commands_of_word(word)), key=len, default=())
    dividers = " ,|" if arguments and any(argument.kind in LISTS for argument in arguments) else " "
    start = max(beginning.rfind(divider) for divider in dividers) + 1
    last, before = beginning[start:], beginning[len(word) + 1 : start]
    named = re.split(r"[ ,|]+", before.strip(" ,|")) if before.strip(" ,|") else []
    if arguments:
        follow = _candidates(arguments, len(named), labels)
    else:
        follow = labels if not named and called.takes not in ("text", "file", "nothing") else ()
    found = best(last, [name for name in follow if name not in named])
    return [Suggestion(beginning[:start] + name, name) for name in found]


def complete_line(beginning: str, vocabulary: Vocabulary) -> str | None:
    """Return the line that `beginning` most likely becomes, with its last word completed. Return None if that is unknown."""
    word, space, rest = beginning.partition(" ")
    groups = any(argument.kind == "groups" for description in commands_of_word(word) for argument in description.typed)
    if not (word if not space else rest or not groups):
        return None
    found = candidates(beginning, vocabulary)
    called = command_words(vocabulary.allowed).get(word) if space and not rest else None
    return found[0].line if found and (called is None or called[1].takes not in WORD_KINDS) else None


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


def _candidates(arguments: Sequence[Argument], place: int, labels: Sequence[str]) -> Sequence[str]:
    if place >= len(arguments) and arguments[-1].kind not in LISTS:
        return ()
    argument = arguments[min(place, len(arguments) - 1)]
    found = _of_argument(argument, labels, listed=place >= len(arguments))
    if argument.optional and place + 1 < len(arguments):
        return (*_candidates(arguments, place + 1, labels), *found)
    return found


def _of_argument(argument: Argument, labels: Sequence[str], *, listed: bool) -> Sequence[str]:
    none = () if listed or argument.optional else (NO_KINDS,)
    names: Mapping[ArgumentKind, Sequence[str]] = {
        **dict.fromkeys(("member", "other member", "members", "groups", "join list"), labels),
        "cluster state": CLUSTER_STATES,
        "properties": tuple(f"{name}=" for name in PROPERTIES if name not in FIXED_AT_START),
        "event kind": tuple(EVENT_KINDS),
        "message kinds": (*none, *MESSAGE_KINDS),
        "link faults": get_args(LinkFault),
        "flag": (argument.key,),
    }
    return names.get(argument.kind, ())
