"""Publishing the partition table and the completed migrations.

See Avoid Data Loss on Migration, 1.1 and 2.1; Hazelcast: table distribution.

Only the master changes the table. Its changes are numbered; a publication brings what is new since the one before, so what
is sent grows only with what has changed. A receiver acknowledges the number up to which it has everything. If a publication gets
lost, the next one does not follow on that number, and the master sends all that came after it again. Now and then tables are
compared by their digests, and members whose table differs get the whole table. A completed migration is forgotten when every
member knows of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import takewhile

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.partitions.events import CompletedEvicted, TableCause
from quarterdeck.backend.core.partitions.messages import TableAck, TableUpdate
from quarterdeck.backend.core.partitions.migration.migration import CompletedMigration
from quarterdeck.backend.core.partitions.state import MasterRole, PartitionedMember, TableFollower
from quarterdeck.backend.core.partitions.table.learning import learn
from quarterdeck.backend.core.partitions.table.partition_table import VersionedRow, empty_table, packed, unpacked
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US

TABLE = "partition table"
"""Name of the timer of everything that the master has to send again, or later."""

RESEND_US = 1 * SECOND_US
NEWCOMER_RESEND_US = 100 * MILLISECOND_US
"""A newcomer may get its first table before it knows that it has joined, and cannot use it yet."""
MOST_DOUBLINGS = 8
"""Each time that it sends the same again, the master waits twice as long for an answer, so many times."""
FLUSH_US = 50 * MILLISECOND_US
"""How long members wait for a change in which they have no part."""
FLUSH_CHANGES = 10
"""So many changes are sent at once, however little time has passed."""
MOST_EARLY = 64
"""So many publications that do not follow on what a member has are kept until they do; the rest is sent again anyway."""

Made = dict[int, TableUpdate]
"""The publications of one moment, by the number of the change after which they begin."""


# The master


def change(
    state: PartitionedMember,
    now: int,
    rows: Iterable[VersionedRow],
    decided: Iterable[CompletedMigration],
    cause: TableCause,
) -> None:
    """Change the master's table and its completed migrations list."""
    master_role = state.master_role
    rows, decided = tuple(rows), tuple(decided)
    master_role.changes += 1
    for row in rows:
        master_role.changed_at.pop(row.partition, None)
        master_role.changed_at[row.partition] = master_role.changes
    for migration in decided:
        master_role.decided_at[migration.migration.id] = master_role.changes
    learn(state, now, rows, decided, author=state.uuid, cause=cause)
    master_role.changed = state.context.cause


def publish(state: PartitionedMember, now: int) -> None:
    """Send each member the changes that it lacks."""
    master_role = state.master_role
    master_role.flush_us = 0
    made: Made = {}
    for address, follower in master_role.followers.items():
        if follower.sent < master_role.changes:
            _send(state, now, address, follower, follower.sent, made)
    plan_timer(state, now)


def publish_to(state: PartitionedMember, now: int, first: Iterable[str]) -> None:
    """Send the changes to the incarnations `first` at once, and to all others soon: those have no part in them."""
    master_role = state.master_role
    urgent = set(first)
    made: Made = {}
    for address, follower in master_role.followers.items():
        if follower.uuid in urgent and follower.sent < master_role.changes:
            _send(state, now, address, follower, follower.sent, made)
    waiting = [other for other in master_role.followers.values() if other.sent < master_role.changes]
    if any(master_role.changes - other.sent >= FLUSH_CHANGES for other in waiting):
        publish(state, now)
    elif waiting and not master_role.flush_us:
        master_role.flush_us = now + FLUSH_US
        plan_timer(state, now)


