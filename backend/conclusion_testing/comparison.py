"""Each conclusion of a moment beside what is true: said rightly, said wrongly, or not known.

A `yes`, a `no` and a value must be true. "Not known" is allowed, and counted. A watcher that hears late may say what was true a
little earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from quarterdeck.backend.boards.cluster_metrics import cluster_metrics
from quarterdeck.backend.conclusion_testing.entries import EntryLedger
from quarterdeck.backend.conclusion_testing.truth import Truth
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.judge import Judge

Verdict = Literal["true", "false", "unknown"]

BEFORE_LOSS_US = 120 * SECOND_US
"""A partition is found to be lost so long after its last holder went, at most."""
RESTARTED = "its process was started again"
SAID_WITHIN_US = 20 * SECOND_US
"""A loss has to be said so soon after it."""


class Compared(NamedTuple):
    """One conclusion and the truth about the same question at the same moment."""

    question: str
    subject: str
    said: str
    true: str
    verdict: Verdict


class Truths(NamedTuple):
    """What is and lately was true, for a watcher that hears late."""

    lately: Sequence[Truth]
    """What the watcher may say: the truth of now, and of the time within which it hears of a change. The last one is of now."""
    measured: Sequence[Truth]
    """The truth since the members measured their entries."""
    ledger: EntryLedger
    late_us: int
    sees_links: bool
    sees_backups: bool
    label_of: Callable[[str], str]
    """The label of a member in the simulator, by that in the picture."""

    @property
    def now(self) -> Truth:
        return self.lately[-1]


def compare(judge: Judge, truths: Truths) -> Iterator[Compared]:
    """Yield every conclusion of `judge` beside the truth of the same moment."""
    yield from _whole(judge, truths)
    yield _surfaces(judge)
    yield from _healthy(judge, truths)
    yield from _absences(judge, truths)
    yield from _refusals(judge, truths)
    yield from _losses(judge, truths)
    yield from _since(judge, truths)
    yield from _replicas(judge, truths)
    yield from _metrics(judge, truths)
    yield from _stops(judge, truths)


def _check(truths: Truths, question: str, said: object, true: Callable[[Truth], object], subject: str = "") -> Compared:
    """Compare `said`, which is None where it is not known, with the truth."""
    found = list(dict.fromkeys(true(truth) for truth in reversed(truths.lately)))
    verdict: Verdict = "unknown" if said is None else "true" if said in found else "false"
    return Compared(question, subject, "unknown" if said is None else str(said), str(found[0]), verdict)


def _whole(judge: Judge, truths: Truths) -> Iterator[Compared]:
    health = judge.health
    if health.whole is False and (
        judge.watcher.missed or judge.unreached or _several(truths, lambda truth: frozenset(truth.lists.values()))
    ):
        yield Compared("one-cluster", "", "False", "", "true")  # by definition: a member is not reached
    elif health.whole is False:
        yield _check(truths, "one-cluster", False, lambda truth: truth.is_whole and not truth.is_troubled)
    else:
        yield _check(truths, "one-cluster", health.whole, lambda truth: truth.is_whole)
    if health.condition == "split" and any(side.unheard_since_us is not None for side in judge.agreement.sides):
        yield Compared("split", "", "True, as last heard", "", "unknown")
    elif health.condition == "split":
        is_split = _several(truths, lambda truth: truth.masters)
        yield Compared("split", "", "True", str(is_split), "true" if is_split else "false")
    if health.condition == "down":
        yield _check(truths, "down", True, lambda truth: not truth.running)


def _several(truths: Truths, found: Callable[[Truth], frozenset[Any]]) -> bool:
    """Return whether there were several, as one who hears late may put them together."""
    return len(frozenset().union(*map(found, truths.lately))) > 1


def _surfaces(judge: Judge) -> Compared:
    """Judge whether surfaces that word the same moment agree."""
    health, agreed = judge.health, judge.agreed
    against = health.whole is True and (agreed is False or bool(judge.unreached))
    against |= health.condition == "healthy" and (agreed is False or bool(judge.refusals))
    answers = {conclusion.question: conclusion.answer for conclusion in judge.conclusions()}
    against |= (answers["one-cluster"] == "yes") != (health.whole is True and len(judge.agreement.sides) < 2)
    against |= (answers["data-safe"] == "yes") != (health.data_safe is True)
    said = f"{health.condition}, whole {health.whole}"
    true = f"agreed {agreed}, unreached {len(judge.unreached)}"
    return Compared("surfaces agree", "", said, true, "false" if against else "true")


def _healthy(judge: Judge, truths: Truths) -> Iterator[Compared]:
    """Judge the word: every partition has an owner, and no call is refused."""
    if judge.health.condition != "healthy":
        return
    yield _check(truths, "healthy: partitions without an owner", 0, lambda truth: truth.unowned)
    yield _check(truths, "healthy: calls are refused", False, partial(_refuses, sees_size=truths.sees_backups))


def _refusals(judge: Judge, truths: Truths) -> Iterator[Compared]:
    """Judge each reason for which calls are said to fail now."""
    for refusal in judge.refusals:
        if refusal.kind == "no-owner":
            yield _check(truths, "refused: no owner", True, lambda truth: truth.unowned > 0)
        elif refusal.kind in ("state", "size"):
            yield _check(truths, "refused: state or size", True, partial(_refuses, sees_size=truths.sees_backups))


def _refuses(truth: Truth, *, sees_size: bool) -> bool:
    return truth.is_passive or (sees_size and truth.is_short)


def _since(judge: Judge, truths: Truths) -> Iterator[Compared]:
    """Judge since when each list is held: looks at the truth are at most a quarter of a second apart."""
    for belief in judge.agreement.holders:
        label, since_us = truths.label_of(belief.label), belief.list_since_us
        until_us: int | None = None
        for truth in reversed(truths.measured):
            held = truth.lists.get(label)
            if held is None or held[:2] != (belief.lineage, belief.version):
                is_other = held is not None and until_us is not None
                if is_other and until_us is not None:
                    is_true = truth.at_us <= since_us <= until_us + truths.late_us
                    said, true = f"{since_us / SECOND_US:.3f}", f"{truth.at_us / SECOND_US:.3f} or later"
                    yield Compared("list since", label, said, true, "true" if is_true else "false")
                break
            until_us = truth.at_us


def _absences(judge: Judge, truths: Truths) -> Iterator[Compared]:
    for absence in judge.absences:
        label = truths.label_of(absence.label)
        if absence.way == "gone" and absence.sign == RESTARTED:
            yield Compared("absent", label, "unknown", "", "unknown")  # the process before
        elif absence.way == "gone":
            yield _check(truths, "absent: gone", True, partial(_is_gone, label), label)
        elif absence.way == "frozen":
            yield _check(truths, "absent: frozen", True, partial(_is_frozen, label), label)
        elif absence.way == "joining":
            yield _check(truths, "absent: joining", True, partial(_is_joining, label), label)
        else:
            yield Compared("absent", label, "unknown", "", "unknown")


def _is_gone(label: str, truth: Truth) -> bool:
    """Return whether the member has ended, or is on a list as an incarnation that has."""
    return label not in truth.running or label in truth.ghosts


def _is_frozen(label: str, truth: Truth) -> bool:
    return label in truth.frozen


def _is_joining(label: str, truth: Truth) -> bool:
    return label in truth.running and label not in truth.joined and label not in truth.frozen


def _losses(judge: Judge, truths: Truths) -> Iterator[Compared]:
    found = [loss for loss in judge.health.losses if loss.stands]
    for loss in found:
        since_us = loss.at_us - BEFORE_LOSS_US
        lost = [true for true in truths.ledger.losses if true.partition in loss.lost and true.at_us >= since_us]
        if loss.is_confirmed:
            yield Compared("data-lost", loss.side, "yes", str(len(lost)), "true" if lost else "false")
        else:
            yield Compared("data-lost", loss.side, "feared", str(len(lost)), "unknown")
    if not found and judge.health.condition == "healthy":
        late_us = truths.now.at_us - SAID_WITHIN_US
        standing = [loss for loss in truths.ledger.losses if loss.has_to_be_said and loss.at_us <= late_us]
        yield Compared("data-lost", "", "no", str(len(standing)), "false" if standing else "true")


def _replicas(judge: Judge, truths: Truths) -> Iterator[Compared]:
    safe, copies = judge.health.data_safe, judge.health.replicas.copies
    if safe is None:
        yield Compared("data-safe", "", "unknown", "", "unknown")
    elif safe is False:
        yield Compared("data-safe", "", "no", "", "true")
    else:
        counts = [truth.fewest_copies for truth in truths.lately]
        enough = any(count is None or count >= (copies or 1) for count in counts)
        yield Compared("data-safe", "", f"yes, {copies} copies", str(counts[-1]), "true" if enough else "false")


Seen = frozenset[object]
DIFFERENT: dict[str, Callable[[Truth, Collection[str]], Seen]] = {
    "masters": lambda truth, missed: truth.masters.difference(missed),
    "lineages": lambda truth, missed: frozenset(held[0] for label, held in truth.lists.items() if label not in missed),
    "lists_agree": lambda truth, missed: frozenset(held for label, held in truth.lists.items() if label not in missed),
    "tables_agree": lambda truth, missed: frozenset(
        digest for label, digest in truth.tables.items() if label not in missed
    ),
    "owners_agree": lambda truth, missed: frozenset(
        digest for label, digest in truth.owners.items() if label not in missed
    ),
}
"""By metric, the different ones among the members that are not missed."""


def _metrics(judge: Judge, truths: Truths) -> Iterator[Compared]:
    metrics = {metric.name: metric for metric in cluster_metrics(judge, {})}
    missed = frozenset(map(truths.label_of, (*judge.watcher.missed, *judge.unreached)))
    is_unheard = any(side.unheard_since_us is not None for side in judge.agreement.sides)
    for name in ("masters", "lineages", "lists_agree", "tables_agree"):
        found = DIFFERENT["owners_agree" if name == "tables_agree" and not truths.sees_backups else name]
        said = metrics[name].samples.get(()) if name in metrics else None
        reached = [found(truth, missed) for truth in truths.lately]
        most = len(frozenset().union(*(found(truth, ()) for truth in truths.lately)))
        true = str(len(found(truths.now, ())))
        if said is None or (is_unheard and name != "tables_agree"):
            yield Compared(f"metric {name}", "", "unknown", true, "unknown")
        elif name.endswith("_agree"):
            is_true = min(map(len, reached)) <= 1 if said else most > 1
            yield Compared(f"metric {name}", "", f"{said:.0f}", true, "true" if is_true else "false")
        else:
            # Several are said though not all of them are reached: that there are several is what counts.
            fewest = min(2, *(len(found(truth, ())) for truth in truths.lately))
            is_true = fewest <= said <= most
            yield Compared(f"metric {name}", "", f"{said:.0f}", true, "true" if is_true else "false")
    entries = {name: count for (name,), count in metrics["map_entries"].samples.items()}
    for name in truths.now.owned.keys() - entries.keys():
        yield Compared("metric map_entries", name, "unknown", "", "unknown")
    for name, count in entries.items():
        least, most = _entry_bounds(truths, name)
        verdict: Verdict = "true" if least <= count <= most else "false"
        yield Compared("metric map_entries", name, f"{count:.0f}", f"{least} to {most}", verdict)


def _entry_bounds(truths: Truths, name: str) -> tuple[int, int]:
    """Return how many entries of a map owners may have reported.

    Each owner reports in its own time. Only while partitions move, an entry counts at two owners or at none: then the sum has
    to be that of one moment.
    """
    counts = [truth.owned.get(name, {}) for truth in truths.measured]
    if any(truth.owners != truths.now.owners for truth in truths.measured):
        sums = [sum(count.values()) for count in counts]
        return min(sums), max(sums)
    of_owners = [[count.get(label, 0) for count in counts] for label in frozenset().union(*counts)]
    return sum(map(min, of_owners)), sum(map(max, of_owners))


def _stops(judge: Judge, truths: Truths) -> Iterator[Compared]:
    for name in judge.picture.members:
        answer, label = judge.may_stop(name).answer, truths.label_of(name)
        if answer == "yes":
            reasons = [_why_not_to_stop(truth, label, sees_links=truths.sees_links) for truth in truths.lately]
            verdict: Verdict = "false" if all(reasons) else "true"
            yield Compared("may-stop", label, "yes", reasons[-1] or "yes", verdict)
        else:
            yield Compared("may-stop", label, answer, "", "unknown" if answer == "unknown" else "true")


def _why_not_to_stop(truth: Truth, label: str, *, sees_links: bool) -> str:
    """Return what speaks against stopping a member; empty where nothing does."""
    if label not in truth.joined:
        return "it does not run"
    if not truth.is_whole:
        return "the cluster is not whole"
    if truth.states != {"ACTIVE"}:
        return f"the cluster is {', '.join(sorted(truth.states))}"
    if not truth.data_members - {label}:
        return "no other member holds data"
    if truth.unowned:
        return "a partition has no owner"
    return "a link is cut" if truth.is_cut and sees_links else ""
