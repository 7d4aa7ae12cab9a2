"""Synchronous backups: a write counts when every backup in the row has it (Hazelcast: anti-entropy).

The owner numbers its writes with stamps and sends each to all backups; a backup applies a write only on top of the stamp that
it was made for, and always answers with its stamp. So its replica is one that the owner has had; otherwise the owner answers
that it is stale, and it copies the whole partition (chapter `replica_sync`). Callers get no answer that is not safe: what the
owner has done waits until every backup now in the row has confirmed it. A new owner knows nothing of its backups and asks them
first.
"""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data import call_results, measuring, messages
from quarterdeck.backend.core.data.partition_store import PartitionStore, Stamp
from quarterdeck.backend.core.data.replication import replica_sync
from quarterdeck.backend.core.data.state import MemberState, OwnerState, is_full
from quarterdeck.backend.core.operations import Answer
from quarterdeck.backend.core.partitions.table.partition_table import Replica, index_of
from quarterdeck.backend.core.properties import MILLISECOND_US

BACKUPS = "map-backups"
"""Name of the timer that looks after writes that are not safe."""

RESEND_US = 500 * MILLISECOND_US
LONGEST_RESEND_US = 4_000 * MILLISECOND_US
"""When to send again to backups that do not confirm; each time it is waited twice as long, lest a slow link be choked."""

NOT_YET_US = 50 * MILLISECOND_US
"""When to try again with a backup that has not heard of its new owner."""

MOST_EARLY = 64
"""So many writes that have overtaken others wait for those at a backup; if there are more, all of them come again."""

CHECKS_IN_A_MESSAGE = 500


# The owner


def begin_owning(state: MemberState, now: int, partition: int) -> None:
    """Begin to own the partition. What it holds is not safe before the backups have confirmed that they hold it."""
    assert state.partitions.table is not None
    row = state.partitions.table.rows[partition]
    owner_state = state.data.owner_states[partition] = OwnerState(row, state.data.last_stamp(partition), RESEND_US)
    _answer_acknowledged(state, now, partition, owner_state)
    if partition in state.data.unsafe:
        _look_at(state, partition, now)


def end_owning(state: MemberState, now: int, partition: int) -> None:
    """End owning the partition. Callers that wait are sent to the new owner, which knows what is done."""
    owner_state = state.data.owner_states.pop(partition, None)
    state.data.unsafe.pop(partition, None)
    if owner_state is None:
        return
    for _, to, answer in owner_state.waiting:
        moved = messages.MapAnswer(answer.caller, partition, answer.number, (), "the partition has moved")
        reply(state, now, to, moved)


def write(
    state: MemberState,
    now: int,
    partition: int,
    changed: tuple[tuple[str, str], ...],
    caller: str,
    number: int,
    answers: tuple[Answer, ...],
) -> None:
    """Give a change of these keys a stamp, and send it to the backups. `caller` is empty when the owner has decided it itself."""
    data = state.data
    store, owner_state = data.stores[partition], data.owner_states[partition]
    previous = store.stamp
    issued = data.issued[partition] = max(previous.number, data.issued.get(partition, 0)) + 1
    store.stamp = Stamp(state.uuid, issued)
    if caller:
        store.remember(caller, (number, answers))
    found = [(map, key, store.find(map, key)) for map, key in changed]
    entries = tuple((map, key, entry) for map, key, entry in found if entry is not None)
    removed = tuple((map, key) for map, key, entry in found if entry is None)
    message = messages.BackupWrite(partition, previous, store.stamp, entries, removed, caller, number, answers)
    owner_state.log.append(message)
    owner_state.written_us.append(now)
    state.send_all(backup_addresses(state, owner_state), message)
    _answer_acknowledged(state, now, partition, owner_state)


def answer_when_safe(state: MemberState, now: int, partition: int, to: Address, answer: messages.MapAnswer) -> None:
    """Answer as soon as all that the replica has now is in every backup."""
    owner_state = state.data.owner_states[partition]
    owner_state.waiting.append((state.data.last_stamp(partition).number, to, answer))
    owner_state.delivered[answer.caller] = answer.number
    _answer_acknowledged(state, now, partition, owner_state)


def reply(state: MemberState, now: int, to: Address, answer: messages.MapAnswer) -> None:
    """Answer a caller, which may be this member itself."""
    if to == state.address:
        call_results.on_map_answer(state, now, to, answer)
    else:
        state.send(to, answer)


