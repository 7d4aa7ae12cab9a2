"""Failure detectors: is a member alive, judged by the heartbeats that came from it (behaviour 3.6)."""

from __future__ import annotations


class DeadlineDetector:
    """Alive as long as the last heartbeat is not older than the timeout. One detector watches one member."""

    __slots__ = ("last_heard_us", "timeout_us")

    def __init__(self, now: int, timeout_us: int) -> None:
        self.last_heard_us = now
        self.timeout_us = timeout_us

    def heard(self, now: int) -> None:
        """A heartbeat came."""
        self.last_heard_us = now

    def alive(self, now: int) -> bool:
        return self.last_heard_us + self.timeout_us > now

    def silence_us(self, now: int) -> int:
        return now - self.last_heard_us
