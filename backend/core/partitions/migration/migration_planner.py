"""The migrations that bring one partition from its current replicas to the targeted ones.

See Avoid Data Loss on Migration, 3.2; Hazelcast: migration planner.

A row has the name of a member, or None, at every replica index: the owner at 0, then the backups. A plan depends only on where
the same member occurs in the two rows and not on its name, and there are few such patterns, so each is planned once.

The rows are as after the repair of the table: who has left is not in them, and a backup took the place of a lost owner.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from quarterdeck.backend.core.partitions.migration.migration import (
    Kind,
    NumberedStep,
    Numbers,
    applied,
    lowers,
    without_cycles,
)
from quarterdeck.backend.core.partitions.migration.migration_order import in_order
from quarterdeck.backend.core.partitions.table.partition_table import MOST_REPLICAS, Row

PATTERNS_KEPT = 65536


class BadRows(ValueError):
    """Two rows between which there is no plan. The message names the field and has a hint."""


class MigrationStep(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename={
        "source": "src",
        "source_current": "srcCurrentIndex",
        "source_new": "srcNewIndex",
        "destination": "dst",
        "destination_current": "dstCurrentIndex",
        "destination_new": "dstNewIndex",
    },
):
    """One migration, done wholly or not at all: if it fails, the row stays as it was before. Index -1 stands for none.

    The source, if any, leaves its index; it moves down to `source_new` or drops its replica. The destination comes to
    `destination_new`, from a colder index if it has one. A SHIFT UP whose source moves down is both shifts in one step.
    """

    type: Kind
    source: str | None
    source_current: int
    source_new: int
    destination: str | None
    destination_current: int
    destination_new: int
    unavoidable: bool = False
    """The step loses a replica that the row has and the target counts on, and no legal steps in any order were found that
    would not."""


class Plan(Struct, frozen=True, gc=False):
    """`steps` in the order in which they are done; they end at `target_after_cycle_fix`."""

    steps: tuple[MigrationStep, ...]
    target_after_cycle_fix: Row


def plan_migrations(current: Row, target: Row) -> Plan:
    """Plan the migrations of one partition.

    No member is in the row twice at any moment; the replicas that row and target both count on never get fewer where any order of
    legal steps avoids it, and the hottest places are filled first.

    Raises:
        BadRows: Lengths differ, there are more than 7 replicas, or a member stands twice.
    """
    if len(current) != len(target):
        raise BadRows(
            f"target: has {len(target)} replicas and current has {len(current)}; give both the same number, null for no member"
        )
    if current == target and None not in current and len(set(current)) == len(current) <= MOST_REPLICAS:
        return Plan((), target)  # Most rows of a table, so they do not wait for their pattern.
    names = (None, *current, *target)
    final, steps = _planned(tuple(map(names.index, names)), len(current))
    return Plan(
        tuple(
            [
                MigrationStep(kind, names[source], leaves, goes, names[destination], comes, arrives, unavoidable)
                for (kind, source, leaves, goes, destination, comes, arrives), unavoidable in steps
            ]
        ),
        target if final is None else tuple([names[number] for number in final]),
    )


def exchanges(current: Row, target: Row) -> tuple[MigrationStep, ...]:
    """Return steps that resolve cycles: from the hottest place on, each holder moves up and the one before takes its old place.

    Both have a replica before and after, so none is given up. Avoid Data Loss on Migration cancels cycles instead (3.2.1); but a
    member that leaves has to pass its places on.
    """
    row, steps = list(current), []
    for index, wanted in enumerate(target):
        if row[index] == wanted:
            continue
        colder = row.index(wanted)
        steps.append(MigrationStep("SHIFT UP", row[index], index, colder, wanted, colder, index))
        row[index], row[colder] = wanted, row[index]
    return tuple(steps)


@lru_cache(maxsize=PATTERNS_KEPT)
def _planned(pattern: Numbers, length: int) -> tuple[Numbers | None, tuple[tuple[NumberedStep, bool], ...]]:
    """Return the target if cycles changed it, and each step with whether it is unavoidable.

    Members are numbers of places in `pattern`. Its first place is empty, then come both rows.

    Raises:
        BadRows: The rows are not what `plan_migrations` takes.
    """
    current, target = pattern[1 : length + 1], pattern[length + 1 :]
    _check("current", current)
    _check("target", target)
    final = without_cycles(current, target)
    steps = []
    row = current
    for step in in_order(current, final):
        after = applied(row, step)
        steps.append((step, lowers(row, after, final)))
        row = after
    return None if final == target else final, tuple(steps)


def _check(field: str, row: Numbers) -> None:
    if len(row) > MOST_REPLICAS:
        raise BadRows(f"{field}: has {len(row)} replicas; a partition has at most {MOST_REPLICAS}")
    for index, member in enumerate(row):
        if member and member in row[:index]:
            raise BadRows(
                f"{field}: the same member is at index {row.index(member)} and {index}; name each member once"
            )


# Explanation


def why_each_step(current: Row, plan: Plan) -> list[str]:
    """One sentence for every step of the plan for a partition whose replicas are `current`."""
    sentences: list[str] = []
    present = len(current) - current.count(None)
    for step in plan.steps:
        before = present
        present += step.destination_new >= 0 and step.destination_current < 0
        present -= step.source is not None and step.source_new < 0
        sentence = _what_happens(step, plan.target_after_cycle_fix)
        if step.unavoidable:
            sentence += f", which lowers the replicas from {before} to {present}, as no legal order found avoids it"
        sentences.append(sentence)
    return sentences


def cancelled(target: Row, plan: Plan) -> list[str]:
    """Return the members that were to pass their places on in a circle and keep them, by index."""
    return [kept for kept, wanted in zip(plan.target_after_cycle_fix, target, strict=True) if kept and kept != wanted]


def _what_happens(step: MigrationStep, target: Row) -> str:
    source, destination, index = step.source, step.destination, step.destination_new
    match step.type:
        case "CLEAR":
            return f"{source} drops its replica, because the target has no member at index {step.source_current}"
        case "COPY":
            return f"{destination} gets a copy at the empty index {index}"
        case "SHIFT UP" if source is None:
            return f"{destination} moves up from index {step.destination_current} to the empty index {index}"
        case "SHIFT UP":
            arrival = f"{destination} moves up from index {step.destination_current} to {index}"
        case _:
            arrival = f"{destination}, who holds no replica yet, takes index {index} over from {source}"
    return f"{arrival}; {_what_becomes_of_the_source(step, target)}"


def _what_becomes_of_the_source(step: MigrationStep, target: Row) -> str:
    """Say where the member goes whose place is taken."""
    if step.source_new >= 0:
        kept = f"{step.source} moves down to the empty index {step.source_new} in the same step"
        if target[step.source_new] == step.source:
            return f"{kept}, so that its copy is kept whatever becomes of {step.destination}"
        return f"{kept} and waits there, so that its copy is kept"
    if step.source in target:
        return f"{step.source} comes back later, at index {target.index(step.source)}"
    return f"{step.source} is not in the target"
