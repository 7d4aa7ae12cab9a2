"""Which calls a cluster refuses or leaves without an answer at this moment, and why."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.conclusion import Statement
from quarterdeck.backend.judgement.health.replica_safety import ReplicaSafety
from quarterdeck.backend.picture.text.formatting import counted, listed, one_line


class CallRefusal(Struct, frozen=True):
    """One reason for which calls fail now."""

    kind: Literal["no-owner", "state", "size", "cp"]
    text: str
    since_us: int | None = None
    evidence: tuple[Statement, ...] = ()


NAMED = 3
"""How many members are named that are in another state than their master."""


def refusals(agreement: ListAgreement, replicas: ReplicaSafety) -> tuple[CallRefusal, ...]:
    """Return why calls fail, the gravest first; none where nothing of the kind is reported."""
    found: list[CallRefusal] = []
    if replicas.ownerless:
        tables = [(master, master.table) for master in agreement.masters if master.table is not None]
        said = (Statement(master.label, "has partitions without an owner", table.since_us) for master, table in tables)
        found.append(CallRefusal("no-owner", replicas.text, evidence=tuple(said)))
    passive = [belief for belief in agreement.holders if belief.cluster_state == "PASSIVE"]  # only by a report
    if passive:
        since_us = max(belief.cluster_state_since_us for belief in passive)
        said = (Statement(it.label, "is PASSIVE", it.cluster_state_since_us) for it in passive)
        behind = one_line(listed([belief.label for belief in passive], NAMED))
        where = "" if any(belief.leads for belief in passive) else f" at {behind}"
        found.append(CallRefusal("state", f"PASSIVE{where}: writes are refused", since_us, tuple(said)))
    short = [belief for belief in agreement.holders if not belief.operating]
    if short:
        said = (Statement(it.label, f"needs {it.needed}", it.list_since_us) for it in short)
        text = f"fewer than {counted(short[0].needed, 'member')}: calls are refused"
        found.append(CallRefusal("size", text, evidence=tuple(said)))
    lacking = [
        (it, it.metrics.cp_missing) for it in agreement.holders if it.metrics is not None and it.metrics.cp_missing
    ]
    if lacking:
        missing = max(count for _, count in lacking)
        said = (Statement(it.label, f"misses {counted(count, 'CP member')}", it.metrics_us) for it, count in lacking)
        found.append(CallRefusal("cp", f"{counted(missing, 'CP member')} missing", evidence=tuple(said)))
    return tuple(found)
