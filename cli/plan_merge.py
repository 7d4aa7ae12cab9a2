"""`quarterdeck plan merge`: which of two clusters that meet would merge into the other, and why (design 5.2)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cli.exits import ExitCode, failing_as
from cli.output import Format, FormatOption, write_document

if TYPE_CHECKING:
    from backend.core.membership.merge_decision import MergeDecision
    from cli.plan_merge_input import Meeting, Side

NOT_MASTER = "not-master"
NOT_MASTER_PASSED = "both are masters of their clusters"


def merge(
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the rules that were passed before one decided.")
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read what two masters say of their clusters as JSON from stdin; print which one merges into the other, and why."""
    import msgspec

    from cli.plan_merge_input import BadMeeting, read_meeting

    with failing_as(ExitCode.BAD_INPUT, BadMeeting, about="stdin"):
        meeting = read_meeting(sys.stdin.buffer.read())
    decision = decide(meeting)
    document: dict[str, object] = msgspec.to_builtins(decision)
    if explain:
        passed = passed_before(decision.rule)
        if output.is_flat:
            document |= {f"passed {rule}": held for rule, held in passed.items()}
        else:
            document["passed"] = passed
    write_document(document, output)


def register(plan: typer.Typer) -> None:
    plan.command()(merge)


def decide(meeting: Meeting) -> MergeDecision:
    """What comes of the meeting. Only masters that have joined come as far as the rules of the merge (behaviour 6.1, 6.5)."""
    from backend.core.membership.merge_decision import NO_ANSWER, MergeDecision, decide_merge

    local, remote = meeting.local, meeting.remote
    for side in (local, remote):
        if side is not None and not side.joined:
            why = f"{side.address} has not joined a cluster, so it neither looks for others nor answers them"
            return MergeDecision("cannot-merge", NO_ANSWER, why)
    if remote is None:
        return decide_merge(local.profile(), None)
    if not local.is_master:
        why = f"{local.address} is not master, so it looks for no other cluster and answers with {_master_of(local)}"
        return MergeDecision("cannot-merge", NOT_MASTER, why)
    if not remote.is_master:
        why = f"{remote.address} is not master, so it answers with {_master_of(remote)}, whom {local.address} asks next"
        return MergeDecision("cannot-merge", NOT_MASTER, why)
    return decide_merge(local.profile(), remote.profile())


def passed_before(rule: str) -> dict[str, str]:
    """The rules that let the two clusters pass before `rule` decided: name and what held, in order."""
    from backend.core.membership.merge_decision import NO_ANSWER, NO_ANSWER_PASSED, passed_before

    if rule == NOT_MASTER:
        return {NO_ANSWER: NO_ANSWER_PASSED}
    passed: dict[str, str] = {}
    for name, held in passed_before(rule):
        passed[name] = held
        if name == NO_ANSWER:
            passed[NOT_MASTER] = NOT_MASTER_PASSED
    return passed


def _master_of(side: Side) -> str:
    """In words, the master of one who is not: the oldest on its list."""
    oldest = side.members[0].address if side.members else side.address
    return "the address of its master" if oldest == side.address else f"the address of its master, {oldest}"