def on_ack(state: PartitionedMember, now: int, sender: Address, ack: TableAck) -> None:
    """Note that a follower has received a publication, or misses one."""
    master_role = state.partitions.master_role
    follower = master_role.followers.get(sender) if master_role is not None else None
    if master_role is None or follower is None or follower.uuid != ack.uuid or ack.number > master_role.changes:
        return
    is_news = ack.number > follower.acknowledged
    # A member that commits may know the end of its own migration before this master does.
    running = master_role.running.values()
    commits = any(run.phase == "committing" and run.migration.destination.uuid == ack.uuid for run in running)
    if is_news:
        follower.unanswered = 0
    if not ack.equal and ack.number == master_role.changes and not commits:
        follower.acknowledged = -1
        follower.sent, follower.resend_us = master_role.changes, now + RESEND_US
        plan_timer(state, now)
    elif is_news:
        follower.acknowledged = ack.number
        _forget_what_all_know(state, now, master_role)
    elif ack.number == follower.acknowledged < follower.sent and follower.resent_us + RESEND_US <= now:
        follower.unanswered, follower.resend_us = 0, now
        plan_timer(state, now)


def on_table_timer(state: PartitionedMember, now: int) -> None:
    """Send again what is not acknowledged, send what could wait, and compare tables when it is time."""
    master_role = state.partitions.master_role
    if master_role is None or state.partitions.table is None or master_role.recovery is not None:
        return
    if master_role.flush_us and master_role.flush_us <= now:
        publish(state, now)
    compares = master_role.next_comparison_us <= now
    if compares:
        master_role.next_comparison_us = now + state.settings.table_send_interval_us
        _forget_what_all_know(state, now, master_role)  # a member that had not acknowledged may have left
    made: Made = {}
    for address, follower in master_role.followers.items():
        waits, resend_us = follower.acknowledged < follower.sent, follower.resend_us
        if waits and resend_us <= now:
            _send_again(state, now, address, follower, made)
        elif compares:
            _send(state, now, address, follower, follower.sent, made)
            if waits:
                follower.resend_us = resend_us  # a comparison puts off nothing, however often there is one
    plan_timer(state, now)


def follow_list(state: PartitionedMember, master_role: MasterRole) -> None:
    """Publish to exactly the members on the list; a new one needs the whole table."""
    before = master_role.followers
    master_role.followers = {}
    for address, peer in state.peers.items():
        follower = before.get(address)
        if follower is None or follower.uuid != peer.uuid:
            follower = TableFollower(peer.uuid)
            master_role.newcomers = True
        master_role.followers[address] = follower


def plan_timer(state: PartitionedMember, now: int) -> None:
    """Set the timer to what comes first."""
    master_role = state.partitions.master_role
    if master_role is None or state.partitions.table is None or master_role.recovery is not None:
        state.timers.clear(TABLE)
        return
    if not master_role.next_comparison_us:
        master_role.next_comparison_us = now + state.settings.table_send_interval_us
    due = [master_role.next_comparison_us]
    if master_role.flush_us:
        due.append(master_role.flush_us)
    due += [follower.resend_us for follower in master_role.followers.values() if follower.acknowledged < follower.sent]
    state.timers.set(TABLE, max(now, min(due)))


def _send(
    state: PartitionedMember, now: int, address: Address, follower: TableFollower, since: int, made: Made
) -> None:
    """Send what is new since the change `since`, and wait for an acknowledgement."""
    master_role = state.master_role
    if since not in made:
        made[since] = _update(state, since)
    follower.sent = master_role.changes
    if not follower.unanswered:
        follower.resend_us = now + (RESEND_US if since >= 0 else NEWCOMER_RESEND_US)
    state.send(address, made[since], master_role.changed)


def _send_again(state: PartitionedMember, now: int, address: Address, follower: TableFollower, made: Made) -> None:
    """Send all that the follower is not known to have, and wait twice as long as the last time."""
    _send(state, now, address, follower, follower.acknowledged, made)
    follower.resent_us = now
    follower.unanswered = min(follower.unanswered + 1, MOST_DOUBLINGS)
    first_us = RESEND_US if follower.acknowledged >= 0 else NEWCOMER_RESEND_US
    follower.resend_us = now + (first_us << follower.unanswered)