def on_backup_ack(state: MemberState, now: int, sender: Address, ack: messages.BackupAck) -> None:
    """Note where a backup stands."""
    data = state.data
    if not state.is_listed(sender, ack.backup):
        return
    if ack.full:
        data.full_backups[ack.backup] = None
    else:
        data.full_backups.pop(ack.backup, None)
    for partition, position in ack.positions:
        owner_state = data.owner_states.get(partition)
        if owner_state is None or Replica(sender, ack.backup) not in state.counted_backups(owner_state.row):
            continue
        of_this_ownership = position == owner_state.base or any(entry.stamp == position for entry in owner_state.log)
        if of_this_ownership:
            if position.number > owner_state.confirmed.get(ack.backup, -1):
                owner_state.confirmed[ack.backup] = position.number
                owner_state.delay_us = RESEND_US
                data.unsafe.pop(partition, None)  # the time to wait begins anew
            _answer_acknowledged(state, now, partition, owner_state)
        elif (partition, ack.backup) not in data.outgoing:
            state.send(sender, messages.BackupStale(state.uuid, partition, position))
    for partition in ack.not_yet:
        if partition in data.unsafe:
            _look_at(state, partition, min(data.unsafe[partition], now + NOT_YET_US))


def on_rows_changed(state: MemberState, now: int, changed: Iterable[int]) -> None:
    """Adopt changed rows of partitions that stay with this owner: fewer backups to wait for, or new ones to ask."""
    table = state.table
    for partition in sorted(changed):
        row, owner_state = table.rows[partition], state.data.owner_states.get(partition)
        if owner_state is None or row == owner_state.row or row[0] is None or row[0].uuid != state.uuid:
            continue
        owner_state.row = row
        here = {backup.uuid for backup in state.counted_backups(row)}
        owner_state.confirmed = {uuid: number for uuid, number in owner_state.confirmed.items() if uuid in here}
        _answer_acknowledged(state, now, partition, owner_state)
        if partition in state.data.unsafe:
            _look_at(state, partition, now)


def on_backups_timer(state: MemberState, now: int) -> None:
    """Send again what backups have not confirmed; ask those of whom nothing is known."""
    unsafe = state.data.unsafe
    checks: dict[Address, list[messages.CheckedReplica]] = {}
    for partition, due_us in list(unsafe.items()):
        if due_us > now:
            continue
        owner_state = state.data.owner_states[partition]
        _answer_acknowledged(state, now, partition, owner_state)  # a backup may have left the list
        if partition not in unsafe:
            continue
        unsafe[partition] = now + owner_state.delay_us
        owner_state.delay_us = min(2 * owner_state.delay_us, LONGEST_RESEND_US)
        for backup in state.counted_backups(owner_state.row):
            if (partition, backup.uuid) in state.data.outgoing:
                continue
            if not _send_rest(state, owner_state, backup):
                checks.setdefault(backup.address, []).append(checked(state, partition))
    send_checks(state, checks)
    if unsafe:
        state.timers.set_by(BACKUPS, min(unsafe.values()))


def checked(state: MemberState, partition: int) -> messages.CheckedReplica:
    """Return the replica that a backup is asked to compare with its own."""
    store = state.data.stores[partition]
    return messages.CheckedReplica(partition, store.stamp, store.digest)


def send_checks(state: MemberState, checks: dict[Address, list[messages.CheckedReplica]]) -> None:
    """Ask each backup about all its partitions, in as few messages as may be."""
    for address, asked in checks.items():
        for start in range(0, len(asked), CHECKS_IN_A_MESSAGE):
            state.send(address, messages.BackupCheck(state.uuid, tuple(asked[start : start + CHECKS_IN_A_MESSAGE])))


def backup_addresses(state: MemberState, owner_state: OwnerState) -> tuple[Address, ...]:
    """Return the addresses of the backups of a partition that is owned here."""
    return tuple(backup.address for backup in state.counted_backups(owner_state.row))


def mark_out_of_step(state: MemberState, now: int, partition: int, backup: str) -> None:
    """Note that a backup is not in step any more, so that nothing is safe with it."""
    owner_state = state.data.owner_states[partition]
    owner_state.confirmed.pop(backup, None)
    _answer_acknowledged(state, now, partition, owner_state)


