"""What a plan says of itself: why each of its steps is done, and done then."""

from __future__ import annotations

from quarterdeck.backend.core.partitions.migration.migration_planner import MigrationStep, Plan
from quarterdeck.backend.core.partitions.table.replica import Row


def why_each_step(current: Row, plan: Plan) -> list[str]:
    """One sentence for every step of the plan for a partition whose replicas are `current`."""
    sentences: list[str] = []
    present = len(current) - current.count(None)
    for step in plan.steps:
        before = present
        present += (step.destination_new >= 0 and step.destination_current < 0) + _left_behind(step)
        sentence = _what_happens(step, plan.target_after_cycle_fix)
        if step.unavoidable:
            sentence += f", which lowers the replicas from {before} to {present}, as no legal order found avoids it"
        sentences.append(sentence)
    return sentences


def cancelled(target: Row, plan: Plan) -> list[str]:
    """Return the members that were to pass their places on in a circle and keep them, by index."""
    return [kept for kept, wanted in zip(plan.target_after_cycle_fix, target, strict=True) if kept and kept != wanted]


def _left_behind(step: MigrationStep) -> int:
    """Return what the source costs: one replica if it has to leave."""
    return -1 if step.source is not None and step.source_new < 0 else 0


def _what_happens(step: MigrationStep, target: Row) -> str:
    source, destination, index = step.source, step.destination, step.destination_new
    match step.type:
        case "CLEAR":
            return f"{source} drops its replica, because the target has nobody at index {step.source_current}"
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
    """Where the one goes whose place is taken."""
    if step.source_new >= 0:
        kept = f"{step.source} moves down to the empty index {step.source_new} in the same step"
        if target[step.source_new] == step.source:
            return f"{kept}, so that its copy is kept whatever becomes of {step.destination}"
        return f"{kept} and waits there, so that its copy is kept"
    if step.source in target:
        return f"{step.source} comes back later, at index {target.index(step.source)}"
    return f"{step.source} is not in the target"
