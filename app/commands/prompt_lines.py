"""The lines of the prompt: candidates, effects, and execution. Imported when the prompt is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quarterdeck.app.actions.action import WordKind, allowed_on
from quarterdeck.app.actions.registry import action_called, command_words
from quarterdeck.app.commands.command_text import as_prompt_line
from quarterdeck.app.commands.completion import candidates, complete_line
from quarterdeck.app.commands.grammar import BadLine, ConsoleRequest, parse_line
from quarterdeck.app.console_interface import ConsoleInterface, Suggestions
from quarterdeck.app.console_state import ConsoleSettings
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.core.commands.commands import Command, CutLink, Heal, HealLink, Partition
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import counted, one_line

PAST = "refused: what is shown is the past; go to its end first"


class PromptLines:
    """Reads lines for the session in sight."""

    def __init__(
        self,
        console: ConsoleInterface,
        act: Callable[[str, str], None],
        session: Callable[[], ConsoleSession],
        words: Callable[[], Mapping[WordKind, Sequence[str]]],
        settings: ConsoleSettings,
    ) -> None:
        """Create a reader. `act` does an action, given its id and the text behind its word.

        `words` returns the names that may follow a word of their kind where the prompt is open.
        """
        self._console, self._act = console, act
        self._session, self._words, self._settings = session, words, settings

    def complete(self, beginning: str) -> str | None:
        """Return the line that `beginning` most likely becomes, with a blank behind a word that others follow."""
        cluster = self._session().cluster
        allowed = allowed_on(cluster)
        whole = complete_line(
            beginning, cluster.labels, allowed=allowed, words=self._words(), aliases=self._settings.aliases
        )
        if whole is None:
            known = command_words(allowed).get(beginning)
            return f"{beginning} " if known is not None and known[1].usage != beginning else None
        called = command_words(allowed).get(whole)
        return f"{whole} " if called is not None and called[1].usage != whole else whole

    def suggestions(self, beginning: str, selected: str) -> Suggestions:
        """Return what to show above the prompt. `selected` stands in for a member that is left out."""
        cluster = self._session().cluster
        allowed = allowed_on(cluster)
        found = candidates(
            beginning, cluster.labels, allowed=allowed, words=self._words(), aliases=self._settings.aliases
        )
        if not beginning.strip():
            return Suggestions(found, "type a command; tab completes it, ↑ has those before")
        try:
            parsed = parse_line(self._expanded(beginning), cluster.labels, allowed=allowed, selected=selected)
        except BadLine as problem:
            word = command_words(allowed).get(beginning.split()[0])
            return Suggestions(found, word[1].usage if word is not None else str(problem))
        if isinstance(parsed, ConsoleRequest):
            usage, meaning = next(
                (known.usage, known.meaning)
                for known in action_called(parsed.action_id).words
                if known.word == parsed.word
            )
            return Suggestions(found, f"{usage}: {meaning}")
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
            self._act(parsed.action_id, text)
        elif not self._session().live:
            self._console.show_message(PAST, error=True)
        else:
            self._console.request(command_words(allowed)[line.split()[0]][0].id, [parsed])

    def _expanded(self, line: str) -> str:
        """Return the line that an alias, or a command line of the shell, stands for."""
        return as_prompt_line(self._settings.expand_alias(line))


def effect(picture: Picture, command: Command) -> str:
    """Describe in a few words what `command` would do to what `picture` shows."""
    from quarterdeck.app.commands.command_text import describe
    from quarterdeck.backend.picture.what_if.blast_radius import blast_radius

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