def _update(state: PartitionedMember, since: int) -> TableUpdate:
    """Return what came after the change of number `since`; -1 for the whole table and all completed migrations."""
    table, master_role = state.table, state.master_role
    if since < 0:
        rows = packed(table.all_rows())
    else:
        latest_first = reversed(master_role.changed_at.items())
        rows = packed(table.row(partition) for partition, _ in takewhile(lambda one: one[1] > since, latest_first))
    latest_decided = takewhile(lambda one: one[1] > since, reversed(master_role.decided_at.items()))
    completed = tuple((number, state.partitions.completed[one]) for one, number in latest_decided)[::-1]
    return TableUpdate(
        state.uuid, since, master_role.changes, rows, completed, master_role.evicted_through, table.digest, len(table)
    )


def _forget_what_all_know(state: PartitionedMember, now: int, master_role: MasterRole) -> None:
    """Evict completed migrations when every member has acknowledged a publication that lists them (2.1)."""
    known = min((follower.acknowledged for follower in master_role.followers.values()), default=master_role.changes)
    for partition in [one for one, number in takewhile(lambda one: one[1] <= known, master_role.changed_at.items())]:
        del master_role.changed_at[partition]
    evicted = tuple(takewhile(lambda one: master_role.decided_at[one] <= known, master_role.decided_at))
    if evicted:
        master_role.evicted_through = known
        for migration_id in evicted:
            del master_role.decided_at[migration_id]
            state.partitions.completed.pop(migration_id, None)
            state.partitions.unlisted.discard(migration_id)
        state.record(now, CompletedEvicted(evicted))


# All others


def on_table_update(state: PartitionedMember, now: int, sender: Address, update: TableUpdate) -> None:
    """Learn what the master publishes. What does not follow on what this member has waits until it does."""
    partitions = state.partitions
    master = state.peers.get(sender)
    if sender != state.master or master is None or master.uuid != update.master:
        return
    if partitions.heard[0] != update.master:
        partitions.heard = (update.master, -1)
        partitions.early.clear()
    heard_number = partitions.heard[1]
    if update.number < heard_number:
        return  # overtaken by a later one
    if update.since <= heard_number:
        update = _learn_in_order(state, now, update)
    elif partitions.table is None:
        return  # it has overtaken the first one, which has the whole table
    elif len(partitions.early) < MOST_EARLY:
        partitions.early[update.since] = update
    assert partitions.table is not None
    state.send(sender, TableAck(state.uuid, partitions.heard[1], partitions.table.digest == update.digest))


def _learn_in_order(state: PartitionedMember, now: int, update: TableUpdate) -> TableUpdate:
    """Learn what is new, and what came early and follows on it. Return the last publication that was learned.

    Rows and decisions are never learned out of order: a row without the decisions before it would say nothing about them.
    """
    partitions = state.partitions
    if partitions.table is None:
        partitions.table = empty_table(update.partitions, state.settings.backups + 1)
        partitions.wants_arrangement = False
    following: TableUpdate | None = update
    while following is not None:
        update = following
        partitions.heard = (update.master, update.number)
        decided = [one for _, one in update.completed]
        learn(state, now, unpacked(update.rows), decided, author=update.master, cause="published")
        _keep_listed(state, update)
        following = partitions.early.pop(update.number, None)
    for since in [since for since in partitions.early if since < update.number]:
        del partitions.early[since]
    return update


def _keep_listed(state: PartitionedMember, update: TableUpdate) -> None:
    """Forget the completed migrations that the master has forgotten; one that it never listed waits until it does."""
    partitions = state.partitions
    news = OrderedDict((one.migration.id, number) for number, one in update.completed)
    partitions.unlisted -= news.keys()
    if update.since < 0:
        partitions.listed = news
    else:
        partitions.listed |= news
        for name in list(takewhile(lambda one: partitions.listed[one] <= update.evicted_through, partitions.listed)):
            del partitions.listed[name]
            partitions.completed.pop(name, None)
    if len(partitions.completed) > len(partitions.listed) + len(partitions.unlisted):
        kept = partitions.listed.keys() | partitions.unlisted
        partitions.completed = {name: one for name, one in partitions.completed.items() if name in kept}
