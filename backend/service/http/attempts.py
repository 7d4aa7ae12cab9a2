"""How often, and how fast, somebody beyond this process may try something."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable

from quarterdeck.backend.core.properties import SECOND_US

WINDOW_US = 60 * SECOND_US

KEYS_KEPT = 4_096


class AttemptCounter:
    """Counts what remote hosts did lately. So many hosts are remembered; of more, the host that was seen least recently
    is forgotten.
    """

    def __init__(self, allowed: int, window_us: int = WINDOW_US, kept: int = KEYS_KEPT) -> None:
        self._allowed = allowed
        self._window_us = window_us
        self._kept = kept
        self._times: OrderedDict[Hashable, deque[int]] = OrderedDict()

    def wait_us(self, host: Hashable, now_us: int) -> int:
        """How long until `host` may do it again; 0 if it may now."""
        times = self._times.get(host)
        if times is None or len(times) < self._allowed:
            return 0
        return max(0, times[0] + self._window_us - now_us)

    def record(self, host: Hashable, now_us: int) -> None:
        """`host` has done it."""
        self._times.setdefault(host, deque(maxlen=self._allowed)).append(now_us)
        self._times.move_to_end(host)
        if len(self._times) > self._kept:
            self._times.popitem(last=False)

    def __len__(self) -> int:
        return len(self._times)


class GuessPace:
    """Slows guessing down without shutting anybody out: after so many wrong guesses within a minute, the next ones are looked
    at one after another, `apart_us` from each other.
    """

    def __init__(self, free: int, apart_us: int) -> None:
        self._wrong = AttemptCounter(free)
        self._apart_us = apart_us
        self._next_us: OrderedDict[Hashable, int] = OrderedDict()
        """When the next turn is, of those who have to wait for theirs."""

    def turn_us(self, who: Hashable, now_us: int) -> int:
        """Take the next turn: how long to wait for it."""
        if not self._wrong.wait_us(who, now_us):
            return 0
        turn_us = max(now_us + self._apart_us, self._next_us.pop(who, 0))
        self._next_us[who] = turn_us + self._apart_us
        if len(self._next_us) > KEYS_KEPT:
            self._next_us.popitem(last=False)
        return turn_us - now_us

    def wrong(self, who: Hashable, now_us: int) -> None:
        """The guess was wrong."""
        self._wrong.record(who, now_us)
