"""The command palette's entries, from the same registry as everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider

from app.actions.action import Action
from app.actions.registry import available_actions

if TYPE_CHECKING:
    from app.console import Console


class ActionsProvider(Provider):
    """Offers every action that the cluster allows."""

    async def discover(self) -> Hits:
        for action in self._actions():
            yield DiscoveryHit(action.title, self._run(action), help=action.meaning)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._actions():
            score = max(matcher.match(action.title), matcher.match(action.meaning))
            if score > 0:
                yield Hit(score, matcher.highlight(action.title), self._run(action), help=action.meaning)

    @property
    def _console(self) -> Console:
        from app.console import Console

        assert isinstance(self.app, Console)
        return self.app

    def _actions(self) -> tuple[Action, ...]:
        return available_actions(self._console.cluster.writable)

    def _run(self, action: Action) -> Callable[[], None]:
        console = self._console
        return lambda: console.action_act(action.id)
