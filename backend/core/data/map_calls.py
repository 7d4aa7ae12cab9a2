"""Calls of clients to the distributed map, through any joined member, a lite one too.

A call is divided by partitions. To each partition one call is under way at a time; what comes meanwhile waits and goes together
in the next. A call is sent again until it is answered: after an answer that says so, after a change of the table, after
silence. Its number makes sure that it is done once. A client that gets no answer in time learns that the outcome is not known.

No call holds the member: the entries of a large one are divided, and calls depart, a slice at each tick.
"""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.cluster_profile import allows_migrations
from quarterdeck.backend.core.data import call_results, map_owner
from quarterdeck.backend.core.data.messages import MapCall, MergeBatch
from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.core.data.state import (
    Data,
    InFlightCall,
    MemberState,
    PartitionQueue,
    PendingCall,
    SubOperation,
)
from quarterdeck.backend.core.membership.cluster_state import why_not_operating
from quarterdeck.backend.core.operations import Answer, Get, Keys, Operation, Put, PutAll, Remove
from quarterdeck.backend.core.partitions.arrangement.repartitioning import ask_for_arrangement, data_members
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.timers import NEVER

SILENCE_US = 1 * SECOND_US
LONGEST_SILENCE_US = 4 * SECOND_US
"""After so long without a word a call is sent again; each time it is waited twice as long, lest a slow link be choked."""

UNARRANGED_US = 1 * SECOND_US
"""After so long without a table a member knows that there is none, where none can be made."""

MOST_OPERATIONS = 500
MOST_BATCH_BYTES = 256 * 1024
MOST_BATCH_WORK = 768 * 1024
"""What goes together in one call; a single operation may be longer."""

DIVIDED_AT_ONCE = 2_000
"""Entries of a `PutAll` that are checked and divided within one tick."""

DEPARTING_AT_ONCE = 256 * 1024
"""About how many bytes of calls depart within one tick."""

ENTRY_WORK_BYTES, KEYS_LISTED = 1024, 20
"""The work with an entry in bytes, and with all keys of a partition in entries."""

MOST_ENTRY_BYTES = 8 * 1024 * 1024
"""The longest entry: with its old value, in an answer or a write to a backup, it stays far below what a frame may hold."""

OPERATION_BYTES = 40
"""About what an operation takes besides its key and value."""


NO_TEXT = "a name that is no valid text; write it in UTF-8"


def call(state: MemberState, now: int, number: int, operation: Operation, watched: bool) -> None:
    """Begin a client's `operation`; the effect `OperationAnswered` with its `number` comes when it has ended, perhaps at once.

    A call that is `watched`, if it is for one key, also leaves its beginning and its end in the journal.
    """
    is_text = _is_text(operation)  # the journal can hold nothing else
    deadline_us = now + state.settings.call_timeout_us
    pending = PendingCall(number, operation, now, deadline_us, watched and is_text, members=state.members)
    call_results.record_start(state, now, pending)
    refusal = _refusal(state, operation) if is_text else NO_TEXT
    if refusal:
        call_results.end(state, now, pending, Answer(problem=refusal, untouched=True))
        return
    state.data.pending[number] = pending
    state.timers.set_by(call_results.CALLS, pending.deadline_us)
    if state.partitions.table is None:
        state.data.waiting_for_table.append(number)
        if not allows_migrations(state.standing.state):
            state.timers.set_by(call_results.CALLS, now + UNARRANGED_US)
        ask_for_arrangement(state, now)
    else:
        _place(state, now, pending)


def ask_for_merge(state: MemberState, now: int, partition: int, operation: MergeBatch, batch: int) -> None:
    """Ask for the entries of `batch` to be merged. This is repeated until the incarnation ends. There must be a table."""
    state.data.merging[-batch] = PendingCall(-batch, operation, now, NEVER, outstanding=1)
    _enqueue(state, partition, SubOperation(-batch, operation, MOST_BATCH_BYTES))
    _depart(state, now, partition)


def end_all(state: MemberState, now: int, reason: str) -> None:
    """End all calls of clients, since this incarnation is about to end."""
    for pending in list(state.data.pending.values()):
        _fail(state, now, pending, reason)
    state.data.waiting_for_table.clear()


def on_table_changed(state: MemberState, now: int) -> None:
    """Send what waited for a table, and calls whose owner has changed to the new owner."""
    table = state.table
    waiting_for_table, state.data.waiting_for_table = state.data.waiting_for_table, []
    for number in waiting_for_table:
        pending = state.data.pending_call(number)
        if pending is not None:
            _place(state, now, pending)
    for partition, queue in list(state.data.queues.items()):
        in_flight = queue.in_flight
        if in_flight is None:
            state.data.ready[partition] = None
        elif in_flight.refused or in_flight.sent_to != table.owner(partition):
            _send(state, now, partition, in_flight)
    _depart_ready(state, now)


def on_ready_timer(state: MemberState, now: int) -> None:
    """Divide the next slice of the call that waits for it longest, and send a slice of what is ready."""
    if state.data.dividing:
        pending = state.data.pending_call(state.data.dividing.pop(0))
        if pending is not None:
            _divide(state, now, pending)
    _depart_ready(state, now)


