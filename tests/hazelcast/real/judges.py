"""Statements that the program makes of members, and whether each was true when it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from quarterdeck.backend.clusters.connection_status import ConnectionStatus, missed_members
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.boards.operator_questions import operator_questions
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.health.cluster_health import cluster_health
from quarterdeck.backend.picture.merging.why_not_merging import why_not_merging
from tests.hazelcast.real.truth import Truth, TruthAtMoment

Verdict = Literal["true", "not told", "false"]
Kind = Literal["list", "one cluster", "whole", "gone", "frozen", "links up", "entries lost"]

LATE_US = 3_000_000
"""A statement is true if it was so at some moment of the last seconds: lists take time to arrive, more on a busy machine."""
EARLY_US = 200_000
"""A member may send a list before it logs it."""


class Statement(NamedTuple):
    """What was said at one moment. `value` None is "not known"."""

    at_us: int
    kind: Kind
    about: tuple[Address, ...]
    value: object
    text: str = ""


def statements(
    picture: Picture,
    connections: Mapping[str, ConnectionStatus],
    recent: Sequence[Record],
    now_us: int,
    at_us: int,
) -> Iterator[Statement]:
    """Yield all that the program says now; `now_us` is on its clock, `at_us` on that of the members' logs."""
    health = cluster_health(picture, now_us, *missed_members(connections))
    yield Statement(at_us, "whole", (), health.whole, health.sentence)
    loss = health.data_lost
    yield Statement(at_us, "entries lost", (), loss is not None and loss.entries, health.sentence)
    answer = next(it.text for it in operator_questions(picture, recent, now_us) if it.heading == "is it one cluster")
    yield Statement(at_us, "one cluster", (), {"yes": True, "no:": False}.get(answer[:3]), answer)
    for belief in picture.members.values():
        state = "" if belief.connection is None else belief.connection.state
        held = (
            tuple(it.uuid for it in belief.members) if belief.running and belief.reached and held_now(state) else None
        )
        yield Statement(at_us, "list", (belief.address,), held or None)
        for kind in ("gone", "frozen"):
            yield Statement(at_us, kind, (belief.address,), True if state == kind else None, state)
    for pair in why_not_merging(picture, now_us):
        ends = tuple(picture.members[it].address for it in (pair.smaller, pair.greater))
        up = pair.state in ("due", "merging") or "nothing is in the way" in pair.sentence
        yield Statement(at_us, "links up", ends, True if up else None, pair.sentence)


def held_now(state: str) -> bool:
    """Return whether what a connection brought last is said to be so now."""
    return state in ("", "connected")


def _list(said: Statement, truth: TruthAtMoment) -> bool:
    held = truth.lists.get(said.about[0])
    return held is not None and held.uuids == said.value


JUDGES: Mapping[Kind, Callable[[Statement, TruthAtMoment], bool]] = {
    "list": _list,
    "one cluster": lambda said, truth: said.value == (len(truth.masters) == 1),
    "whole": lambda said, truth: said.value == truth.whole,
    "gone": lambda said, truth: said.about[0] not in truth.running,
    "frozen": lambda said, truth: said.about[0] in truth.frozen,
    "links up": lambda said, truth: not truth.is_cut(*said.about),
    "entries lost": lambda said, _: not said.value,
}
"""Whether a statement that is made is true of a moment. The scripts write no data, so no entry can be lost."""


def judge(said: Statement, truth: Truth) -> Verdict:
    """Return whether a statement was true at some moment of its window."""
    if said.value is None:
        return "not told"
    moments = truth.between(said.at_us - LATE_US, said.at_us + EARLY_US)
    return "true" if any(JUDGES[said.kind](said, it) for it in moments) else "false"


def table(judged: Iterable[tuple[Statement, Verdict]]) -> list[str]:
    """Return a line for each kind of statement: compared, true, not told, false."""
    counts: dict[Kind, Counter[Verdict]] = {}
    for said, verdict in judged:
        counts.setdefault(said.kind, Counter())[verdict] += 1
    rows = [(kind, it.total(), it["true"], it["not told"], it["false"]) for kind, it in counts.items()]
    lines = [f"{'statements':<14}{'compared':>9}{'true':>7}{'not told':>9}{'false':>6}"]
    return lines + [f"{kind:<14}{all_:>9}{true:>7}{untold:>9}{false:>6}" for kind, all_, true, untold, false in rows]
