"""Deeds whose chapters are read when one of them is done for the first time, so that the console is on the screen sooner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from quarterdeck.app.live_screen import Deed


class LateDeeds:
    """Stands for deeds that `make` gives. `action_ids` are theirs, all of them."""

    def __init__(self, action_ids: Iterable[str], make: Callable[[], Mapping[str, Deed]]) -> None:
        self._make = make
        self._made: Mapping[str, Deed] | None = None
        self.deeds: dict[str, Deed] = {action_id: partial(self._do, action_id) for action_id in action_ids}

    def _do(self, action_id: str, text: str) -> None:
        if self._made is None:
            self._made = self._make()
        self._made[action_id](text)
