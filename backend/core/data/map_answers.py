"""How calls end at the one who asked: answers of partitions are put together, and the client is told."""

from __future__ import annotations

from typing import Literal

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.data.messages import MapAnswer
from quarterdeck.backend.core.data.operations import Answer, Get, Keys, Put, PutAll, Remove, Size
from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.core.data.state import Asked
from quarterdeck.backend.core.effects import Answered
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.properties import MILLISECOND_US

CALLS = "map-calls"
"""Name of the timer that sends again and gives up."""

READY = "map-calls-ready"
"""Name of the timer that sends what waited."""

FIRST_DELAY_US = 20 * MILLISECOND_US
LONGEST_DELAY_US = 500 * MILLISECOND_US
"""After an answer that says to ask again."""


def wake_at(state: Membership, at_us: int) -> None:
    """Let the timer of calls come no later than `at_us`."""
    data = state.data
    if not state.timers.is_set(CALLS) or at_us < data.calls_due_us:
        data.calls_due_us = at_us
        state.timers.set(CALLS, at_us)


def partition_count(state: Membership) -> int:
    table = state.partitions.table
    return state.settings.partition_count if table is None else len(table)


def on_map_answer(state: Membership, now: int, sender: Address, answer: MapAnswer) -> None:
    """The owner has done it, or says to ask again. What waits behind it goes out at the next tick, which is due at once."""
    line = state.data.lines.get(answer.partition)
    flight = line.flight if line is not None else None
    if line is None or flight is None or answer.caller != state.uuid or answer.number != flight.number:
        return
    if answer.retry or not answer.answers:
        if not flight.refused:
            flight.refused = True
            flight.delay_us = min(max(FIRST_DELAY_US, 2 * flight.delay_us), LONGEST_DELAY_US)
            flight.resend_us = now + flight.delay_us
            wake_at(state, flight.resend_us)
        return
    line.flight = None
    done = len(answer.answers)
    line.waiting.extendleft(reversed(flight.pieces[done:]))
    for piece, one in zip(flight.pieces, answer.answers, strict=False):
        _take(state, now, piece.asked, one)
    if line.waiting:
        state.data.ready[answer.partition] = None
        state.timers.set(READY, now)


def _take(state: Membership, now: int, asked: Asked, answer: Answer) -> None:
    """One partition has answered; when it was the last, the call has ended."""
    if asked.ended:
        return
    asked.answers.append(answer)
    asked.outstanding -= 1
    if asked.outstanding == 0:
        end(state, now, asked, _put_together(asked))


def _put_together(asked: Asked) -> Answer:
    answers, operation = asked.answers, asked.operation
    problem = next((answer for answer in answers if answer.problem), None)
    if problem is not None:
        return Answer(problem=problem.problem, untouched=all(answer.untouched for answer in answers))
    if isinstance(operation, PutAll | Size):
        return Answer(size=sum(answer.size for answer in answers))
    if isinstance(operation, Keys):
        keys = sorted(key for answer in answers for key in answer.keys)
        return Answer(keys=tuple(keys), size=len(keys))
    return answers[0]


def end(state: Membership, now: int, asked: Asked, answer: Answer) -> None:
    """Tell whoever asked."""
    asked.ended = True
    if asked.then is not None:
        asked.then(state, now, answer)
        return
    state.data.asked.pop(asked.call, None)
    if asked.watched:
        _note_end(state, now, asked, answer)
    state.effects.append(Answered(asked.call, answer))


def note_start(state: Membership, now: int, asked: Asked) -> None:
    """A call that is watched leaves its trace in the journal."""
    operation = asked.operation
    if asked.watched and isinstance(operation, Put | Get | Remove):
        value = _text(operation.value) if isinstance(operation, Put) else ""
        state.note(now, CallStarted(asked.call, _word(operation), operation.map, operation.key, value))


def _note_end(state: Membership, now: int, asked: Asked, answer: Answer) -> None:
    operation = asked.operation
    if isinstance(operation, Put | Get | Remove):
        state.note(
            now,
            CallFinished(
                call=asked.call,
                operation=_word(operation),
                map=operation.map,
                key=operation.key,
                partition=partition_of(operation.map, operation.key, partition_count(state)),
                value=_text(answer.value or b""),
                found=answer.value is not None,
                took=now - asked.begun_us,
                problem=answer.problem,
                untouched=answer.untouched,
            ),
        )


def _word(operation: Put | Get | Remove) -> Literal["put", "get", "remove"]:
    if isinstance(operation, Put):
        return "put"
    return "get" if isinstance(operation, Get) else "remove"


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
