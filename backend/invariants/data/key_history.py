"""The operations on one key, judged piece by piece, as soon as nothing is under way in an undivided cluster.

An operation is known if it began and was answered in one stretch (`undivided_clusters`). Every other write is uncertain: it may
have been done once, at any later time, in any cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.invariants.data.linearization_search import (
    EMPTY,
    UNKNOWN,
    KnownOperation,
    RegisterState,
    SearchGivenUp,
    UncertainWrite,
    states_after,
    values_of,
)
from quarterdeck.backend.invariants.data.undivided_clusters import UndividedStretch


class Contradiction(Struct, frozen=True):
    """An answer that no order of the operations explains; the possible values of the key, and the last operation before."""

    record: Record
    held: list[str | None]
    before: Record | None


class KeyRegister(Struct, eq=False):
    """A key in one stretch."""

    stretch: UndividedStretch
    began: int
    states: frozenset[RegisterState]
    unseen: list[KnownOperation]
    """Acknowledged writes that nothing has looked at since."""
    under_way: int = 0
    piece: list[tuple[KnownOperation, Record]] = []
    """The answers since the key last had no operation under way."""
    latest: Record | None = None
    """The last operation that was judged."""
    is_forgotten: bool = False
    """Whether the stretch is over, so that nothing is certain of `unseen` any more."""


class OperationUnderWay(Struct, eq=False):
    """An operation that is not answered yet."""

    began: int
    writes: bool
    value: str | None
    register: KeyRegister | None
    """The register of the stretch in which the operation was requested, if it was requested in one."""
    is_uncertain: bool = False


class KeyHistory(Struct, eq=False):
    """The operations on one key. Times are those of `HolderLosses.clock`; earlier ones than `excused_at` may be lost."""

    operations: dict[tuple[str, int], OperationUnderWay] = {}
    """Those under way, by the incarnation that was asked and the number of its call."""
    uncertain: list[UncertainWrite] = []
    registers: list[KeyRegister] = []
    partition: int | None = None
    written_at: int = 0
    """When a write began last in any stretch."""
    written_in: set[UndividedStretch] = set()
    """The stretches in which writes began, as far as registers of earlier ones are kept."""
    acknowledged: int = 0
    judged: int = 0
    """The acknowledged writes that a later operation had to find, directly or by their replacements, and has found."""
    doubtful: dict[str | None, float] = {}
    """The values of other acknowledged writes, with the time of their answers."""
    found: int = 0
    """How many of those a later operation has found all the same."""
    given_up: int = 0

    def begin(
        self, record: Record, event: CallStarted, now: int, stretch: UndividedStretch | None, excused_at: float
    ) -> Contradiction | None:
        """Note an operation requested in `stretch`, and judge the operations that waited for all others to end."""
        contradiction = None
        register = None
        if stretch is not None and (not stretch.unserved or self._is_served(stretch)):
            register, contradiction = self._register(stretch, now, excused_at)
            if register.piece and not register.under_way:
                contradiction = contradiction or self._judge(register)
            register.under_way += 1
        writes = event.operation != "get"
        value = event.value if event.operation == "put" else None
        operation = self.operations[record.uuid, event.call] = OperationUnderWay(now, writes, value, register)
        if register is None:
            self._doubt(operation)
        elif writes:
            self.written_at = now
            self.written_in.add(register.stretch)
        return contradiction

    def finish(
        self, record: Record, event: CallFinished, now: int, stretch: UndividedStretch | None, excused_at: float
    ) -> Contradiction | None:
        """Note an answer that comes in `stretch`, and judge if nothing else is under way."""
        operation = self.operations.get((record.uuid, event.call))
        if operation is None:
            return None
        self.partition = event.partition
        if stretch is not None and stretch.unserved and not self._is_served(stretch):
            stretch = None
        del self.operations[record.uuid, event.call]
        found = event.value if event.found else None
        if self.doubtful and found is not None and self.doubtful.get(found, now) < operation.began:
            del self.doubtful[found]
            self.found += 1
        register = operation.register
        is_known = (
            register is not None
            and register.stretch is stretch
            and register.began > excused_at
            and operation.began > excused_at
        )
        if operation.writes and not event.problem:
            self.acknowledged += 1
            if not is_known:
                self.doubtful[operation.value] = now
        if register is None:
            return None
        register.under_way -= 1
        if is_known and not event.problem:
            known = KnownOperation(operation.began, now, found, operation.writes, operation.value)
            register.piece.append((known, record))
        elif not event.untouched:
            self._doubt(operation)
        return self._judge(register) if register.piece and not register.under_way else None

    def evict(self, now: int) -> None:
        """Note that the owner has removed the entry to make room, which goes with the owner if no backup knows of it."""
        self.uncertain.append(UncertainWrite(now, None))

    def _is_served(self, stretch: UndividedStretch) -> bool:
        return self.partition is not None and self.partition not in stretch.unserved

    def lose_caller(self, uuid: str) -> None:
        """Note that the requests to this member get no answer, since the member has ended."""
        for asked in [asked for asked in self.operations if asked[0] == uuid]:
            operation = self.operations.pop(asked)
            self._doubt(operation)
            if operation.register is not None:
                operation.register.under_way -= 1

    def _doubt(self, operation: OperationUnderWay) -> None:
        if operation.writes and not operation.is_uncertain:
            operation.is_uncertain = True
            self.uncertain.append(UncertainWrite(operation.began, operation.value))

    def _register(
        self, stretch: UndividedStretch, now: int, excused_at: float
    ) -> tuple[KeyRegister, Contradiction | None]:
        """Return the register of the stretch, and the result of judging earlier stretches when the register is new."""
        for register in self.registers:
            if register.stretch is stretch and register.began > excused_at:
                return register, None
        ended = [key for key in self.registers if key.stretch.is_over or key.stretch is stretch]
        carried, is_filled = self._carried(stretch, excused_at)
        register = KeyRegister(stretch, now, EMPTY if stretch.began == 0 and excused_at < 0 else UNKNOWN, [])
        for operation in self.operations.values():
            if operation.register in ended:
                self._doubt(operation)
        found = [self._judge(key) for key in ended if key.piece]
        if carried is not None:
            register.unseen, carried.unseen = self._still_unseen(carried), []
            if not (is_filled and self._may_be_empty(carried)):
                register.states, register.latest = carried.states, carried.latest
        for key in ended:
            if not key.is_forgotten:
                key.is_forgotten = True
                self._forget(key.unseen)
            # Another side of the division may still go on from what it was before.
            if key.began <= excused_at or stretch.is_whole:
                self.registers.remove(key)
        if stretch.is_whole:
            self.written_in.clear()
        self.registers.append(register)
        return register, next(filter(None, found), None)

    def _carried(self, stretch: UndividedStretch, excused_at: float) -> tuple[KeyRegister | None, bool]:
        """Return the register of a stretch before, if its value must still be there: nothing has written it since.

        And whether there may be something by now where nothing was.
        """
        registers = {register.stretch: register for register in self.registers if register.began > excused_at}
        for earlier in stretch.earlier(self.partition):
            before = earlier.stretch
            register = registers.get(before)
            if register is not None and before.is_over and (earlier.is_own or self.written_at <= before.over_at):
                return register, earlier.is_filled
            if before in self.written_in:
                break
        return None, False

    def _may_be_empty(self, register: KeyRegister) -> bool:
        """Return whether the key may have no value at the end, or may have none once the uncertain operations are done."""
        ends_empty = any(state.value is None for state in register.states)
        return ends_empty or any(write.value is None for write in self.uncertain)

    def _still_unseen(self, register: KeyRegister) -> list[KnownOperation]:
        """Return the writes of a register that nothing has looked at, not even in another cluster."""
        if not register.is_forgotten:
            return register.unseen
        doubtful, unseen = self.doubtful, register.unseen
        return [write for write in unseen if write.value is None or doubtful.pop(write.value, None) is not None]

    def _forget(self, writes: Iterable[KnownOperation]) -> None:
        """Note that nothing is certain any more of these acknowledged writes."""
        self.doubtful.update((write.value, write.ended) for write in writes)

    def _judge(self, register: KeyRegister) -> Contradiction | None:
        """Judge the answers of a register, of which there are some, and after which no other operation is under way."""
        piece, register.piece = register.piece, []
        before, register.states = register.states, UNKNOWN
        latest, register.latest = register.latest, piece[-1][1]
        unseen, register.unseen = register.unseen, []
        written = [known for known, _ in piece if known.writes]
        try:
            states = states_after([known for known, _ in piece], self.uncertain, before)
        except SearchGivenUp:
            self.given_up += 1
            self._forget((*unseen, *written))
            return None
        if not states:
            return next(self._contradictions(piece, before, latest), None)
        # After a division a merge may put in what is not there at any time.
        is_filled = register.stretch.began > 0 and any(state.value is None for state in states)
        register.states = UNKNOWN if is_filled else states
        if self.uncertain and {state.done for state in states}.isdisjoint(state.done for state in before):
            # What was found in the end may have been written before and after them.
            found = {known.found for known, _ in piece}
            self._forget(write for write in unseen if write.value is None or write.value not in found)
            unseen = [write for write in unseen if write.value is not None and write.value in found]
        if unseen := unseen + written:
            looked_at = max([known.began for known, _ in piece])
            register.unseen = [write for write in unseen if write.ended > looked_at]
            self.judged += len(unseen) - len(register.unseen)
        return None

    def _contradictions(
        self, piece: list[tuple[KnownOperation, Record]], before: frozenset[RegisterState], latest: Record | None
    ) -> Iterator[Contradiction]:
        """Yield the first answer without an explanation while the later answers are not known yet."""
        states = before
        for count in range(1, len(piece) + 1):
            later = [UncertainWrite(known.began, known.value) for known, _ in piece[count:] if known.writes]
            after = states_after([known for known, _ in piece[:count]], [*self.uncertain, *later], before)
            if not after:
                yield Contradiction(
                    piece[count - 1][1], values_of(states), piece[count - 2][1] if count > 1 else latest
                )
            states = after
