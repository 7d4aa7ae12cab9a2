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
TAKEN_OUT = 0.2
"""The share of keys that are taken out again in the end."""
GONE, REPLACED, RESURRECTED, REFUSED = "gone", "replaced", "resurrected", "refused, but there"
ANSWER_SECONDS = 40.0
"""Longer than a member tries for a client."""


@dataclass
class Register:
    """What became of the writes to one key. Only its last write can be open: nobody writes it again after that."""

    phase: int
    acknowledged: str | None = None
    """What has to be there; None for nothing: it was never written, or taken out."""
    may_be: tuple[str | None, ...] = ()
    """What an open write would have left: nobody said whether it was done."""
    earlier: set[str] = field(default_factory=set)
    """Values that were acknowledged, and then replaced or taken out."""
    refused: set[str] = field(default_factory=set)
    """Writes that were said not to be done, ever."""
    rested: bool = False
    """No write to it was open when the fault of its phase began, and none came later."""

    def acknowledge(self, value: str | None) -> None:
        """It was said that this is there now; None: that nothing is."""
        if self.acknowledged is not None:
            self.earlier.add(self.acknowledged)
        self.acknowledged = value

    def problem_with(self, found: str | None) -> str:
        """Why this value is none that may be read now; empty when it may be."""
        if found in self.may_be:
            self.acknowledge(found)
            self.may_be = ()
        if found == self.acknowledged:
            return ""
        if found is None:
            kind = GONE
        elif found in self.refused:
            kind = REFUSED
        else:
            kind = RESURRECTED if found in self.earlier else REPLACED
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

    def written(self) -> list[tuple[str, Register]]:
        """Return a copy of the keys so far, for the writer may add others meanwhile."""
        with self.turn:
            return list(self.keys.items())

    def rest(self) -> None:
        """Write none of the keys of this phase again that are there by now. To be called with the writer's turn."""
        for register in self.keys.values():
            register.rested = register.rested or (register.phase == self.phase and not register.may_be)
        self._key = ""

    def _write(self, http: httpx.Client) -> None:
        if not self._key or self._writes % WRITES_PER_KEY == 0:
            self._take_out(http)
            self._key = f"w{self._number}-{self._writes}"
            self.keys[self._key] = Register(self.phase)
        register = self.keys[self._key]
        value = f"{self._key}:{self._writes}"
        self._writes += 1
        outcome = self._ask(http, "PUT", self._key, {"value": value})
        self.counts[outcome] += 1
        if outcome == "acknowledged":
            register.acknowledge(value)
        elif outcome == "refused":
            register.refused.add(value)
        elif outcome != "nobody there":
            register.may_be = (value,)
            self._key = ""

    def _take_out(self, http: httpx.Client) -> None:
        """Some keys are taken out when no more is written there: what was there must not come back."""
        if not self._key or self._random.random() >= TAKEN_OUT:
            return
        register = self.keys[self._key]
        outcome = self._ask(http, "DELETE", self._key, None)
        self.counts[f"{outcome}: taken out"] += 1
        if outcome == "acknowledged":
            register.acknowledge(None)
        elif outcome not in ("refused", "nobody there"):
            register.may_be = (None,)

    def _ask(self, http: httpx.Client, method: str, key: str, body: dict[str, str] | None) -> str:
        url = f"{self._random.choice(self._urls)}{API}/maps/{map_of(self.phase)}/{key}"
        try:
            answer = http.request(method, url, json=body)
        except httpx.ConnectError:
            return "nobody there"
        except httpx.TransportError:
            return "open"
        if answer.is_success or (method == "DELETE" and answer.status_code == HTTPStatus.NOT_FOUND):
            return "acknowledged"
        if answer.status_code in (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE):
            return "refused"
        return "open" if answer.status_code == HTTPStatus.GATEWAY_TIMEOUT else f"answered {answer.status_code}"


def map_of(phase: int) -> str:
    return f"phase-{phase}"
