"""The judges judge: of everything that counts as true in a kept run, something else that is true makes it false.

Each mutant is another truth of the same run. A form of statement that no mutant makes false is a hole in the judges.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.judgement.observations.observation import Observation
from tests.hazelcast.real.judges import Statement
from tests.hazelcast.real.kept_run import RunFacts, judge_run, run_facts, truth_of, verdict_of
from tests.hazelcast.real.member_logs import LoggedList, LoggedWords
from tests.hazelcast.real.test_kept_runs import RUNS
from tests.hazelcast.real.truth import EntryLoss, Truth

SHIFT_US = 20_000_000
EACH = 3
"""So many statements of a form are tried of each run."""
ADDRESS = re.compile(r"\[(10\.77\.0\.\d+)\]:5701|(10\.77\.0\.\d+):5701")
SHAPE = re.compile(r"10\.77\.0\.\d+:5701|\b[0-9a-f]{8}\b|\d[\d,.]*")

UNSHAKEN = {
    # True as long as anything is amiss, and in these runs something is wherever the mutants are tried.
    ("status", "degraded"),
}


class Form(NamedTuple):
    """Statements that are alike but for their members and figures."""

    kind: str
    text: str


def form_of(said: Statement) -> Form:
    """Return the form of a statement."""
    if isinstance(said.value, Observation):
        return Form(said.kind, said.value.kind)
    return Form(said.kind, "" if said.kind == "list" else SHAPE.sub("N", str(said.value))[:60])


def of_lists(
    truth: Truth, change: Callable[[LoggedList], LoggedList], words: Callable[[LoggedWords], LoggedWords]
) -> Truth:
    """Return a truth with other lists and words."""
    return Truth(
        {member: [change(it) for it in lists] for member, lists in truth.logged.items()}, truth.done, truth.loss,
        {member: [words(it) for it in said] for member, said in truth.words.items()},
    )  # fmt: skip


def shifted(truth: Truth, by_us: int) -> Truth:
    """Everything was at another time."""
    moved = of_lists(
        truth,
        lambda it: structs.replace(it, at_us=it.at_us + by_us),
        lambda it: structs.replace(it, at_us=it.at_us + by_us),
    )
    loss = truth.loss and truth.loss._replace(at_us=truth.loss.at_us + by_us)
    return Truth(moved.logged, [it._replace(at_us=it.at_us + by_us) for it in truth.done], loss, moved.words)


def calm(truth: Truth) -> Truth:
    """Nothing was done after all members had been started, and no member logged anything."""
    faults = (it.at_us for it in truth.done[1:] if it.kind not in ("start", "heal"))
    end_us = min(faults, default=10**18)
    return Truth(
        {member: [it for it in lists if it.at_us < end_us] for member, lists in truth.logged.items()},
        [it for it in truth.done if it.at_us < end_us],
        None,
        {member: [it for it in said if it.at_us < end_us] for member, said in truth.words.items()},
    )


def swapped(truth: Truth) -> Truth:
    """Members had each other's places."""
    names = sorted(truth.logged)
    others = dict(zip(names, reversed(names), strict=True))

    def other(member: Address) -> Address:
        return others.get(member, member)

    def renamed(found: re.Match[str]) -> str:
        name = other(Address(f"{found[1] or found[2]}:5701"))
        return f"[{name.split(':')[0]}]:5701" if found[1] else str(name)

    made = of_lists(
        truth,
        lambda it: structs.replace(it, addresses=tuple(map(other, it.addresses))),
        lambda it: structs.replace(it, text=ADDRESS.sub(renamed, it.text)),
    )
    done = [
        it._replace(members=tuple(map(other, it.members)), links=frozenset((other(a), other(b)) for a, b in it.links))
        for it in truth.done
    ]
    logged = {other(member): lists for member, lists in made.logged.items()}
    return Truth(logged, done, truth.loss, {other(member): said for member, said in made.words.items()})


def parted(truth: Truth) -> Truth:
    """Every member led itself alone all the time, and is cut off from the others."""
    alone = of_lists(
        truth,
        lambda it: structs.replace(
            it, uuids=(it.member_uuid,), addresses=(it.addresses[it.uuids.index(it.member_uuid)],)
        ),
        lambda it: it,
    )
    links = frozenset((event, other) for event in truth.logged for other in truth.logged if event != other)
    return Truth(alone.logged, [truth.done[0]._replace(kind="cut", links=links), *truth.done], truth.loss, truth.words)


def busy(truth: Truth) -> Truth:
    """Partitions are arranged, a round ended long ago, another one never does; entries are lost."""
    began_us = truth.done[0].at_us - 10 * SHIFT_US
    texts = (
        "Initializing cluster partition table arrangement...",
        "All migration tasks have been completed.",
        "Migration tasks count: 271",
    )
    first = [LoggedWords(began_us + at, text) for at, text in enumerate(texts)]
    kept = {member: [it for it in said if "igration tasks" not in it.text] for member, said in truth.words.items()}
    return Truth(
        truth.logged, truth.done, EntryLoss(began_us, 10**9), {member: [*first, *it] for member, it in kept.items()}
    )


MUTANTS: tuple[Callable[[Truth], Truth], ...] = (
    lambda truth: shifted(truth, SHIFT_US), lambda truth: shifted(truth, -SHIFT_US), calm, swapped, parted, busy,
)  # fmt: skip


@cache
def tried(folder: Path) -> dict[Form, list[Statement]]:
    """Return some of the true statements of a run."""
    found: dict[Form, list[Statement]] = defaultdict(list)
    for _, judged in judge_run(folder):
        for said, verdict in judged:
            if verdict == "true" and len(found[form_of(said)]) < EACH:
                found[form_of(said)].append(said)
    return found


def caught(folder: Path, facts: RunFacts) -> Iterator[Form]:
    """Yield the forms of which a mutant makes a statement false, said by a console that reaches all members."""
    truth = truth_of(folder)
    mutants = [mutate(truth) for mutate in MUTANTS]
    for form, statements in tried(folder).items():
        reached = [it._replace(unreached=frozenset()) for it in statements]
        if any(verdict_of(it, mutant, one_sided=facts.one_sided) == "false" for it in reached for mutant in mutants):
            yield form


def test_every_form_of_statement_is_false_in_another_truth() -> None:
    forms = {form for folder in RUNS for form in tried(folder)}
    holes = forms - {form for folder in RUNS for form in caught(folder, run_facts(folder))} - UNSHAKEN
    assert len(forms) > 60
    assert not holes, "\n".join(map(" ".join, sorted(holes)))
