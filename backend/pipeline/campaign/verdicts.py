"""The row of each run of a campaign, however it ended."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Literal, get_args

from msgspec import Struct

from quarterdeck.backend.invariants.data.linearizability import JudgedWrites

RunVerdict = Literal["ok", "violation", "no-convergence", "expectation", "crash", "timeout", "died", "unknown"]
VERDICTS: tuple[RunVerdict, ...] = get_args(RunVerdict)
FAILURES: tuple[RunVerdict, ...] = ("violation", "no-convergence", "expectation", "crash", "timeout", "died")


class TimesReached(Struct, frozen=True):
    """How often a run reached a rule or a branch of the core (`reached_rules`)."""

    name: str
    times: int


class VerdictRow(Struct, frozen=True):
    """How one run ended. The fields are the columns of the Parquet files under `verdicts` of a campaign's folder."""

    variant: int
    """Place of its settings among those that are compared, from 0; 0 without a sweep."""
    seed: int
    members: int
    verdict: RunVerdict
    signature: str = ""
    """Equal for failures that seem to have one cause; empty when nothing failed."""
    invariant: str = ""
    error: str = ""
    virtual_seconds: float = 0.0
    events: int = 0
    """Messages delivered and timers fired; without heartbeats that changed nothing, unless settings are compared."""
    messages: int | None = None
    """Sent by all members, whether they arrived or not, all heartbeats included; None in rows of versions that did
    not count them.
    """
    converged_seconds: float | None = None
    """How long the members took to become one cluster after the last fault."""
    bound_seconds: float | None = None
    detections: tuple[float, ...] = ()
    """For each killed or paused member: virtual seconds until another one suspected or removed it."""
    writes: JudgedWrites = JudgedWrites(0, 0, 0)
    """How much of what was written was judged."""
    reached: tuple[TimesReached, ...] = ()
    """Empty when that is not counted."""
    fingerprint: str = ""
    cpu_seconds: float = 0.0
    attempt: int = 0
    """How often the task was tried before, because a worker or an executor was lost."""


def digest(rows: Iterable[VerdictRow]) -> str:
    """Return a digest that is equal for campaigns with equal runs, whatever the machine, the order and the speed."""
    lines = sorted(f"{row.variant} {row.seed} {row.verdict} {row.signature} {row.fingerprint}\n" for row in rows)
    return sha256("".join(lines).encode()).hexdigest()[:32]
