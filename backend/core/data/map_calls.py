"""Calls of clients to the distributed map, through any joined member, a lite one too.

What is asked is taken apart by partitions. To each partition one call is under way at a time; what comes meanwhile waits and goes
together in the next. A call is sent again until it is answered: after an answer that says so, after a change of the table,
after silence. Its number makes sure that it is done once. Whoever gets no answer in time is told that the outcome is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.data import map_answers, map_owner
from quarterdeck.backend.core.data.messages import MapCall, MergeEntries
from quarterdeck.backend.core.data.operations import Answer, Get, Operation, Put, PutAll, Remove
from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.core.data.state import Asked, Flight, Line, Piece
from quarterdeck.backend.core.membership.minimum_cluster_size import check_operation
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.partitions.arranging import ask_for_arrangement
from quarterdeck.backend.core.partitions.repartitioning import data_members
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.timers import NEVER

SILENCE_US = 1 * SECOND_US
LONGEST_SILENCE_US = 4 * SECOND_US
"""After so long without a word a call is sent again; each time it is waited twice as long, lest a slow link be choked."""

MOST_OPERATIONS = 500
MOST_BATCH_BYTES = 256 * 1024
"""What goes together in one call; a single operation may be longer."""

MOST_ENTRY_BYTES = 8 * 1024 * 1024
"""The longest entry: with its old value, in an answer or a write to a backup, it stays far below what a frame may hold."""

OPERATION_BYTES = 40
"""About what an operation takes besides its key and value."""


def call(state: Membership, now: int, number: int, operation: Operation, watched: bool) -> None:
    """A client asks for `operation`; the effect `Answered` with its `number` comes when it has ended, perhaps at once.

    A call that is `watched`, if it is for one key, also leaves its beginning and its end in the journal.
    """
    is_text = _is_text(operation)  # the journal can hold nothing else
    asked = Asked(number, operation, now, now + state.settings.call_timeout_us, watched and is_text)
    map_answers.note_start(state, now, asked)
    refusal = _refusal(state, operation) if is_text else "a name that is no valid text; write it in UTF-8"
    if refusal:
        map_answers.end(state, now, asked, Answer(problem=refusal, untouched=True))
        return
    state.data.asked[number] = asked
    map_answers.wake_at(state, asked.deadline_us)
    if state.partitions.table is None:
        state.data.unplaced.append(asked)
        ask_for_arrangement(state, now)
    else:
        _place(state, now, asked)


def ask_for_merge(
    state: Membership,
    now: int,
    partition: int,
    operation: MergeEntries,
    then: Callable[[Membership, int, Answer], None],
) -> None:
    """This member itself wants entries merged; it does not give up as long as it lives. There must be a table."""
    asked = Asked(-1, operation, now, NEVER, then=then, outstanding=1)
    _enqueue(state, partition, Piece(asked, operation, MOST_BATCH_BYTES))
    _depart(state, now, partition)


def end_all(state: Membership, now: int, reason: str) -> None:
    """This life is about to end: so do all calls of clients."""
    for asked in list(state.data.asked.values()):
        _fail(state, now, asked, reason)
    state.data.unplaced.clear()


def on_table_changed(state: Membership, now: int) -> None:
    """What waited for a table finds its partition; calls whose owner is another one now are sent there."""
    table = state.partitions.table
    if table is None:
        return
    unplaced, state.data.unplaced = state.data.unplaced, []
    for asked in unplaced:
        if not asked.ended:
            _place(state, now, asked)
    for partition, line in list(state.data.lines.items()):
        flight = line.flight
        if flight is None:
            _depart(state, now, partition)
        elif flight.refused or flight.sent_to != table.owner(partition):
            _send(state, now, partition, flight)


def on_ready_timer(state: Membership, now: int) -> None:
    """Send what waited for an answer to the call before."""
    ready, state.data.ready = state.data.ready, {}
    for partition in ready:
        _depart(state, now, partition)


def on_calls_timer(state: Membership, now: int) -> None:
    """Give up what has taken too long, and send again what is due."""
    data = state.data
    expired = []
    for asked in data.asked.values():
        if asked.deadline_us > now:
            break  # they have all the same time, so the rest are younger
        expired.append(asked)
    for asked in expired:
        _fail(state, now, asked, "no answer in time")
    for partition, line in list(data.lines.items()):
        flight = line.flight
        if flight is None:
            continue
        if all(piece.asked.ended for piece in flight.pieces):
            line.flight = None  # nobody waits for it any more; whether it is still done nobody was promised
            _depart(state, now, partition)
        elif flight.resend_us <= now:
            if not flight.refused:
                flight.silence_us = min(2 * flight.silence_us, LONGEST_SILENCE_US)
            _send(state, now, partition, flight)
    _set_timer(state)


def _set_timer(state: Membership) -> None:
    data = state.data
    due = [line.flight.resend_us for line in data.lines.values() if line.flight is not None]
    oldest = next(iter(data.asked.values()), None)
    if oldest is not None:
        due.append(oldest.deadline_us)
    if due:
        map_answers.wake_at(state, min(due))


def _refusal(state: Membership, operation: Operation) -> str:
    """Why the operation cannot be begun; empty when it can."""
    try:
        check_operation(state)
    except CommandRefused as problem:
        return str(problem)
    if state.standing.state == "PASSIVE":
        return "the cluster is PASSIVE and serves no operations"
    if state.partitions.table is None and not data_members(state):
        return "no member of the cluster holds data"
    longest = max((len(key.encode()) + size for key, size in _sizes(operation)), default=0)
    longest += len(operation.map.encode())
    if longest > MOST_ENTRY_BYTES:
        return f"an entry of {longest} bytes is too large; the most is {MOST_ENTRY_BYTES}"
    return ""


def _is_text(operation: Operation) -> bool:
    """Whether the names of the map and of its keys can be written in UTF-8."""
    try:
        operation.map.encode()
        for key, _ in _sizes(operation):
            key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _sizes(operation: Operation) -> Iterator[tuple[str, int]]:
    if isinstance(operation, PutAll):
        yield from ((key, len(value)) for key, value in operation.entries)
    elif isinstance(operation, Put):
        yield operation.key, len(operation.value)
    elif isinstance(operation, Get | Remove):
        yield operation.key, 0


def _fail(state: Membership, now: int, asked: Asked, reason: str) -> None:
    known = "" if not asked.sent else "; the outcome is not known"
    map_answers.end(state, now, asked, Answer(problem=f"{reason}{known}", untouched=not asked.sent))


# From the call to the partitions


def _place(state: Membership, now: int, asked: Asked) -> None:
    """Take the operation apart by partitions, and send what can go."""
    placed = list(_pieces(state, asked))
    asked.outstanding = len(placed)
    if not placed:
        map_answers.end(state, now, asked, Answer())
    for partition, piece in placed:
        _enqueue(state, partition, piece)
    for partition in dict.fromkeys(partition for partition, _ in placed):
        _depart(state, now, partition)


def _pieces(state: Membership, asked: Asked) -> Iterator[tuple[int, Piece]]:
    operation, count = asked.operation, map_answers.partition_count(state)
    if isinstance(operation, Put | Get | Remove):
        size = len(operation.key) + OPERATION_BYTES + (len(operation.value) if isinstance(operation, Put) else 0)
        yield partition_of(operation.map, operation.key, count), Piece(asked, operation, size)
    elif isinstance(operation, PutAll):
        yield from _put_all_pieces(asked, operation, count)
    elif not isinstance(operation, MergeEntries):
        yield from ((partition, Piece(asked, operation, OPERATION_BYTES)) for partition in range(count))


def _put_all_pieces(asked: Asked, operation: PutAll, count: int) -> Iterator[tuple[int, Piece]]:
    """One piece for each partition, or several if that has much to store."""
    parts: dict[int, list[tuple[str, bytes]]] = {}
    sizes: dict[int, int] = {}
    for key, value in operation.entries:
        partition = partition_of(operation.map, key, count)
        part, size = parts.setdefault(partition, []), len(key) + len(value) + OPERATION_BYTES
        if part and (sizes[partition] + size > MOST_BATCH_BYTES or len(part) >= MOST_OPERATIONS):
            yield partition, Piece(asked, PutAll(operation.map, tuple(part)), sizes[partition])
            part = parts[partition] = []
            sizes[partition] = 0
        part.append((key, value))
        sizes[partition] = sizes.get(partition, 0) + size
    for partition, part in parts.items():
        yield partition, Piece(asked, PutAll(operation.map, tuple(part)), sizes[partition])


def _enqueue(state: Membership, partition: int, piece: Piece) -> None:
    line = state.data.lines.get(partition)
    if line is None:
        line = state.data.lines[partition] = Line()
    line.waiting.append(piece)


# From the partitions to their owners


def _depart(state: Membership, now: int, partition: int) -> None:
    """Send what waits for the partition, as one call, unless one is under way or nobody owns the partition just now."""
    line, table = state.data.lines.get(partition), state.partitions.table
    if line is None or line.flight is not None or table is None or table.owner(partition) is None:
        return
    pieces = _next_batch(line)
    if pieces:
        line.number += 1
        line.flight = Flight(line.number, pieces, tuple(piece.operation for piece in pieces), SILENCE_US)
        _send(state, now, partition, line.flight)


def _next_batch(line: Line) -> list[Piece]:
    pieces: list[Piece] = []
    size = 0
    while line.waiting and len(pieces) < MOST_OPERATIONS:
        piece = line.waiting[0]
        if pieces and size + piece.bytes > MOST_BATCH_BYTES:
            break
        line.waiting.popleft()
        if not piece.asked.ended:
            pieces.append(piece)
            size += piece.bytes
    return pieces


def _send(state: Membership, now: int, partition: int, flight: Flight) -> None:
    """Send the call to the owner that this member knows; to itself directly."""
    table = state.partitions.table
    owner = None if table is None else table.owner(partition)
    flight.sent_to, flight.refused = owner, False
    flight.resend_us = now + flight.silence_us
    map_answers.wake_at(state, flight.resend_us)
    if owner is None:
        return  # the table will change
    for piece in flight.pieces:
        piece.asked.sent = True
    message = MapCall(state.uuid, partition, flight.number, flight.operations)
    if owner.uuid == state.uuid:
        map_owner.on_map_call(state, now, state.address, message)
    else:
        state.send(owner.address, message)
