"""Writes that were acknowledged are read back, as long as no more members were lost at once than there are backups.

Each key is a register. A read may find what a write put there unless another write that was acknowledged, or read, before the
read began has certainly replaced it since. Whether a write that ended with a problem was done is open, until it is read.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from math import inf

from msgspec import Struct, field

from quarterdeck.backend.core.data.events import CallFinished, CallStarted, EntriesEvicted
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.invariants.data.holder_losses import HolderLosses
from quarterdeck.backend.invariants.invariant import Invariant, Violation

Key = tuple[str, str]
"""A map and a key of it."""


class Write(Struct, eq=False):
    """A put or a remove. Times count calls: a write that began at 3 was asked for before one that began at 5."""

    value: str | None
    """The written value; None for a remove, and for the beginning, when the key had no value."""
    record: Record | None
    began: float = -inf
    done: float = inf
    """When it was certainly done; `inf` while that is not known."""
    ended: float = inf
    """When its call ended. Until then it is asked again where its owner is lost, and so may be done again; where its outcome is
    unknown, what was asked may also arrive later."""
    never: bool = False
    """Whether the write ended with a problem and was certainly not done."""
    evicted: bool = False
    """Whether the owner evicted the entry to make room. The owner's loss may undo it, so it replaces nothing for certain."""
    survived: bool = False
    """Whether a read found the write again after the write could have been lost."""


class OpenCall(Struct, eq=False):
    """A call that is under way."""

    key: Key
    began: int
    write: Write | None


class Register(Struct, eq=False):
    """The history of one key. Calls come in the order of the run; `now` counts the calls."""

    writes: list[Write] = field(default_factory=lambda: [Write(None, None, -inf, -inf)])
    """In the order in which they began."""
    by_value: dict[str | None, list[Write]] = {}
    problem: str = ""
    """How the latest read ended, if it could not be done."""

    def __post_init__(self) -> None:
        self.by_value = {None: list(self.writes)}

    def begin(self, record: Record, event: CallStarted, now: int) -> Write:
        write = Write(event.value if event.operation == "put" else None, record, now)
        self.writes.append(write)
        self.by_value.setdefault(write.value, []).append(write)
        return write

    def evict(self, record: Record, now: int) -> None:
        """Note that the owner has removed the entry to make room: the key may have no value now."""
        write = Write(None, record, now, now, now, evicted=True)
        self.writes.append(write)
        self.by_value[None].append(write)

    def finish(self, record: Record, event: CallFinished, call: OpenCall, now: int, lost_at: float) -> Violation | None:
        """End a call and judge its answer. Writes until `lost_at` may be lost."""
        if event.operation == "get":
            self.problem = event.problem
        write = call.write
        if write is not None:
            write.ended = now
        if event.problem:
            if write is not None:
                write.never = event.untouched
            return None
        found = self._judge(record, event, call, now, lost_at)
        if write is not None and now < write.done:
            write.done = now
        return found

    def _judge(self, record: Record, event: CallFinished, call: OpenCall, now: int, lost_at: float) -> Violation | None:
        """Judge the answer of a call, which says for every operation the value before it."""
        value = event.value if event.found else None
        # Done on one side of a split, its answer lost, a write may come back with that side's data while it is tried on.
        done_before = call.began <= lost_at
        refused: list[Record | None] = []
        later: Write | None = None
        for write in self.by_value.get(value, ()):
            if write is call.write and not done_before:
                continue
            if write.never:
                refused.append(write.record)
                continue
            later = self._certainly_replaced(write, call, lost_at)
            if later is None:
                if event.found and now < write.done:
                    write.done = now
                return None
        what = f"{event.key} of {event.map} = {value!r}" if event.found else f"no {event.key} of {event.map}"
        if later is None:
            text = f"{record.member} found {what}, which {'was refused' if refused else 'no client wrote'}"
            return Violation(NoLostWrite.name, text, (*filter(None, refused), record))
        assert later.record is not None
        done = f"the put of {later.value!r}" if later.value is not None else "a remove"
        text = f"{record.member} found {what} after {done} was acknowledged"
        return Violation(NoLostWrite.name, text, (later.record, record))

    def count_survivor(self, event: CallFinished, call: OpenCall, at_risk: int, lost_at: float) -> None:
        """Mark the write that the call has found, if it was done when it could have been lost (`at_risk`) and had to survive."""
        value = event.value if event.found else None
        for write in reversed(self.by_value.get(value, ())):
            if write is not call.write:
                if write.began > lost_at and write.done < at_risk:
                    write.survived = True
                return

    def _certainly_replaced(self, write: Write, call: OpenCall, lost_at: float) -> Write | None:
        """Return a write that began after `write` was done, was done when `call` began, and cannot have been lost."""
        asked_again = write.began < lost_at < write.ended
        done = max(write.done, write.ended) if asked_again else write.done
        since = done if done > lost_at else lost_at
        for later in reversed(self.writes):
            if later.began <= since:
                break
            if later.done < call.began and not later.evicted:
                return later
        return None


