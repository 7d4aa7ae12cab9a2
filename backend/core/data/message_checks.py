"""Checks of messages about data (chapter `membership.message_checks` says what checks are for)."""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data import messages
from quarterdeck.backend.core.data.partition_store import StoredEntry
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.membership.message_checks import GREATEST, MessageCheck, number_problem
from quarterdeck.backend.core.operations import Answer
from quarterdeck.backend.core.properties import MERGE_POLICIES


def _entries_problem(entries: Iterable[StoredEntry]) -> str:
    for entry in entries:
        for number in (entry.version, entry.created_us, entry.updated_us, entry.accessed_us, entry.hits):
            if not 0 <= number <= GREATEST:
                return f"an entry has the number {number}, which is not between 0 and {GREATEST}"
    return ""


def _answers_problem(answers: Iterable[Answer]) -> str:
    return next((why for answer in answers if (why := number_problem("size", answer.size))), "")


def _map_call(state: MemberState, sender: Address, call: messages.MapCall) -> str:
    for operation in call.operations:
        if isinstance(operation, messages.MergeBatch):
            if operation.policy not in MERGE_POLICIES:
                return f"it merges by {operation.policy!r}, which is no merge policy"
            if why := _entries_problem(entry for _, entry in operation.entries):
                return why
    return number_problem("number of the call", call.number)


def _map_answer(state: MemberState, sender: Address, answer: messages.MapAnswer) -> str:
    return _answers_problem(answer.answers)


def _backup_write(state: MemberState, sender: Address, write: messages.BackupWrite) -> str:
    if write.stamp.number <= write.previous.number:
        return "its stamp does not follow on the one before it"
    known = state.data.last_stamp(write.partition).number if write.partition in state.data.stores else None
    return (
        number_problem("stamp", write.previous.number)
        or number_problem("stamp", write.stamp.number, known)
        or _entries_problem(entry for _, _, entry in write.entries)
        or _answers_problem(write.answers)
    )


DATA_MESSAGE_CHECKS: dict[type, MessageCheck] = {
    messages.MapCall: _map_call,
    messages.MapAnswer: _map_answer,
    messages.BackupWrite: _backup_write,
}
"""The checks of the kinds of messages that can be wrong by themselves."""
