"""Handlers whose chapters are read when one of them is done for the first time, so that the console is on the screen sooner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from quarterdeck.app.views.view_screen import Handler


class DeferredHandlers:
    """Stands for handlers that `make` gives. `action_ids` are theirs, all of them."""

    def __init__(self, action_ids: Iterable[str], make: Callable[[], Mapping[str, Handler]]) -> None:
        self._make = make
        self._made: Mapping[str, Handler] | None = None
        self.handlers: dict[str, Handler] = {action_id: partial(self._do, action_id) for action_id in action_ids}

    def _do(self, action_id: str, text: str) -> None:
        if self._made is None:
            self._made = self._make()
        self._made[action_id](text)
