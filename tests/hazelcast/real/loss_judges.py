"""Losses that the program states, compared with the entries that a client of the product counted."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.losses.loss import Loss
from tests.hazelcast.real.judges import EARLY_US, LOSS_LATE_US, Statement, Verdict
from tests.hazelcast.real.truth import Truth

COUNTED_US = 6_000_000
"""A count may be under way or fail: for so long around a moment its result may stand for that moment."""
TIMES_US = 30_000_000
"""A loss falls between two counts so close to the moment that is stated."""
SHARE = 20
"""A number of entries may differ by one in so many, and by as few as `FEW`."""
FEW = 5


def loss_statements(judge: Judge, at_us: int) -> Iterator[Statement]:
    """Yield each loss that stands, or that none is known."""
    standing = [loss for loss in judge.losses if loss.stands]
    for loss in standing:
        yield Statement(at_us, "loss", (), loss, f"{loss.state}: {loss.text(judge.now_us)}", judge.now_us)
    if not standing:
        yield Statement(at_us, "no loss", (), True, judge.health.sentence)


def judge_loss(said: Statement, truth: Truth) -> Verdict:
    """Return whether what was said of losses agrees with the counts."""
    if not truth.counts:
        return "not compared"
    if said.kind == "no loss":
        return _judge_none(said, truth)
    loss = said.value
    assert isinstance(loss, Loss)
    if loss.state != "confirmed":
        return "not reported"
    lost_us = said.at_us - (said.since_us - loss.at_us)
    until_us = said.at_us + COUNTED_US
    changes = {name: _lost_about(truth, name, lost_us, until_us) for name in loss.maps if name in truth.maps}
    if any(change <= 0 for change in changes.values()):
        return "false"
    if loss.entries is None or not changes or set(changes) != set(loss.maps):
        return "true"
    lost = sum(changes.values())
    slack = max(FEW, lost / SHARE)
    if loss.entries_known == "exact":
        return "true" if abs(loss.entries - lost) <= slack else "false"
    return "true" if loss.entries >= lost - slack else "false"


def _judge_none(said: Statement, truth: Truth) -> Verdict:
    """Return whether a statement that nothing was lost is borne out by the counts that had time to become known.

    Entries must have been missing for so long already: a count waits as long as the members leave calls without an answer.
    """
    since_us = said.at_us - LOSS_LATE_US
    before_us = max((it.from_us for it in truth.counts if it.until_us <= since_us), default=since_us)
    missing = [truth.missing(name, before_us, said.at_us + EARLY_US) for name in truth.maps]
    known = [counts for counts in missing if counts]
    if not known:
        return "not compared"
    return "false" if any(min(counts) > 0 for counts in known) else "true"


def _lost_about(truth: Truth, name: str, lost_us: int, until_us: int) -> int:
    """Return how many entries fewer there are after a moment than before it; a side that was not counted lost none."""
    before = truth.missing(name, lost_us - TIMES_US, lost_us) or [0]
    after = truth.missing(name, lost_us, min(lost_us + TIMES_US, until_us))
    return max(after, default=before[-1]) - min(before)
