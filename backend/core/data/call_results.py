"""How calls end at the member that was asked: the answers of partitions are put together, and the client gets the result."""

from __future__ import annotations

from typing import Literal

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.data.messages import MapAnswer
from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.core.data.state import MERGING, MemberState, PendingCall
from quarterdeck.backend.core.effects import OperationAnswered
from quarterdeck.backend.core.operations import Answer, Get, Keys, Put, PutAll, Remove, Size
from quarterdeck.backend.core.properties import MILLISECOND_US

READS = (Get, Size, Keys)
"""What changes nothing."""

CALLS = "map-calls"
"""Name of the timer that sends again and gives up."""

READY = "map-calls-ready"
"""Name of the timer that sends what waited."""

FIRST_DELAY_US = 20 * MILLISECOND_US
LONGEST_DELAY_US = 500 * MILLISECOND_US
"""After an answer that says to ask again."""


def partition_count(state: MemberState) -> int:
    """Return how many partitions the table has, or will have."""
    table = state.partitions.table
    return state.settings.partition_count if table is None else len(table)


def on_map_answer(state: MemberState, now: int, sender: Address, answer: MapAnswer) -> None:
    """Apply the owner's answer: it has done the call, or says to ask again.

    A member that is on the list no more is not believed: what it has done its own cluster has, and not this one. What waits
    behind the call is sent at the next tick, which is due at once: between the two the member hears the others.
    """
    if sender != state.address and sender not in state.peers:
        return
    queue = state.data.queues.get(answer.partition)
    in_flight = queue.in_flight if queue is not None else None
    if queue is None or in_flight is None or answer.caller != state.uuid or answer.number != in_flight.number:
        return
    if answer.retry or not answer.answers:
        if not in_flight.refused:
            in_flight.refused = True
            in_flight.delay_us = min(max(FIRST_DELAY_US, 2 * in_flight.delay_us), LONGEST_DELAY_US)
            in_flight.resend_us = now + in_flight.delay_us
            state.timers.set_by(CALLS, in_flight.resend_us)
        return
    queue.in_flight = None
    done = len(answer.answers)
    queue.waiting.extendleft(reversed(in_flight.sub_operations[done:]))
    for sub_operation, one in zip(in_flight.sub_operations, answer.answers, strict=False):
        _apply_answer(state, now, sub_operation.call, one)
    if queue.waiting:
        state.data.ready[answer.partition] = None
        state.timers.set(READY, now + 1)


def _apply_answer(state: MemberState, now: int, call: int, answer: Answer) -> None:
    """Add the answer of one partition; when it was the last, the call has ended."""
    pending = state.data.pending_call(call)
    if pending is None:
        return
    if displaced := why_displaced(state, pending):
        end(state, now, pending, failed(pending, displaced, untouched=False))
        return
    if isinstance(pending.operation, PutAll) and not answer.problem:
        pending.stored += answer.size
    elif answer.keys:
        pending.keys += answer.keys
        pending.keys.sort()
    else:
        pending.answers.append(answer)
    pending.outstanding -= 1
    if pending.outstanding == 0:
        end(state, now, pending, _put_together(pending))


def why_displaced(state: MemberState, pending: PendingCall) -> str:
    """Return why a write that ends now is not to be acknowledged: this member has lost its place in the cluster meanwhile.

    It has when most of those who were on its list at the beginning are not on it any more; of just a half, when the oldest is
    not. The others then go on without this member, and what it stores is dropped when it merges into their cluster.
    """
    before, after = pending.members, state.members
    if before is after or before is None or isinstance(pending.operation, READS):
        return ""
    here = set() if after is None else {member.uuid for member in after.members}
    kept = [member.uuid for member in before.members if member.uuid in here]
    if 2 * len(kept) > len(before.members) or (2 * len(kept) == len(before.members) and before.master.uuid in kept):
        return ""
    return f"{len(before.members) - len(kept)} of {len(before.members)} members left this one's cluster meanwhile"


def failed(pending: PendingCall, reason: str, *, untouched: bool, is_known: bool = False) -> Answer:
    """Return the answer that ends a call with a problem; that of a `PutAll` says how many entries are stored.

    `is_known` tells that no other entry is.
    """
    operation = pending.operation
    if untouched:
        return Answer(problem=reason, untouched=True)
    unknown = "the outcome is not known"
    if isinstance(operation, PutAll):
        rest = "the others are not" if is_known else "of the others it is not known"
        unknown = f"{pending.stored} of {len(operation.entries)} entries are stored, and {rest}"
    return Answer(problem=f"{reason}; {unknown}", size=pending.stored)


def _put_together(pending: PendingCall) -> Answer:
    answers, operation = pending.answers, pending.operation
    problem = next((answer for answer in answers if answer.problem), None)
    if problem is not None:
        is_known = not pending.sent_elsewhere and all(answer.untouched for answer in answers if answer.problem)
        untouched = isinstance(operation, READS) or (is_known and not pending.stored)
        return failed(pending, problem.problem, untouched=untouched, is_known=is_known)
    if isinstance(operation, PutAll):
        return Answer(size=pending.stored)
    if isinstance(operation, Size):
        return Answer(size=sum(answer.size for answer in answers))
    if isinstance(operation, Keys):
        return Answer(keys=tuple(pending.keys), size=len(pending.keys))
    return answers[0]


def _count_merged(state: MemberState, now: int, batch: int, answer: Answer) -> None:
    merge_entries = state.data.merge_entries
    if merge_entries is not None and batch in merge_entries.in_flight:
        merge_entries.offered += len(merge_entries.in_flight.pop(batch).entries)
        merge_entries.taken += answer.size
        state.timers.set(MERGING, now)


def end(state: MemberState, now: int, pending: PendingCall, answer: Answer) -> None:
    """End a call and answer its client."""
    if pending.call < 0:
        del state.data.merging[pending.call]
        _count_merged(state, now, -pending.call, answer)
        return
    state.data.pending.pop(pending.call, None)
    if pending.watched:
        _record_end(state, now, pending, answer)
    state.context.effects.append(OperationAnswered(pending.call, answer))


def record_start(state: MemberState, now: int, pending: PendingCall) -> None:
    """Record the beginning of a call that is watched."""
    operation = pending.operation
    if pending.watched and isinstance(operation, Put | Get | Remove):
        value = _text(operation.value) if isinstance(operation, Put) else ""
        state.record(now, CallStarted(pending.call, _word(operation), operation.map, operation.key, value))
        pending.started = state.context.cause


def _record_end(state: MemberState, now: int, pending: PendingCall, answer: Answer) -> None:
    operation = pending.operation
    if isinstance(operation, Put | Get | Remove):
        state.record(
            now,
            CallFinished(
                call=pending.call,
                operation=_word(operation),
                map=operation.map,
                key=operation.key,
                partition=partition_of(operation.map, operation.key, partition_count(state)),
                value=_text(answer.value or b""),
                found=answer.value is not None,
                took=now - pending.begun_us,
                problem=answer.problem,
                untouched=answer.untouched,
            ),
            pending.started,
        )


def _word(operation: Put | Get | Remove) -> Literal["put", "get", "remove"]:
    if isinstance(operation, Put):
        return "put"
    return "get" if isinstance(operation, Get) else "remove"


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
