"""The moments of which a statement may speak, what was logged and done up to them, and the members and ages that texts name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from quarterdeck.backend.core.address import Address
from tests.hazelcast.real.judges import EARLY_US, LATE_US, Statement
from tests.hazelcast.real.truth import Truth, TruthAtMoment

SECOND_US = 1_000_000
AGE_SLACK_US = 4 * SECOND_US
"""How much later than its log line something may be said to have been."""
SETTLE_US = 20 * SECOND_US
"""A member that was started, stopped, thawed or merged so recently may be on its way still."""
METRICS_US = 12 * SECOND_US
"""Metrics come every 5 seconds, and of a busy member late; what they say may be so old."""
EVER_US = 10**12
ONE = re.compile(r"10\.77\.0\.\d+:5701")


class NotLogged(Exception):
    """With what is said no log can be compared."""


class LogIsOver(NotLogged):
    """A member that was asked to end logs no more, and what it does after that is not known.

    Its runtime closes the log at the same signal.
    """


class Window:
    """The moments of which a statement may speak, and what was logged and done up to them."""

    def __init__(self, said: Statement, truth: Truth, *, one_sided: bool) -> None:
        self.said, self.truth, self.one_sided = said, truth, one_sided
        self.first_us, self.last_us = said.at_us - LATE_US, said.at_us + EARLY_US
        self.moments = truth.between(self.first_us, self.last_us)

    def any(self, holds: Callable[[TruthAtMoment], bool]) -> bool:
        """Return whether it was so at some moment."""
        return any(map(holds, self.moments))

    def logged(self, pattern: str, back_us: int, *members: Address) -> bool:
        """Return whether a member logged this within so long before."""
        return bool(self.truth.logs(pattern, self.said.at_us - back_us, self.last_us, *members))

    def done(self, *kinds: str, back_us: int = EVER_US, member: Address | None = None) -> bool:
        """Return whether any of this was done within so long before, to this member or any."""
        return any(
            step.kind in kinds
            and self.said.at_us - back_us
            <= step.at_us
            <= self.last_us + (self.truth.ends_late_us if step.kind == "end" else 0)
            and (member is None or member in step.members or any(member in link for link in step.links))
            for step in self.truth.done
        )

    def leads(self, master: Address, size: int, version: int | None = None, lineage: str = "") -> bool:
        """Return whether a member leads so many, by its own list."""

        def holds(truth: TruthAtMoment) -> bool:
            held = truth.lists.get(master)
            return (
                held is not None
                and held.addresses[0] == master
                and len(held.addresses) == size
                and version in (None, held.version)
                and held.uuids[0].startswith(lineage)
            )

        return self.any(holds)

    def is_shut(self) -> bool:
        """Return whether the cluster has another state than ACTIVE: a script set it, or a master did for its merge."""
        states = [it.value for it in self.truth.done if it.kind == "state" and it.at_us <= self.last_us]
        if states and states[-1] != "active":
            return True
        return self.logged("Changing cluster state", SETTLE_US)

    def at_most_one(self) -> bool:
        """Return whether at most one led at some moment."""
        return self.any(lambda truth: len(truth.leading) < 2)

    def two_masters(self) -> bool:
        """Return whether more than one led at some moment."""
        return self.any(lambda truth: len(truth.masters) > 1)

    def is_unsettled(self, member: Address) -> bool:
        """Return whether a member does not answer, or has not for long: it starts, ends, stands still or merges."""
        if self.any(lambda truth: not truth.answers(member) or member in truth.frozen):
            return True
        changed = self.done("start", "end", "kill", "stop", "freeze", "thaw", back_us=SETTLE_US, member=member)
        return changed or self.logged(r"is MERG(ING|ED)", SETTLE_US, member)


def members(text: str) -> list[Address]:
    """Return the members that a text names."""
    return [Address(it) for it in ONE.findall(text)]


def age_us(text: str) -> tuple[int, int]:
    """Return the least and the most that an age may be: `39 s`, `2 min`, `1 h`, `1.5 s`, `3 min 20 s`."""
    parts = re.findall(r"([\d.]+) (h|min|s)", text)
    units = {"h": 3_600 * SECOND_US, "min": 60 * SECOND_US, "s": SECOND_US}
    least = round(sum(float(number) * units[unit] for number, unit in parts))
    return least, least + units[parts[-1][1]]


def was_about(text: str, moments_us: Iterable[int], said_us: int) -> bool:
    """Return whether one of these moments lies so long before as a text says."""
    least, most = age_us(text)
    return any(least - SECOND_US <= said_us - it <= most + AGE_SLACK_US for it in moments_us)
