"""Statements that the program makes of members, and whether each was true when it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from quarterdeck.backend.boards.operator_questions import operator_questions
from quarterdeck.backend.clusters.cluster import ConnectionStatus, watcher_of
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.losses.loss import Loss
from quarterdeck.backend.judgement.merging.why_not_merging import why_not_merging
from quarterdeck.backend.picture.fold.picture import Picture
from tests.hazelcast.real.truth import Truth, TruthAtMoment

Verdict = Literal["true", "not reported", "false", "not compared", "no rule"]
"""Of a text that no rule knows there is no verdict: it fails a run, so that other words are not left out unseen."""
Kind = Literal[
    "list", "one cluster", "whole", "data safe", "split", "gone", "frozen", "links up", "blocked", "same table", "entries lost",
    "start or merge", "status", "question", "merging", "migrations", "mark", "observation", "loss", "no loss",
]  # fmt: skip

LATE_US = 3_000_000
"""A statement is true if it was so at some moment of the last seconds: lists take time to arrive, more on a busy machine."""
EARLY_US = 200_000
"""A member may send a list before it logs it."""
QUIET_US = 20_000_000
"""After so long without an event all members have one table."""
LOSS_LATE_US = 20_000_000
"""A loss shows when the dead are removed and the metrics of the others have come."""


class Statement(NamedTuple):
    """What was said at one moment. `value` None is "not known"."""

    at_us: int
    kind: Kind
    about: tuple[Address, ...]
    value: object
    text: str = ""
    since_us: int = 0
    """Of what began before: since when it is said to be so, on the clock of the members' logs; of a beginning, when the one
    before it was first seen."""
    unreached: frozenset[str] = frozenset()
    """The members that the console does not reach at that moment, which logs do not show."""


def statements(
    picture: Picture,
    connections: Mapping[str, ConnectionStatus],
    recent: Sequence[Record],
    now_us: int,
    at_us: int,
) -> Iterator[Statement]:
    """Yield all that the program says now; `now_us` is on its clock, `at_us` on that of the members' logs."""
    watcher = watcher_of(connections)
    judge = Judge(picture, watcher, now_us)
    health = judge.health
    unreached = frozenset(watcher.missed)
    yield Statement(at_us, "whole", (), health.whole, health.sentence, unreached=unreached)
    yield Statement(at_us, "data safe", (), health.data_safe, health.sentence)
    yield Statement(at_us, "split", (), True if health.condition == "split" else None, health.sentence)
    yield Statement(at_us, "entries lost", (), _lost(health.data_lost), health.sentence)
    questions = operator_questions(judge, recent)
    for kind, heading in (("one cluster", "is it one cluster"), ("same table", "have all the same partition table")):
        answer = next(it.text for it in questions if it.heading == heading)
        yield Statement(at_us, kind, (), {"yes": True, "no:": False}.get(answer[:3]), answer)  # type: ignore[arg-type]
    for belief in picture.members.values():
        state = "" if belief.connection is None else belief.connection.state
        held = (
            tuple(it.uuid for it in belief.members) if belief.running and belief.reached and held_now(state) else None
        )
        yield Statement(at_us, "list", (belief.address,), held or None)
        for end in ("gone", "frozen"):
            yield Statement(at_us, end, (belief.address,), True if state == end else None, state)  # type: ignore[arg-type]
    for pair in why_not_merging(picture, now_us):
        ends = tuple(picture.members[it].address for it in (pair.smaller, pair.greater))
        up = pair.state in ("due", "merging") or "nothing is in the way" in pair.sentence
        yield Statement(at_us, "links up", ends, True if up else None, pair.sentence)
        yield Statement(at_us, "blocked", ends, True if pair.state == "blocked" else None, pair.sentence)


def beginnings(records: Iterable[Record], at_us: Callable[[Record], int]) -> Iterator[Statement]:
    """Yield what is said of each further incarnation of a member: that it was started, or merged."""
    seen: dict[str, dict[str, int]] = {}
    for record in records:
        event = record.event
        incarnations = seen.setdefault(record.member, {})
        if isinstance(event, MemberStarted):
            before = [first_us for uuid, first_us in incarnations.items() if uuid != record.uuid]
            said = "merge" if event.merged_from else "start"
            if before or event.merged_from:
                since_us = max(before, default=0)
                yield Statement(at_us(record), "start or merge", (event.address,), said, "", since_us)
        if record.uuid and not isinstance(event, ConnectionChanged):
            incarnations.setdefault(record.uuid, at_us(record))


def held_now(state: str) -> bool:
    """Return whether what a connection brought last is said to be so now."""
    return state in ("", "connected")


def _lost(loss: Loss | None) -> object:
    if loss is None:
        return False
    return None if not loss.is_confirmed or loss.entries is None else loss.entries


