"""The owner of a partition does what callers ask, each call once, and answers when that is safe (chapter `backups`)."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data import eviction, measuring
from quarterdeck.backend.core.data.call_results import READS
from quarterdeck.backend.core.data.eviction import Changed
from quarterdeck.backend.core.data.messages import MapAnswer, MapCall, MergeBatch, OwnerOperation
from quarterdeck.backend.core.data.partition_store import PartitionStore, StoredEntry, merged
from quarterdeck.backend.core.data.replication import backups, replica_sending
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.membership.cluster_state import why_not_operating
from quarterdeck.backend.core.operations import Answer, Get, Keys, Put, PutAll, Remove, Size

MOST_ANSWER_BYTES = 64 * 1024
"""When the answers of a call have grown so long, the rest of it is left for another call: every replica keeps the answers of the
last writing call of each caller."""

MOST_KEYS_BYTES = 8 * 1024 * 1024
"""The longest list of keys in one partition that is given out."""


def on_map_call(state: MemberState, now: int, sender: Address, call: MapCall) -> None:
    """Do the call, or only answer it again when it is done already. One that cannot be done here now is to be sent again."""
    owner_state = state.data.owner_states.get(call.partition)
    if owner_state is not None and owner_state.delivered.get(call.caller) == call.number:
        return  # it is done; the answer waits for the backups
    reason = _why_not(state, sender, call)
    if reason:
        backups.reply(state, now, sender, MapAnswer(call.caller, call.partition, call.number, (), reason))
        return
    store = state.data.stores[call.partition]
    last, answers = store.sessions.get(call.caller, (0, ()))
    if call.number < last:
        return  # an echo: the caller has its answer, or has given up
    if call.number > last:
        answers = _do(state, now, store, call)
    answer = MapAnswer(call.caller, call.partition, call.number, answers, "")
    backups.answer_when_safe(state, now, call.partition, sender, answer)


def _why_not(state: MemberState, sender: Address, call: MapCall) -> str:
    """Return why the call is not done here now; empty when it is."""
    if refusal := why_not_operating(state):
        return refusal
    peer = state.peers.get(sender)
    if call.caller != (peer.uuid if peer is not None else state.uuid if sender == state.address else None):
        return "the caller is not on the member list here"
    if call.owner not in ("", state.uuid):
        return "the call is for an earlier incarnation of this member"
    if call.partition not in state.data.owner_states or not owns(state, call.partition):
        return "the partition is not owned here"
    writes = not all(isinstance(operation, READS) for operation in call.operations)
    active = state.partitions.active.get(call.partition)
    if active is not None and (writes or active.migration.destination_new == 0):
        return "the partition is migrating"
    if writes and replica_sending.is_sending(state, call.partition):
        return "a backup of the partition is being brought in step"
    return ""


def owns(state: MemberState, partition: int) -> bool:
    """Return whether this member is the owner of the partition by its table."""
    table = state.partitions.table
    owner = None if table is None else table.owner(partition)
    return owner is not None and owner.uuid == state.uuid


def _do(state: MemberState, now: int, store: PartitionStore, call: MapCall) -> tuple[Answer, ...]:
    """Do the operations in order, as long as their answers fit into one message; a call that writes gets a stamp."""
    changed: Changed = {}
    answers: list[Answer] = []
    utc_us = state.member_configuration.utc_origin_us + now
    size = 0
    for operation in call.operations:
        refusal = eviction.why_refused(state, call.partition, operation) if isinstance(operation, Put | PutAll) else ""
        answer = Answer(problem=refusal, untouched=True) if refusal else _done(store, operation, utc_us, changed)
        if not refusal and isinstance(operation, Get | Put | PutAll | MergeBatch):
            eviction.after_use(state, now, call.partition, operation, changed)
        answers.append(answer)
        size += len(answer.value or b"") + sum(map(len, answer.keys))
        if size >= MOST_ANSWER_BYTES:
            break
    measuring.count_operations(state, now, call.partition, call.operations[: len(answers)])
    if any(not isinstance(operation, READS) for operation in call.operations[: len(answers)]):
        backups.write(state, now, call.partition, tuple(changed), call.caller, call.number, tuple(answers))
    return tuple(answers)


def _done(store: PartitionStore, operation: OwnerOperation, utc_us: int, changed: Changed) -> Answer:
    if isinstance(operation, Put):
        return _put(store, operation.map, operation.key, operation.value, utc_us, changed)
    if isinstance(operation, Get):
        return _get(store, operation.map, operation.key, utc_us)
    if isinstance(operation, Remove):
        before = store.find(operation.map, operation.key)
        if before is not None:
            store.remove(operation.map, operation.key)
            changed[operation.map, operation.key] = None
        return Answer(value=before.value if before is not None else None)
    if isinstance(operation, PutAll):
        for key, value in operation.entries:
            _put(store, operation.map, key, value, utc_us, changed)
        return Answer(size=len(operation.entries))
    if isinstance(operation, Size):
        return Answer(size=store.size(operation.map))
    if isinstance(operation, Keys):
        keys = tuple(store.maps.get(operation.map, ()))
        if sum(len(key) for key in keys) > MOST_KEYS_BYTES:
            return Answer(problem=f"{len(keys)} keys in one partition are too many to list", untouched=True)
        return Answer(keys=keys, size=len(keys))
    return _merge(store, operation, changed)


def _put(store: PartitionStore, map: str, key: str, value: bytes, utc_us: int, changed: Changed) -> Answer:
    before = store.find(map, key)
    if before is None:
        entry = StoredEntry(value, 1, utc_us, utc_us, utc_us, 0)
    else:
        entry = StoredEntry(value, before.version + 1, before.created_us, utc_us, utc_us, before.hits)
    store.put(map, key, entry)
    changed[map, key] = None
    return Answer(value=before.value if before is not None else None)


def _get(store: PartitionStore, map: str, key: str, utc_us: int) -> Answer:
    entry = store.find(map, key)
    if entry is None:
        return Answer()
    used = StoredEntry(entry.value, entry.version, entry.created_us, entry.updated_us, utc_us, entry.hits + 1)
    store.touch(map, key, used)
    return Answer(value=entry.value)


def _merge(store: PartitionStore, operation: MergeBatch, changed: Changed) -> Answer:
    taken = 0
    for key, incoming in operation.entries:
        entry = merged(operation.policy, store.find(operation.map, key), incoming)
        if entry is not None:
            store.put(operation.map, key, entry)
            changed[operation.map, key] = None
            taken += 1
    return Answer(size=taken)
