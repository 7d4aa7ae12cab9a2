"""Each conclusion of a moment beside what is true: said rightly, said wrongly, or not known.

A `yes`, a `no` and a value must be true. "Not known" is allowed, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from quarterdeck.backend.boards.cluster_metrics import cluster_metrics
from quarterdeck.backend.conclusion_testing.entries import EntryLedger
from quarterdeck.backend.conclusion_testing.truth import Truth
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.judge import Judge

Verdict = Literal["true", "false", "unknown"]

BEFORE_LOSS_US = 120 * SECOND_US
"""A partition is found to be lost so long after its last holder went, at most."""
SAID_WITHIN_US = 15 * SECOND_US
"""A loss has to be said so soon after it."""


class Compared(NamedTuple):
    """One conclusion and the truth about the same question at the same moment."""

    question: str
    subject: str
    said: str
    true: str
    verdict: Verdict


def compare(judge: Judge, truth: Truth, ledger: EntryLedger, totals: Totals) -> Iterator[Compared]:
    """Yield every conclusion of `judge` beside the truth of the same moment."""
    yield from _whole(judge, truth)
    yield from _losses(judge, truth, ledger)
    yield from _replicas(judge, truth, ledger)
    yield from _metrics(judge, truth, totals)
    yield from _stops(judge, truth)


class Totals:
    """How many entries there were of each map in the last seconds: what members measure is a little older than now."""

    def __init__(self, span_us: int) -> None:
        self._span_us = span_us
        self._samples: list[tuple[int, dict[str, int]]] = []

    def add(self, now_us: int, entries: dict[str, int]) -> None:
        """Note how many entries the owners have now."""
        self._samples = [sample for sample in self._samples if sample[0] >= now_us - self._span_us]
        self._samples.append((now_us, entries))

    def bounds(self, map: str) -> tuple[int, int]:
        """Return the fewest and the most entries of a map lately."""
        counts = [entries.get(map, 0) for _, entries in self._samples]
        return min(counts, default=0), max(counts, default=0)


def _statement(question: str, said: object, true: object, subject: str = "") -> Compared:
    if said is None:
        return Compared(question, subject, "unknown", str(true), "unknown")
    return Compared(question, subject, str(said), str(true), "true" if said == true else "false")


def _whole(judge: Judge, truth: Truth) -> Iterator[Compared]:
    health = judge.health
    is_whole = truth.is_whole
    if health.whole is False:
        yield _statement("one-cluster", False, is_whole and not truth.is_troubled)
    else:
        yield _statement("one-cluster", health.whole, is_whole)
    if health.condition == "split":
        yield _statement("split", True, len(truth.leaders) > 1)
    if health.condition == "down":
        yield _statement("down", True, not truth.members)
    if health.condition == "healthy":
        yield from _healthy(judge, truth)


def _healthy(judge: Judge, truth: Truth) -> Iterator[Compared]:
    """Judge the word: no member is missed, every partition is served, and no call is refused."""
    unowned = sum(len(list(truth.unowned(member))) for member in truth.leaders)
    yield _statement("healthy: partitions without an owner", 0, unowned)
    states = {member.state.cluster_state for member in truth.joined}
    yield _statement("healthy: state of the cluster", "ACTIVE", "".join(sorted(states)))


def _losses(judge: Judge, truth: Truth, ledger: EntryLedger) -> Iterator[Compared]:
    found = [loss for loss in judge.health.losses if loss.entries != 0]
    for loss in found:
        since_us = loss.since_us - BEFORE_LOSS_US
        lost = [true for true in ledger.losses if true.partition in loss.lost and true.at_us >= since_us]
        if not loss.certain:
            yield Compared("data-lost", loss.side, "feared", str(bool(lost)), "unknown")
            continue
        yield _statement("data-lost", True, bool(lost), loss.side)
    if not found and judge.health.condition == "healthy":
        late_us = truth.now_us - SAID_WITHIN_US
        standing = [
            loss
            for loss in ledger.losses
            if loss.certain and not loss.is_rewritten and not loss.by_merge and loss.at_us <= late_us
        ]
        yield _statement("data-lost", False, bool(standing))


def _replicas(judge: Judge, truth: Truth, ledger: EntryLedger) -> Iterator[Compared]:
    safe, copies = judge.health.data_safe, judge.health.replicas.copies
    if safe is not True:
        yield Compared(
            "data-safe", "", "no" if safe is False else "unknown", "", "true" if safe is False else "unknown"
        )
        return
    side = frozenset().union(*(uuids for _, _, uuids in truth.lists))
    wanted = 1 if copies is None else copies
    short = [key for key, partition in ledger.promised() if truth.copies(key, partition, side) < wanted]
    yield Compared(
        "data-safe", "", f"yes, {copies} copies", f"{len(short)} keys have fewer", "false" if short else "true"
    )


def _metrics(judge: Judge, truth: Truth, totals: Totals) -> Iterator[Compared]:
    true: dict[str, float] = {
        "masters": len(truth.leaders),
        "lineages": len({lineage for lineage, _, _ in truth.lists}),
        "lists_agree": len(truth.lists) == 1,
        "tables_agree": len(truth.tables) == 1,
    }
    metrics = {metric.name: metric for metric in cluster_metrics(judge, {})}
    for name, value in true.items():
        said = metrics[name].samples.get(()) if name in metrics else None
        yield _statement(f"metric {name}", said, float(value))
    entries = metrics.get("map_entries")
    for (name,), count in entries.samples.items() if entries is not None else ():
        fewest, most = totals.bounds(name)
        verdict: Verdict = "true" if fewest <= count <= most else "false"
        yield Compared("metric map_entries", name, f"{count:.0f}", f"{fewest} to {most}", verdict)


def _stops(judge: Judge, truth: Truth) -> Iterator[Compared]:
    for label in judge.picture.members:
        answer = judge.may_stop(label).answer
        if answer == "unknown":
            yield Compared("may-stop", label, "unknown", "", "unknown")
        elif answer == "no":
            yield Compared("may-stop", label, "no", "", "true")
        else:
            why = _why_not_to_stop(truth, label)
            yield Compared("may-stop", label, "yes", why or "yes", "false" if why else "true")


def _why_not_to_stop(truth: Truth, label: str) -> str:
    """Return what speaks against stopping a member; empty where nothing does."""
    member = truth.members.get(label)
    if member is None or member.is_paused:
        return "it does not run"
    if not truth.is_whole:
        return "the cluster is not whole"
    if member.state.cluster_state != "ACTIVE":
        return f"the cluster is {member.state.cluster_state}"
    if all(other.state.lite for other in truth.members.values() if other.label != label):
        return "no other member holds data"
    if any(truth.is_cut(other) for other in truth.members):
        return "a link is cut"
    if any(list(truth.unowned(leader)) for leader in truth.leaders):
        return "a partition has no owner"
    return ""