def _answer_acknowledged(state: MemberState, now: int, partition: int, owner_state: OwnerState) -> None:
    """Forget what is safe now in the log, and answer the callers that waited for it."""
    last = state.data.last_stamp(partition).number
    positions = (owner_state.confirmed.get(backup.uuid, 0) for backup in state.counted_backups(owner_state.row))
    safe = min(positions, default=last)
    while owner_state.log and owner_state.log[0].stamp.number <= safe:
        owner_state.base = owner_state.log.popleft().stamp
        owner_state.written_us.popleft()
    while owner_state.waiting and owner_state.waiting[0][0] <= safe:
        _, to, answer = owner_state.waiting.popleft()
        if owner_state.delivered.get(answer.caller) == answer.number:
            del owner_state.delivered[answer.caller]
        reply(state, now, to, answer)
    if safe >= last:
        state.data.unsafe.pop(partition, None)
    elif partition not in state.data.unsafe:
        _look_at(state, partition, now + RESEND_US)


def _look_at(state: MemberState, partition: int, at_us: int) -> None:
    state.data.unsafe[partition] = at_us
    state.timers.set_by(BACKUPS, at_us)


def _send_rest(state: MemberState, owner_state: OwnerState, backup: Replica) -> bool:
    """Send the writes that the backup is not known to have.

    Return False when there are none, and yet it is not known to be in step.
    """
    confirmed = owner_state.confirmed.get(backup.uuid)
    for message in owner_state.log:
        if confirmed is None or message.stamp.number > confirmed:
            state.send(backup.address, message)
    return bool(owner_state.log) or confirmed is not None


# The backup


def on_backup_write(state: MemberState, now: int, sender: Address, message: messages.BackupWrite) -> None:
    """Apply the owner's write if it fits, and answer with the stamp of this replica."""
    partition = message.partition
    store = _replica_of(state, partition, Replica(sender, message.stamp.writer))
    if store is None:
        state.send(sender, messages.BackupAck(state.uuid, (), (partition,), is_full(state)))
        return
    _apply_in_order(state, store, message)
    measuring.count_backup_write(state, now)
    state.send(sender, messages.BackupAck(state.uuid, ((partition, store.stamp),), (), is_full(state)))


def _apply_in_order(state: MemberState, store: PartitionStore, message: messages.BackupWrite) -> None:
    """Apply the write, and those that wait for it. One that has overtaken others waits for them, but for no other owner's."""
    early = state.data.early.setdefault(message.partition, {})
    for stamp, one in list(early.items()):
        if one.stamp.writer != message.stamp.writer or stamp.number < store.stamp.number or len(early) > MOST_EARLY:
            del early[stamp]
    early[message.previous] = message
    while (fitting := early.pop(store.stamp, None)) is not None:
        _apply(store, fitting)
    if not early:
        del state.data.early[message.partition]


def _apply(store: PartitionStore, message: messages.BackupWrite) -> None:
    for map, key, entry in message.entries:
        store.put(map, key, entry)
    for map, key in message.removed:
        store.remove(map, key)
    if message.caller:
        store.remember(message.caller, (message.number, message.answers))
    store.stamp = message.stamp


def on_backup_check(state: MemberState, now: int, sender: Address, message: messages.BackupCheck) -> None:
    """Answer with the stamps of these replicas. One that has the owner's stamp and other data is dirty, and needs a copy."""
    positions: list[tuple[int, Stamp]] = []
    not_yet: list[int] = []
    for check in message.checks:
        store = _replica_of(state, check.partition, Replica(sender, message.owner))
        if store is None:
            not_yet.append(check.partition)
        elif store.stamp == check.stamp and store.digest != check.digest:
            reason = "its data has another digest than the owner's"
            replica_sync.request_copy(state, now, check.partition, "other-digest", reason)
        else:
            if store.stamp == check.stamp:
                replica_sync.on_equal(state, now, check.partition, sender)
            positions.append((check.partition, store.stamp))
    if positions or not_yet:
        state.send(sender, messages.BackupAck(state.uuid, tuple(positions), tuple(not_yet), is_full(state)))


def on_backup_stale(state: MemberState, now: int, sender: Address, message: messages.BackupStale) -> None:
    """Ask for a whole copy, since the owner cannot go on from here, unless this backup was brought in step meanwhile."""
    store = _replica_of(state, message.partition, Replica(sender, message.owner))
    if store is not None and store.stamp == message.position:
        reason = "it lacks writes that the owner does not keep"
        replica_sync.request_copy(state, now, message.partition, "writes-missing", reason)


def _replica_of(state: MemberState, partition: int, owner: Replica) -> PartitionStore | None:
    """Return the replica that this member holds for `owner`; None when it knows of none, or is just sending it elsewhere."""
    table = state.partitions.table
    if table is None or not 0 <= partition < len(table):
        return None
    row = table.rows[partition]
    if row[0] != owner or index_of(state.uuid, row) < 1:
        return None
    active = state.partitions.active.get(partition)
    if active is not None and active.sending is not None:
        return None
    return state.data.stores.get(partition)
