"""The deadlines of one member, by name. Time is handed in; a timer never fires by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER = 2**63 - 1
"""A deadline that does not come, in microseconds. A time of 0 stands for none as well."""


@dataclass(slots=True)
class Timers:
    """Named deadlines. `earliest` is always the smallest of them, or `NEVER`, and `soonest` is its name."""

    deadlines: dict[str, int] = field(default_factory=dict)
    soonest: str = ""
    earliest: int = NEVER

    def set(self, name: str, at_us: int) -> None:
        self.deadlines[name] = at_us
        if at_us < self.earliest:
            self.soonest, self.earliest = name, at_us
        elif name == self.soonest:
            self._refresh()

    def set_by(self, name: str, at_us: int) -> None:
        """Set the deadline `name` so that it comes no later than `at_us`."""
        if at_us < self.deadlines.get(name, NEVER):
            self.set(name, at_us)

    def is_set(self, name: str) -> bool:
        return name in self.deadlines

    def deadline_us(self, name: str) -> int | None:
        return self.deadlines.get(name)

    def clear(self, name: str) -> None:
        if self.deadlines.pop(name, None) is not None and name == self.soonest:
            self._refresh()

    def clear_all(self) -> None:
        self.deadlines.clear()
        self._refresh()

    def pop_earliest(self) -> str:
        """Clear and name the earliest deadline, which there must be; of equal ones the one that was named first."""
        due = self.soonest
        del self.deadlines[due]
        self._refresh()
        return due

    def _refresh(self) -> None:
        soonest, earliest = "", NEVER
        for name, at_us in self.deadlines.items():
            if at_us < earliest:
                soonest, earliest = name, at_us
        self.soonest, self.earliest = soonest, earliest
