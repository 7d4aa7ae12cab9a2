"""The clients of `tests.bench.chaos`: what each wrote, and which values may be read afterwards."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from random import Random

import httpx

API = "/quarterdeck/v1"
WRITES_PER_SECOND = 40
"""Of each writer, at most."""
WRITES_PER_KEY = 5
GONE = "gone"
ANSWER_SECONDS = 40.0
"""Longer than a member tries for a client."""


@dataclass
class Register:
    """What became of the writes to one key. Only its last write can be open: nobody writes it again after that."""

    phase: int
    acknowledged: str | None = None
    open: str | None = None
    """A write of which nobody said whether it was done."""
    refused: set[str] = field(default_factory=set)
    """Writes that were said not to be done, ever."""

    def problem_with(self, found: str | None) -> str:
        """Why this value is none that may be read now; empty when it may be."""
        if self.open is not None and found == self.open:
            self.acknowledged, self.open = self.open, None
        if found == self.acknowledged:
            return ""
        kind = "refused, but there" if found in self.refused else GONE if found is None else "replaced"
        return f"{kind}: {found!r} instead of {self.acknowledged!r}"


class Writer:
    """A client that writes values it never wrote before, through any member. `turn` is held while it does."""

    def __init__(self, number: int, urls: Sequence[str], seed: int) -> None:
        self.turn = threading.Lock()
        self.phase = 0
        self.keys: dict[str, Register] = {}
        self.counts: Counter[str] = Counter()
        self._number = number
        self._urls = urls
        self._random = Random(f"{seed} writer {number}")
        self._key = ""
        self._writes = 0

    def write_until(self, over: threading.Event) -> None:
        with httpx.Client(timeout=ANSWER_SECONDS, trust_env=False) as http:
            while not over.wait(1 / WRITES_PER_SECOND):
                with self.turn:
                    self._write(http)

    def begin_phase(self, phase: int) -> None:
        """From now on write keys of this phase. To be called with the writer's turn."""
        self.phase = phase
        self._key = ""

    def _write(self, http: httpx.Client) -> None:
        if not self._key or self._writes % WRITES_PER_KEY == 0:
            self._key = f"w{self._number}-{self._writes}"
            self.keys[self._key] = Register(self.phase)
        register = self.keys[self._key]
        value = f"{self._key}:{self._writes}"
        self._writes += 1
        outcome = self._put(http, self._key, value)
        self.counts[outcome] += 1
        if outcome == "acknowledged":
            register.acknowledged = value
        elif outcome == "refused":
            register.refused.add(value)
        elif outcome != "nobody there":
            register.open = value
            self._key = ""

    def _put(self, http: httpx.Client, key: str, value: str) -> str:
        url = f"{self._random.choice(self._urls)}{API}/maps/{map_of(self.phase)}/{key}"
        try:
            answer = http.put(url, json={"value": value})
        except httpx.ConnectError:
            return "nobody there"
        except httpx.TransportError:
            return "open"
        if answer.is_success:
            return "acknowledged"
        if answer.status_code in (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE):
            return "refused"
        return "open" if answer.status_code == HTTPStatus.GATEWAY_TIMEOUT else f"answered {answer.status_code}"


def map_of(phase: int) -> str:
    return f"phase-{phase}"