@dataclasses.dataclass(eq=False)
class NoLostWrite(Invariant):
    """A write that was acknowledged is read back, as long as no more members were lost at once than there are backups.

    Nothing is said about what was written before the members were divided or before all were one cluster again, nor before
    a partition lost as many holders as it had replicas since all data was safe last.
    """

    name = "no lost write"

    _losses: HolderLosses
    _registers: dict[Key, Register] = dataclasses.field(default_factory=lambda: defaultdict(Register))
    _calls: dict[tuple[str, int, Key], OpenCall] = dataclasses.field(default_factory=dict)
    """The calls under way, by incarnation, number and requested operation."""

    def written(self) -> list[Key]:
        """List every map and key that a client wanted to write, in the order of their first use."""
        return [key for key, register in self._registers.items() if len(register.writes) > 1]

    def reads_under_way(self, uuid: str) -> int:
        return sum(call.write is None for (caller, _, _), call in self._calls.items() if caller == uuid)

    def unreadable(self) -> Iterator[str]:
        """Yield the written keys whose latest read ended with a problem, each with that problem."""
        for name, key in self.written():
            if problem := self._registers[name, key].problem:
                yield f"{key} of {name}: {problem}"

    def excused(self) -> list[tuple[int, int]]:
        """Return the partitions that lost as many holders as they had replicas, each with how often that happened."""
        return [(partition, len(times)) for partition, times in self._losses.excused.items()]

    def why_uncertain(self) -> str:
        """Why not everything can be judged; empty when all can."""
        if self._tables.divided:
            return self._tables.divided
        if excused := self._losses.excused:
            return f"partition {min(excused)} lost all its holders before its data was safe again"
        return ""

    def survived(self) -> int:
        """How many writes could have been lost, as a holder of their partition went or the partition moved, and were found."""
        return sum(write.survived for register in self._registers.values() for write in register.writes)

    def _lose(self, record: Record, event: PartitionLost) -> Violation | None:
        if event.lost_backups < ALL_LOST or self._tables.division:
            return None
        lost, replicas = self._losses.lost[event.partition], self._losses.replicas.get(event.partition, 1)
        if len(lost) >= replicas:
            return None
        text = f"partition {event.partition} had {replicas} replicas, lost {len(lost)} of them, and is lost"
        return self.violated(text, record)

    def _begin(self, record: Record, event: CallStarted) -> None:
        key, now = (event.map, event.key), self._losses.clock
        write = None if event.operation == "get" else self._registers[key].begin(record, event, now)
        self._calls[record.uuid, event.call, key] = OpenCall(key, now, write)

    def _evict(self, record: Record, event: EntriesEvicted) -> None:
        for key in event.keys:
            if (register := self._registers.get((event.map, key))) is not None:
                register.evict(record, self._losses.clock)

    def _finish(self, record: Record, event: CallFinished) -> Violation | None:
        call = self._calls.pop((record.uuid, event.call, (event.map, event.key)), None)
        if call is None:
            return None
        lost_at = inf if self._tables.division else self._losses.lost_at(event.partition)
        register = self._registers[call.key]
        found = register.finish(record, event, call, self._losses.clock, lost_at)
        at_risk = self._losses.at_risk.get(event.partition, 0)
        if at_risk and found is None and not event.problem and at_risk < call.began:
            register.count_survivor(event, call, at_risk, lost_at)
        return found
