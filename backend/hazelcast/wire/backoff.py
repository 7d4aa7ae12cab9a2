"""How long to wait before a member is dialled again: longer each time, and never all at once."""

from __future__ import annotations

from random import Random

from quarterdeck.backend.hazelcast.wire.settings import Pace


class DialBackoff:
    """The waits of one follower. Each is shortened by chance by up to a half, so that many followers do not dial together."""

    def __init__(self, pace: Pace, random: Random) -> None:
        self._pace = pace
        self._random = random
        self._wait_us = pace.first_wait_us

    def next_us(self) -> int:
        """The wait after an attempt that failed, or a connection that ended."""
        wait_us = self._wait_us
        self._wait_us = min(2 * wait_us, self._pace.longest_wait_us)
        return self._shortened(wait_us)

    def merging_us(self) -> int:
        """The wait while a member is not ready: that takes seconds, and its new life shall be seen soon."""
        return self._shortened(self._pace.merging_wait_us)

    def refused_us(self) -> int:
        """The wait after having been turned away."""
        return self._shortened(self._pace.refused_wait_us)

    def reset(self) -> None:
        """It has worked: begin with short waits again."""
        self._wait_us = self._pace.first_wait_us

    def _shortened(self, wait_us: int) -> int:
        return int(wait_us * (1 - self._random.random() / 2))
