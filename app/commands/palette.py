"""The command palette's entries, from the same registry as everything else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from textual import work
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.css.query import NoMatches

from quarterdeck.app.actions.action import Action, allowed_on
from quarterdeck.app.actions.registry import available_actions
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.widgets.dialog import OverView

LINES_OF_A_HIT = 2
"""The title of an action, and its meaning."""
NAMED, MEANT = 1_000.0, 500.0
"""What it counts that the words looked for stand in the names of an action, or in its meaning; else letters in order count."""


class ConsolePalette(OverView, CommandPalette):
    """Textual's palette without some of its defects.

    Its own way to move by a page breaks while the list is being filled, and it goes on filling a list that was closed
    meanwhile. `enter` right after `escape` would take away the view below.
    """

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        gather: Any = CommandPalette._gather_commands
        try:
            await gather.__wrapped__(self, search_value)
        except NoMatches:
            if self.query(CommandList):
                raise

    def _action_command_list(self, action: str) -> None:
        commands = self.query_one(CommandList)
        if action not in ("page_up", "page_down"):
            super()._action_command_list(action)
        elif commands.option_count:
            step = max(1, commands.size.height // LINES_OF_A_HIT) * (1 if action == "page_down" else -1)
            commands.highlighted = min(max((commands.highlighted or 0) + step, 0), commands.option_count - 1)


class ActionsProvider(Provider):
    """Offers every action that the cluster allows."""

    async def discover(self) -> Hits:
        for action in self._actions():
            yield DiscoveryHit(title_of(action), self._run(action), help=action.meaning)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._actions():
            title = title_of(action)
            score = score_of(action, query, matcher.match(title))
            if score > 0:
                yield Hit(score, matcher.highlight(title), self._run(action), help=action.meaning)

    @property
    def _view(self) -> ViewScreen:
        assert isinstance(self.screen, ViewScreen)
        return self.screen

    def _actions(self) -> tuple[Action, ...]:
        return available_actions(allowed_on(self._view.session.cluster))

    def _run(self, action: Action) -> Callable[[], None]:
        return partial(self._view.console.action_act, action.id)


def title_of(action: Action) -> str:
    """Return what an action is called in the palette; the second one of a pair of keys has no title of its own."""
    return action.title or action.id.replace("-", " ")


def score_of(action: Action, query: str, letters: float) -> float:
    """Return how well an action fits what is looked for: by a name, by its meaning, or by the `letters` of its title."""
    wanted, title = query.strip().lower(), title_of(action).lower()
    if wanted in title:
        return NAMED * (1 + len(wanted) / len(title) + title.startswith(wanted))
    if any(wanted in name.lower() for name in (action.id, *(word.word for word in action.words))):
        return NAMED
    return MEANT if wanted in action.meaning.lower() else letters
