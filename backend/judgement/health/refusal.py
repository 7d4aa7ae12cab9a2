"""Which calls a cluster refuses or leaves without an answer at this moment, and why."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.health.replica_safety import ReplicaSafety
from quarterdeck.backend.picture.text.formatting import counted


class CallRefusal(Struct, frozen=True):
    """One reason for which calls fail now."""

    kind: Literal["no-owner", "state", "size", "cp"]
    text: str
    since_us: int | None = None


def refusals(agreement: ListAgreement, replicas: ReplicaSafety) -> tuple[CallRefusal, ...]:
    """Return why calls fail, the gravest first; none where nothing of the kind is reported."""
    found: list[CallRefusal] = []
    if replicas.ownerless:
        found.append(CallRefusal("no-owner", replicas.text))
    passive = [
        belief for belief in agreement.masters if belief.shows("cluster-state") and belief.cluster_state == "PASSIVE"
    ]
    if passive:
        since_us = max(belief.cluster_state_since_us for belief in passive)
        found.append(CallRefusal("state", "PASSIVE: writes are refused", since_us))
    short = [belief for belief in agreement.masters if not belief.operating]
    if short:
        found.append(CallRefusal("size", f"fewer than {counted(short[0].needed, 'member')}: calls are refused"))
    missing = max(
        (belief.metrics.cp_missing or 0 for belief in agreement.holders if belief.metrics is not None), default=0
    )
    if missing:
        found.append(CallRefusal("cp", f"{counted(missing, 'CP member')} missing"))
    return tuple(found)
