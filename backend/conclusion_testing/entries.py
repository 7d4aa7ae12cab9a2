"""Which entries clients were promised, which processes hold them, and when the last process that held one went.

An acknowledged write is a promise. A write without an acknowledgement may have been done or not, and may be done later. So a loss
is certain where a promised key is in no running process, and possible where an entry is gone that a client may have removed, or
whose latest value is gone while an older one is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from quarterdeck.backend.core.data.events import CallFinished, CallStarted, EntriesEvicted
from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US

OPEN_US = 30 * SECOND_US
"""A write that began so long before a later one was acknowledged is done no more."""

Key = tuple[str, str]
"""A map and a key of it."""
Holding = dict[Key, set[str]]
"""By key the values that running processes hold."""


class TrueLoss(Struct):
    """A key of which no running process holds the promised entry any more."""

    key: Key
    partition: int
    at_us: int
    certain: bool
    is_meant: bool
    """A merge policy replaced or discarded the entry, or an operator stopped the last member."""
    is_rewritten: bool = False
    """A client has written the key again."""

    @property
    def has_to_be_said(self) -> bool:
        """Return whether a cluster without any word of the loss would be said to have lost nothing wrongly."""
        return self.certain and not self.is_rewritten and not self.is_meant


class _OpenWrite(Struct):
    value: str | None
    """None for a remove."""
    began_us: int
    meanwhile: set[str | None] = field(default_factory=set)
    """The values of writes acknowledged since this one began: they may have been done after it."""


class _Promise(Struct):
    partition: int
    is_promised: bool = False
    values: set[str] = field(default_factory=set)
    """The values that the latest acknowledged write allows."""
    open: dict[tuple[str, int], _OpenWrite] = field(default_factory=dict)
    """By caller and call, the writes that may still be done."""
    was_held: bool = False
    was_current: bool = False
    loss: TrueLoss | None = None

    def allows(self, value: str) -> bool:
        """Return whether the latest acknowledged write, or one that is not acknowledged, may have left this value."""
        return value in self.values or any(write.value == value for write in self.open.values())


class EntryLedger:
    """The promises of a run, and the losses so far."""

    def __init__(self, partitions: int) -> None:
        self.losses: list[TrueLoss] = []
        self._partitions = partitions
        self._promises: dict[Key, _Promise] = {}

    def observe(self, record: Record) -> None:
        """Take in what a client asked for, and the answer."""
        match record.event:
            case CallStarted(operation="put" | "remove") as event:
                value = event.value if event.operation == "put" else None
                self._promise(event.map, event.key).open[record.uuid, event.call] = _OpenWrite(value, record.at)
            case CallFinished(operation="put" | "remove") as event:
                self._finish(record, event)
            case EntriesEvicted() as event:
                for key in event.keys:
                    promise = self._promise(event.map, key)
                    promise.is_promised = False
                    promise.open["evicted", record.seq] = _OpenWrite(None, record.at)

    def look(self, holding: Holding, now_us: int, *, is_meant: bool) -> None:
        """Compare what is held with the promises, and note what is lost."""
        for key, promise in self._promises.items():
            held = holding.get(key)
            is_current = held is not None and any(promise.allows(value) for value in held)
            if held is None:
                certain = promise.is_promised and not any(write.value is None for write in promise.open.values())
                if (certain or promise.was_held) and promise.loss is None:
                    self._lose(key, promise, now_us, certain=certain, is_meant=is_meant)
            elif promise.was_current and not is_current and promise.is_promised:
                self._lose(key, promise, now_us, certain=False, is_meant=is_meant)
            elif is_current and promise.loss is not None:
                if promise.loss.certain and promise.values.isdisjoint(held):
                    promise.loss.is_rewritten = True  # by a write that is not acknowledged yet
                else:
                    self.losses.remove(promise.loss)  # it was on its way, or came back
                promise.loss = None
            promise.was_held, promise.was_current = held is not None, is_current

    def promised(self) -> Iterator[tuple[Key, int]]:
        """Yield the keys that are promised and not being written, each with its partition."""
        for key, promise in self._promises.items():
            if promise.is_promised and promise.loss is None and not promise.open:
                yield key, promise.partition

    def _promise(self, map: str, key: str) -> _Promise:
        promise = self._promises.get((map, key))
        if promise is None:
            promise = self._promises[map, key] = _Promise(partition_of(map, key, self._partitions))
        return promise

    def _finish(self, record: Record, event: CallFinished) -> None:
        promise = self._promise(event.map, event.key)
        write = promise.open.get((record.uuid, event.call))
        if write is None:
            return
        if event.problem:
            if event.untouched:
                del promise.open[record.uuid, event.call]
            return
        del promise.open[record.uuid, event.call]
        for call in [call for call, other in promise.open.items() if other.began_us < write.began_us - OPEN_US]:
            del promise.open[call]
        for other in promise.open.values():
            other.meanwhile.add(write.value)
        if write.value is None:
            promise.is_promised = False
            promise.values = set()
            self._withdraw(promise)
        else:
            promise.is_promised = None not in write.meanwhile
            others = (other.value for other in promise.open.values())
            promise.values = {write.value, *filter(None, (*others, *write.meanwhile))}
            promise.was_current = False
            if promise.loss is not None:
                promise.loss.is_rewritten, promise.loss = True, None

    def _withdraw(self, promise: _Promise) -> None:
        """Forget a loss that was a remove under way."""
        if promise.loss is not None and not promise.loss.certain:
            self.losses.remove(promise.loss)
            promise.loss = None

    def _lose(self, key: Key, promise: _Promise, now_us: int, *, certain: bool, is_meant: bool) -> None:
        if promise.loss is not None:
            return
        promise.loss = TrueLoss(key, promise.partition, now_us, certain, is_meant)
        self.losses.append(promise.loss)


def held_entries(states: Iterable[MemberState]) -> Holding:
    """Return what these members hold: in their stores, in copies that arrive, and in what they bring along."""
    holding: Holding = {}
    for state in states:
        data = state.data
        stores = [*data.stores.values(), *(copy.store for copy in data.staged.values() if copy.store is not None)]
        stores += [copy.staging.store for copy in data.incoming.values() if copy.staging.store is not None]
        maps = [pair for store in stores for pair in store.maps.items()]
        if data.merge_entries is not None:
            maps += data.merge_entries.brought
            maps += [(batch.map, dict(batch.entries)) for batch in data.merge_entries.in_flight.values()]
        for name, entries in maps:
            for key, entry in entries.items():
                holding.setdefault((name, key), set()).add(entry.value.decode(errors="replace"))
    return holding
