"""The deadlines of one member, by name. Time is handed in; a timer never fires by itself."""

from __future__ import annotations

NEVER = 2**63 - 1
"""A deadline that does not come, in microseconds."""


class Timers:
    """Named deadlines in microseconds. `earliest` is always the smallest of them, or `NEVER`."""

    __slots__ = ("_deadlines", "_soonest", "earliest")

    def __init__(self) -> None:
        self._deadlines: dict[str, int] = {}
        self._soonest = ""
        self.earliest = NEVER

    def set(self, name: str, at_us: int) -> None:
        """Set the deadline `name`, in place of the one it had."""
        self._deadlines[name] = at_us
        if at_us < self.earliest:
            self._soonest, self.earliest = name, at_us
        elif name == self._soonest:
            self._refresh()

    def is_set(self, name: str) -> bool:
        """Whether there is a deadline `name`."""
        return name in self._deadlines

    def deadline_us(self, name: str) -> int | None:
        """The deadline `name`; None when it is not set."""
        return self._deadlines.get(name)

    def clear(self, name: str) -> None:
        """Forget the deadline `name`, if it is set."""
        if self._deadlines.pop(name, None) is not None and name == self._soonest:
            self._refresh()

    def clear_all(self) -> None:
        """Forget all deadlines."""
        self._deadlines.clear()
        self._refresh()

    def take_earliest(self) -> str:
        """Clear and name the earliest deadline, which there must be; of equal ones the one that was named first."""
        due = self._soonest
        del self._deadlines[due]
        self._refresh()
        return due

    def _refresh(self) -> None:
        deadlines = self._deadlines
        if deadlines:
            self._soonest = min(deadlines, key=deadlines.__getitem__)
            self.earliest = deadlines[self._soonest]
        else:
            self._soonest, self.earliest = "", NEVER