def on_calls_timer(state: MemberState, now: int) -> None:
    """Give up what has taken too long, and send again what is due."""
    data = state.data
    expired = []
    for pending in data.pending.values():
        if pending.deadline_us > now:
            break  # all have the same time, so the rest are younger
        expired.append(pending)
    for pending in expired:
        _fail(state, now, pending, "no answer in time")
    _give_up_arrangement(state, now)
    for partition, queue in list(data.queues.items()):
        in_flight = queue.in_flight
        if in_flight is None:
            continue
        if all(data.pending_call(sub_operation.call) is None for sub_operation in in_flight.sub_operations):
            queue.in_flight = None  # no client waits for it any more; it may still be done
            _depart(state, now, partition)
        elif in_flight.resend_us <= now:
            if not in_flight.refused:
                in_flight.silence_us = min(2 * in_flight.silence_us, LONGEST_SILENCE_US)
            _send(state, now, partition, in_flight)
    _set_timer(state)


def _set_timer(state: MemberState) -> None:
    data = state.data
    due = [queue.in_flight.resend_us for queue in data.queues.values() if queue.in_flight is not None]
    oldest = next(iter(data.pending.values()), None)
    if oldest is not None:
        due.append(oldest.deadline_us)
    if due:
        state.timers.set_by(call_results.CALLS, min(due))


def _refusal(state: MemberState, operation: Operation) -> str:
    """Return why the operation cannot be begun; empty when it can."""
    if refusal := why_not_operating(state):
        return refusal
    if state.standing.state == "PASSIVE" and not isinstance(operation, call_results.READS):
        return "the cluster is PASSIVE and serves no writes"
    if state.is_master and (why := _why_unarranged(state)):
        return why
    if state.partitions.table is None and not data_members(state):
        return "no member of the cluster holds data"
    return why_too_large(operation)


def why_too_large(operation: Operation) -> str:
    """Return why no member stores an entry of this operation; empty when each may be stored."""
    longest = max((len(key.encode()) + size for key, size in _sizes(operation)), default=0)
    longest += len(operation.map.encode())
    if longest > MOST_ENTRY_BYTES:
        return f"an entry of {longest} bytes is too large; the most is {MOST_ENTRY_BYTES}"
    return ""


def _why_unarranged(state: MemberState) -> str:
    """Return why the partitions are not arranged and will not be soon; empty when they are, or may be."""
    partitions, standing = state.partitions, state.standing.state
    recovers = partitions.master_role is not None and partitions.master_role.recovery is not None
    if partitions.table is not None or recovers or allows_migrations(standing):
        return ""
    return f"the cluster is {standing} and its partitions are not arranged yet, which only an ACTIVE cluster does"


def _give_up_arrangement(state: MemberState, now: int) -> None:
    """End calls that wait for a table that does not come; a member that has just joined gets one that there is at once."""
    if why := _why_unarranged(state):
        for number in list(state.data.waiting_for_table):
            pending = state.data.pending_call(number)
            if pending is not None and pending.begun_us + UNARRANGED_US <= now:
                _fail(state, now, pending, why)


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
    if isinstance(operation, Put):
        yield operation.key, len(operation.value)
    elif isinstance(operation, Get | Remove):
        yield operation.key, 0


def _fail(state: MemberState, now: int, pending: PendingCall, reason: str) -> None:
    call_results.end(state, now, pending, call_results.failed(pending, reason, untouched=not pending.sent))


# From the call to the partitions


def _place(state: MemberState, now: int, pending: PendingCall) -> None:
    """Divide the operation by partitions, and send what can go."""
    operation, count = pending.operation, call_results.partition_count(state)
    if isinstance(operation, PutAll):
        _divide(state, now, pending)
    elif isinstance(operation, Put | Get | Remove):
        size = len(operation.key) + OPERATION_BYTES + (len(operation.value) if isinstance(operation, Put) else 0)
        partition = partition_of(operation.map, operation.key, count)
        pending.outstanding = 1
        _enqueue(state, partition, SubOperation(pending.call, operation, size))
        _depart(state, now, partition)
    elif not isinstance(operation, MergeBatch):
        whole = SubOperation(pending.call, operation, OPERATION_BYTES)
        pending.parts = {partition: [whole] for partition in range(count)}
        _enqueue_parts(state, now, pending)


def _divide(state: MemberState, now: int, pending: PendingCall) -> None:
    """Check and divide the next slice of the entries; after the last one send what can go."""
    operation = pending.operation
    assert isinstance(operation, PutAll)
    entries = operation.entries[pending.cursor : pending.cursor + DIVIDED_AT_ONCE]
    refusal = call_results.why_displaced(state, pending)
    for key, value in entries:
        entry = Put(operation.map, key, value)
        refusal = refusal or (why_too_large(entry) if _is_text(entry) else NO_TEXT)
    if refusal:
        call_results.end(state, now, pending, Answer(problem=refusal, untouched=True))
        return
    _add_parts(pending, operation.map, entries, call_results.partition_count(state))
    pending.cursor += len(entries)
    if pending.cursor < len(operation.entries):
        state.data.dividing.append(pending.call)
        state.timers.set(call_results.READY, now + 1)
    elif not pending.parts:
        call_results.end(state, now, pending, Answer())
    else:
        _enqueue_parts(state, now, pending)


