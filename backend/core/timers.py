"""The deadlines of one member, by name. Time is handed in; a timer never fires by itself."""

from __future__ import annotations

NEVER = 2**63 - 1
"""A deadline that does not come, in microseconds."""


class Timers:
    """Named deadlines in microseconds. `earliest` is always the smallest of them, or `NEVER`."""

    __slots__ = ("_deadlines", "earliest")

    def __init__(self) -> None:
        self._deadlines: dict[str, int] = {}
        self.earliest = NEVER

    def set(self, name: str, at_us: int) -> None:
        before = self._deadlines.get(name)
        self._deadlines[name] = at_us
        if at_us <= self.earliest:
            self.earliest = at_us
        elif before == self.earliest:
            self._refresh()

    def clear(self, name: str) -> None:
        if self._deadlines.pop(name, None) is not None:
            self._refresh()

    def clear_all(self) -> None:
        self._deadlines.clear()
        self.earliest = NEVER

    def take_due(self, now: int) -> list[str]:
        """Remove and return the names whose time has come, the earliest first, ties in order of name."""
        deadlines = self._deadlines
        due = [name for name, at_us in deadlines.items() if at_us <= now]
        if len(due) > 1:
            due.sort(key=lambda name: (deadlines[name], name))
        for name in due:
            del deadlines[name]
        self._refresh()
        return due

    def _refresh(self) -> None:
        self.earliest = min(self._deadlines.values(), default=NEVER)
