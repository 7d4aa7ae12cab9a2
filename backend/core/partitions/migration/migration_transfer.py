"""Copying a partition from its owner to the destination of a migration.

See Avoid Data Loss on Migration, 2.1 and 3; Hazelcast: one migration.

The owner always sends the data, also where a backup's place is taken. Both check that nothing has changed since the master
decided on the migration; from then on each keeps it as its active migration, takes part in no other one of the partition, and
lets no client change it, until the end is known. Chunks are made one by one, and only so many are on their way at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import allows_migrations
from quarterdeck.backend.core.partitions import events, messages
from quarterdeck.backend.core.partitions.migration.migration import Endpoint, MigrationEvent, PartitionMigration
from quarterdeck.backend.core.partitions.state import ActiveMigration, OutgoingCopy, PartitionedMember
from quarterdeck.backend.core.partitions.table.partition_table import index_of
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US

TRANSFER = "migration transfer"
"""Name of the timer that sends again what is not acknowledged."""

RESEND_US = 1 * SECOND_US
MOST_EARLY = 64
"""So many chunks that have overtaken others are kept until those come."""
SOON_US = 20 * MILLISECOND_US
"""How long to wait for a member that has not heard the latest yet."""
SERVICE = "map"
"""What holds data in partitions, as chunks name it."""


class Objection(NamedTuple):
    """Why a member takes no part; `retry` when that will pass."""

    cause: events.RejectionCause
    problem: str
    retry: bool


# The owner


def on_request(state: PartitionedMember, now: int, sender: Address, request: messages.MigrationRequest) -> None:
    """Begin the copy that the master asks for."""
    report = begin_copy(state, now, sender, request.migration)
    if report is not None:
        state.send(sender, report)


def begin_copy(
    state: PartitionedMember, now: int, master: Address, migration: PartitionMigration
) -> messages.MigrationReport | None:
    """Begin to copy, unless that is done or under way. Return what to report to the master now, if anything."""
    if migration.id in state.partitions.completed:
        return None
    active = state.partitions.active.get(migration.partition)
    if active is not None and active.migration.id == migration.id:
        sending = active.sending
        if sending is not None and (sending.finished or sending.problem):
            return messages.MigrationReport(migration.id, sending.problem)
        return None
    objection = _objection(state, master, migration) or _objection_of_owner(state, migration)
    if objection is not None:
        _reject(state, now, migration, "source", objection)
        return messages.MigrationReport(migration.id, objection.problem, objection.retry)
    active = _accept(state, now, migration, "source")
    active.sending = OutgoingCopy(begun_us=now, resend_us=now + RESEND_US)
    _send_more(state, now, active, active.sending)
    return None


def on_chunk_ack(state: PartitionedMember, now: int, sender: Address, ack: messages.MigrationChunkAck) -> None:
    """Send the next chunks when the destination has received some, or end the copy when it refuses."""
    active = _sending_of(state, ack.migration_id)
    if active is None or active.sending is None or active.migration.destination.address != sender:
        return
    sending = active.sending
    if sending.finished or sending.problem:
        return
    if ack.problem:
        if ack.retry and allows_migrations(state.standing.state):
            sending.resend_us = now + SOON_US
            _plan_timer(state)
        else:
            _report(state, active.migration, sending, ack.problem)
            state.timers.set(TRANSFER, now)  # a master that is the owner looks at its copies then
        return
    for number in [number for number in sending.in_flight if number <= ack.number]:
        del sending.in_flight[number]
    if ack.complete:
        _finish_copy(state, now, active, sending)
    else:
        _send_more(state, now, active, sending)


def on_transfer_timer(state: PartitionedMember, now: int) -> None:
    """Send again what was not acknowledged in time."""
    for active in state.partitions.active.values():
        sending = active.sending
        if sending is not None and not sending.finished and sending.resend_us <= now:
            sending.resend_us = now + RESEND_US
            for chunk in sending.in_flight.values():
                state.send(active.migration.destination.address, chunk, active.accepted)
    _plan_timer(state)


def _send_more(state: PartitionedMember, now: int, active: ActiveMigration, sending: OutgoingCopy) -> None:
    """Fill the window. The first chunk goes alone: it may be all that the destination needs."""
    settings, migration = state.settings, active.migration
    while not sending.ended and 0 not in sending.in_flight and len(sending.in_flight) < settings.transfer_window_chunks:
        size = settings.transfer_chunk_bytes
        payload = state.context.service.next_chunk(migration.partition, sending.cursor, size)
        sending.ended = payload is None
        chunk = messages.MigrationChunk(migration, sending.sent, "" if sending.ended else SERVICE, payload or b"")
        sending.in_flight[chunk.number] = chunk
        sending.sent += 1
        sending.bytes_sent += len(chunk.payload)
        state.send(migration.destination.address, chunk, active.accepted)
    sending.resend_us = now + RESEND_US
    _plan_timer(state)


def _finish_copy(state: PartitionedMember, now: int, active: ActiveMigration, sending: OutgoingCopy) -> None:
    sending.finished = True
    sending.in_flight.clear()
    migration = active.migration
    took_us = now - sending.begun_us
    sent = sending.sent, sending.bytes_sent
    state.record(now, events.MigrationCopied(migration.id, migration.partition, *sent, took_us))
    _report(state, migration, sending, "")


def _report(state: PartitionedMember, migration: PartitionMigration, sending: OutgoingCopy, problem: str) -> None:
    """Report to the master. One that is the owner itself looks at its own copies (chapter `migration_queue`)."""
    sending.problem = problem
    if problem:
        sending.in_flight.clear()
    if migration.master.uuid != state.uuid:
        state.send(migration.master.address, messages.MigrationReport(migration.id, problem))


def _sending_of(state: PartitionedMember, migration_id: str) -> ActiveMigration | None:
    for active in state.partitions.active.values():
        if active.migration.id == migration_id:
            return active
    return None


def _plan_timer(state: PartitionedMember) -> None:
    copies = (active.sending for active in state.partitions.active.values())
    due = [sending.resend_us for sending in copies if sending is not None and sending.in_flight]
    if due:
        state.timers.set(TRANSFER, min(due))
    else:
        state.timers.clear(TRANSFER)


# The destination


def on_chunk(state: PartitionedMember, now: int, sender: Address, chunk: messages.MigrationChunk) -> None:
    """Store a chunk that comes. Chunks are received in order; early ones wait, repeated ones are only acknowledged."""
    migration = chunk.migration
    active = state.partitions.active.get(migration.partition)
    if active is None or active.migration.id != migration.id:
        objection = _objection_of_destination(state, sender, chunk)
        if objection is not None:
            _reject(state, now, migration, "destination", objection)
            refusal = messages.MigrationChunkAck(migration.id, -1, False, False, objection.problem, objection.retry)
            state.send(sender, refusal)
            return
        active = _accept(state, now, migration, "destination")
    if active.received <= chunk.number < active.received + MOST_EARLY:
        active.early[chunk.number] = chunk
    last = chunk
    while active.received in active.early:
        last = active.early.pop(active.received)
        active.received += 1
        if active.complete:
            continue
        try:
            active.complete = state.context.service.receive(now, active.event, last.payload if last.service else None)
        except (msgspec.DecodeError, ValueError) as damage:
            problem = f"the copy is damaged: {damage}"
            state.send(sender, messages.MigrationChunkAck(migration.id, -1, False, False, problem), active.accepted)
            return
    # The answer is about the last chunk that was taken, which a repeated one may not be.
    enough = last.number == active.received - 1 and bool(last.service) and active.complete
    ack = messages.MigrationChunkAck(migration.id, active.received - 1, enough, active.complete)
    state.send(sender, ack, active.accepted)


# Both


def _objection(state: PartitionedMember, master: Address, migration: PartitionMigration) -> Objection | None:
    """Return why neither side may take part: another master or version, or a migration before that has not ended (2.1)."""
    table = state.partitions.table
    if state.members is None:
        return Objection("not-joined", "it has not joined yet", True)
    if master != state.master or not state.members.holds(master, migration.master.uuid):
        return Objection("other-master", f"{migration.master.address} is not its master", False)
    if not allows_migrations(state.standing.state):
        return Objection("state", f"the cluster is {state.standing.state}", True)  # the master may know better
    version = table.versions[migration.partition] if table is not None else -1
    if version > migration.version:
        return Objection("version", f"it is at version {version} of the partition, not {migration.version}", False)
    if migration.partition in state.partitions.active:
        why = "it does not know yet how its migration of the partition before this one has ended"
        return Objection("migration-before", why, True)
    if version < migration.version:
        why = f"it is at version {version} of the partition, not yet at {migration.version}"
        return Objection("version", why, True)
    return None


def _objection_of_owner(state: PartitionedMember, migration: PartitionMigration) -> Objection | None:
    table, destination = state.table, migration.destination
    if index_of(state.uuid, table.rows[migration.partition]) != 0:
        return Objection("not-owner", "it is not the owner of the partition", False)
    if not state.is_listed(destination.address, destination.uuid):
        return Objection("destination-not-listed", f"{destination.address} is not on its list", True)
    return None


def _objection_of_destination(
    state: PartitionedMember, sender: Address, chunk: messages.MigrationChunk
) -> Objection | None:
    migration = chunk.migration
    if migration.id in state.partitions.completed:
        return Objection("over", "the migration is over", False)
    if migration.destination.uuid != state.uuid:
        return Objection("other-incarnation", "the destination is another incarnation", False)
    objection = _objection(state, migration.master.address, migration)
    if objection is not None:
        return objection
    assert state.partitions.table is not None
    owner = state.partitions.table.owner(migration.partition)
    if owner is None or owner.address != sender:
        return Objection("not-owner", f"{sender} is not the owner of the partition", False)
    return Objection("beginning-missing", "the beginning of the copy has not come yet", True) if chunk.number else None


def _accept(state: PartitionedMember, now: int, migration: PartitionMigration, endpoint: Endpoint) -> ActiveMigration:
    table = state.table
    current = index_of(state.uuid, table.rows[migration.partition])
    new = index_of(state.uuid, migration.applied_to(table.rows[migration.partition]))
    event = MigrationEvent(migration.id, migration.partition, endpoint, current, new)
    active = ActiveMigration(migration, event)
    state.partitions.active[migration.partition] = active
    state.partitions.rejected.pop(migration.partition, None)
    state.record(now, events.MigrationAccepted(migration.id, migration.partition, endpoint, current, new))
    active.accepted = state.context.cause
    state.context.service.before(now, event)
    return active


def _reject(
    state: PartitionedMember, now: int, migration: PartitionMigration, endpoint: Endpoint, objection: Objection
) -> None:
    rejected = state.partitions.rejected
    if rejected.get(migration.partition) != migration.id:
        rejected[migration.partition] = migration.id
        why = objection.problem, objection.cause
        state.record(now, events.MigrationRejected(migration.id, migration.partition, endpoint, *why))