def _enqueue_parts(state: MemberState, now: int, pending: PendingCall) -> None:
    parts, pending.parts = pending.parts, {}
    pending.outstanding = sum(map(len, parts.values()))
    for partition, sub_operations in parts.items():
        for sub_operation in sub_operations:
            _enqueue(state, partition, sub_operation)
        state.data.ready[partition] = None
    _depart_ready(state, now)


def _add_parts(pending: PendingCall, map: str, entries: tuple[tuple[str, bytes], ...], count: int) -> None:
    """Add entries to the parts of a `PutAll`: one for each partition, or several if that has much to store."""
    added: dict[int, list[tuple[str, bytes]]] = {}
    for entry in entries:
        added.setdefault(partition_of(map, entry[0], count), []).append(entry)
    for partition, more in added.items():
        parts = pending.parts.setdefault(partition, [])
        last = parts.pop() if parts else SubOperation(pending.call, PutAll(map, ()), 0)
        assert isinstance(last.operation, PutAll)
        part, size = list(last.operation.entries), last.bytes
        for key, value in more:
            entry_bytes = len(key) + len(value) + OPERATION_BYTES
            if part and (size + entry_bytes > MOST_BATCH_BYTES or len(part) >= MOST_OPERATIONS):
                parts.append(SubOperation(pending.call, PutAll(map, tuple(part)), size))
                part, size = [], 0
            part.append((key, value))
            size += entry_bytes
        parts.append(SubOperation(pending.call, PutAll(map, tuple(part)), size))


def _enqueue(state: MemberState, partition: int, sub_operation: SubOperation) -> None:
    queue = state.data.queues.get(partition)
    if queue is None:
        queue = state.data.queues[partition] = PartitionQueue()
    queue.waiting.append(sub_operation)


# From the partitions to their owners


def _depart(state: MemberState, now: int, partition: int) -> int:
    """Send what waits for the partition, as one call, unless one is under way or the partition has no owner just now.

    Return about how much work that is, in bytes.
    """
    queue, table = state.data.queues.get(partition), state.partitions.table
    if queue is None or queue.in_flight is not None or table is None or table.owner(partition) is None:
        return 0
    sub_operations = _next_batch(state.data, queue)
    if sub_operations:
        queue.number += 1
        queue.in_flight = InFlightCall(queue.number, sub_operations, SILENCE_US)
        _send(state, now, partition, queue.in_flight)
    return sum(map(_work, sub_operations))


def _work(sub_operation: SubOperation) -> int:
    """Return about how much work an operation is, in bytes: that of its entries counts more than what they hold."""
    operation = sub_operation.operation
    entries = (
        len(operation.entries) if isinstance(operation, PutAll) else KEYS_LISTED if isinstance(operation, Keys) else 1
    )
    return sub_operation.bytes + entries * ENTRY_WORK_BYTES


def _depart_ready(state: MemberState, now: int) -> None:
    """Send a slice of the calls that wait for it. The others follow at the next tick, which is due at once."""
    ready, work = state.data.ready, 0
    while ready and work < DEPARTING_AT_ONCE:
        partition = next(iter(ready))
        del ready[partition]
        work += _depart(state, now, partition)
    if ready:
        state.timers.set(call_results.READY, now + 1)


def _next_batch(data: Data, queue: PartitionQueue) -> list[SubOperation]:
    sub_operations: list[SubOperation] = []
    size = work = 0
    while queue.waiting and len(sub_operations) < MOST_OPERATIONS:
        sub_operation = queue.waiting[0]
        work += _work(sub_operation)
        if sub_operations and (size + sub_operation.bytes > MOST_BATCH_BYTES or work > MOST_BATCH_WORK):
            break
        queue.waiting.popleft()
        if data.pending_call(sub_operation.call) is not None:
            sub_operations.append(sub_operation)
            size += sub_operation.bytes
    return sub_operations


def _send(state: MemberState, now: int, partition: int, in_flight: InFlightCall) -> None:
    """Send the call to the owner that this member knows; to itself directly."""
    table = state.partitions.table
    owner = None if table is None else table.owner(partition)
    in_flight.sent_to, in_flight.refused = owner, False
    in_flight.resend_us = now + in_flight.silence_us
    state.timers.set_by(call_results.CALLS, in_flight.resend_us)
    if owner is None:
        return  # the table will change
    in_flight.asked_first = in_flight.asked_first or owner
    for sub_operation in in_flight.sub_operations:
        pending = state.data.pending_call(sub_operation.call)
        if pending is not None:
            pending.sent = True
            pending.sent_elsewhere |= in_flight.asked_first != owner
    operations = tuple(sub_operation.operation for sub_operation in in_flight.sub_operations)
    message = MapCall(state.uuid, partition, in_flight.number, operations, owner.uuid)
    if owner.uuid == state.uuid:
        map_owner.on_map_call(state, now, state.address, message)
    else:
        state.send(owner.address, message)