def _list(said: Statement, truth: TruthAtMoment) -> bool:
    held = truth.lists.get(said.about[0])
    if said.about[0] in truth.leaving:  # it logs no list any more
        return held is not None
    return held is not None and held.uuids == said.value


AT_MOMENT: Mapping[Kind, Callable[[Statement, TruthAtMoment], bool]] = {
    "list": _list,
    "one cluster": lambda said, truth: said.value == (len(truth.masters) == 1),
    # One that leaves has closed its port before its process ends.
    "whole": lambda said, truth: (
        said.value == truth.whole or not (said.value or said.unreached.isdisjoint(truth.leaving))
    ),
    "split": lambda _, truth: len(truth.masters) > 1,
    "gone": lambda said, truth: not truth.answers(said.about[0]),
    "frozen": lambda said, truth: said.about[0] in truth.frozen,
    "links up": lambda said, truth: not truth.is_cut(*said.about),
    "same table": lambda said, truth: (
        len(truth.leading) < 2 if said.value else truth.quiet_us < QUIET_US or len(truth.masters) > 1
    ),
}
"""Whether a statement that is made is true of a moment."""


def judge(said: Statement, truth: Truth, *, one_sided: bool = False) -> Verdict:
    """Return whether a statement was true at some moment of its window."""
    if said.value is None:
        return "not reported"
    if said.kind == "start or merge":
        was_started = truth.was_started(said.about[0], said.since_us, said.at_us + EARLY_US)
        return "true" if (said.value == "start") == was_started else "false"
    if said.kind == "blocked":
        return "true" if one_sided or truth.at(said.at_us).is_cut(*said.about) else "false"
    if said.kind == "entries lost" and truth.maps:
        return "not compared"  # each loss is compared on its own
    if said.kind == "entries lost":
        return "true" if _is_lost(said, truth) else "false"
    if said.kind == "whole" and said.value is False and "suspected" in said.text:
        # A suspicion may outlast its link: members of 5.3.8 send each other no heartbeats again.
        if any(truth.suspicions(it) for it in (said.at_us - LATE_US, said.at_us + EARLY_US)):
            return "true"
    moments = truth.between(said.at_us - LATE_US, said.at_us + EARLY_US)
    if said.kind == "data safe":
        return "true" if said.value in {is_data_safe(it, truth) for it in moments} else "false"
    if any(AT_MOMENT[said.kind](said, it) for it in moments):
        # No log shows the stamp of a table: of one cluster nothing contradicts it, and that is all.
        return "not compared" if said.kind == "same table" and said.value else "true"
    # A cluster counts as whole only where the console reaches all of it, which no log shows.
    is_of_reach = said.kind == "whole" and not said.value and bool(said.unreached)
    return "not compared" if is_of_reach else "false"


def _is_lost(said: Statement, truth: Truth) -> bool:
    if truth.loss is None or said.at_us < truth.loss.at_us:
        return said.value is False
    if said.value is False:
        return said.at_us < truth.loss.at_us + LOSS_LATE_US
    return isinstance(said.value, int) and abs(said.value - truth.loss.entries) <= truth.loss.entries / 20


def is_data_safe(moment: TruthAtMoment, truth: Truth) -> bool:
    """Return whether every replica is where it belongs, by the rounds of migrations that masters log.

    A master that has arranged its partitions logs the end of a round when all replicas are there and in step. From a change of
    its list on they are not, until it logs that.
    """
    if len(moment.masters) > 1:
        return False
    ended = [it.at_us for it in truth.done if it.at_us <= moment.at_us and not truth.at(it.at_us).running]
    if not truth.logs("Initializing cluster partition table", max(ended, default=0), moment.at_us):
        return True
    rounds = "All migration tasks have been completed"
    changed_us = {it: truth.membership_changed_us(it, moment.at_us) for it in moment.leading}
    return all(truth.logs(rounds, since_us, moment.at_us, master) for master, since_us in changed_us.items())


def table(judged: Iterable[tuple[Statement, Verdict]]) -> list[str]:
    """Return a line for each kind of statement: said, true, not reported, false, not compared."""
    counts: dict[Kind, Counter[Verdict]] = {}
    for said, verdict in judged:
        counts.setdefault(said.kind, Counter())[verdict] += 1
    heads: tuple[Verdict, ...] = ("true", "not reported", "false", "not compared", "no rule")
    lines = [f"{'statements':<14}{'said':>7}" + "".join(f"{verdict:>13}" for verdict in heads)]
    return lines + [
        f"{kind:<14}{it.total():>7}" + "".join(f"{it[verdict]:>13}" for verdict in heads) for kind, it in counts.items()
    ]
