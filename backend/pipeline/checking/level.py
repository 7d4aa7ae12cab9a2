"""What a task does with a part of a level: it looks at states, with the snapshots that they need, and returns where they lead.

Rows of one form go in and out, with a column for what they hold. A worker keeps what it has learnt for later tasks.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.types import ArrayType, BinaryType, LongType, StringType, StructField, StructType

from quarterdeck.backend.pipeline.spark.arrow import MapInArrow, batches_of, rows_of
from quarterdeck.backend.simulation.model_checking.histories import BEGINNING
from quarterdeck.backend.simulation.model_checking.model import DOWN
from quarterdeck.backend.simulation.model_checking.share import Reached, ShareReport, ShareSettings, StateShare
from quarterdeck.backend.simulation.model_checking.spilling import CODE_BYTES

MEMBER, STATE, LEARNT, REPORT = "member", "state", "learnt", "report"
"""What a row holds. Members are sorted before the states that need them."""

ROWS = StructType(
    [
        StructField("holds", StringType()),
        StructField("number", LongType()),
        StructField("code", BinaryType()),
        StructField("way", BinaryType()),
        StructField("members", ArrayType(LongType())),
        StructField("payload", BinaryType()),
    ]
)
"""`number` is a member's; `code`, `way` and the numbers of the `members` are a state's; `payload` has the rest."""

Row = tuple[str, int | None, bytes | None, bytes | None, list[int] | None, bytes]

Learnt = tuple[dict[int, Any], dict[int, Any], dict[int, Any]]
"""Inputs, records and histories by number: so few that every task is given all of them."""


class LevelShare(StateShare):
    """Looks at states that it is given, and keeps where they lead instead of following."""

    def __init__(self, settings: ShareSettings) -> None:
        super().__init__(settings, 0)
        self.reached: dict[int, Reached] = {}

    def begin_task(self) -> None:
        """Forget what was reached and counted, but nothing that was learnt."""
        self.reached = {}
        self._report = ShareReport()
        self._recorded.clear()

    def look_at(self, code: int, reached: Reached, *, expands: bool) -> None:
        """Leave the state alone where it is one of those that are, and look one choice further if it `expands`."""
        if self.is_left_alone(code, reached):
            self._leave_alone(reached)
        if expands and self._report.broken is None:
            self._look_at(reached)

    def leave_alone(self, reached: Reached) -> None:
        """See whether the members become one cluster after this state."""
        self._leave_alone(reached)

    def first(self) -> None:
        """Reach the first state."""
        self._reach(Reached(self._initial, b"", BEGINNING))

    def _take(self, code: int, reached: Reached) -> None:
        known = self.reached.get(code)
        if known is None or reached.way < known.way:
            self.reached[code] = reached

    def adopt(self, learnt: Learnt) -> None:
        """Learn what others have learnt, but for members."""
        inputs, records, histories = learnt
        for number, given in inputs.items():
            self._inputs.adopt(number, given)
        for number, record in records.items():
            self._records.adopt(number, record)
        for number, history in histories.items():
            self._histories.adopt(number, history)

    def adopt_member(self, number: int, payload: bytes) -> None:
        if number not in self._incarnations.known:  # from an earlier task
            self._incarnations.adopt(number, *pickle.loads(payload))

    def learnt_beyond(self, given: Learnt) -> Learnt:
        """Return what is known here beyond what was given."""
        own: tuple[dict[int, Any], ...] = (self._inputs.known, self._records.known, self._histories.known)
        return tuple(  # type: ignore[return-value]
            {number: item for number, item in known.items() if number not in before}
            for known, before in zip(own, given, strict=True)
        )

    def member(self, number: int) -> bytes:
        """Return a member as others can adopt it."""
        return pickle.dumps((self._incarnations.known[number], self._incarnations.snapshot(number)), protocol=5)


_shares: dict[str, LevelShare] = {}
"""In a worker: that of the search under way."""


def _share_of(search: str, settings: ShareSettings) -> LevelShare:
    share = _shares.get(search)
    if share is None:
        for other in _shares.values():
            other.close()
        _shares.clear()
        share = _shares[search] = LevelShare(settings)
    return share


def looking(search: str, settings: ShareSettings, packed: bytes, work: str) -> MapInArrow:
    """Return what looks at the states of a task: `work` is to ``expand`` them, to ``leave`` those that are left alone, or all."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = rows_of(batches, "holds", "number", "code", "payload")
        return batches_of(look_at_rows(_share_of(search, settings), pickle.loads(packed), rows, work), ROWS)

    return look


def look_at_rows(
    share: LevelShare, given: Learnt, rows: Iterator[tuple[Any, ...]], work: str, *, begins: bool = True
) -> Iterator[Row]:
    """Do the `work` of a task: `rows` are members, and then the states that need them. Yield what comes of it."""
    decode: Callable[[bytes], Reached] = msgspec.msgpack.Decoder(Reached).decode
    if begins:
        share.begin_task()
        share.adopt(given)
    members: set[int] = set()
    for holds, number, code, payload in rows:
        if holds == MEMBER:
            members.add(number)
            share.adopt_member(number, payload)
        elif work == "leave all":
            share.leave_alone(decode(payload))
        else:
            share.look_at(int.from_bytes(code), decode(payload), expands=work == "expand")
    yield from _found_rows(share, given, members)


def _found_rows(share: LevelShare, given: Learnt, members: set[int]) -> Iterator[Row]:
    """Yield the states that were reached, the members in them that were not given, what else was learnt, and the counts."""
    encode = msgspec.msgpack.Encoder().encode
    needed: set[int] = set()
    for code, reached in share.reached.items():
        own = [number for number in reached.state.members if number != DOWN]
        needed.update(own)
        yield STATE, None, code.to_bytes(CODE_BYTES), reached.way, own, encode(reached)
    for number in needed - members:
        yield MEMBER, number, None, None, None, share.member(number)
    yield LEARNT, None, None, None, None, pickle.dumps(share.learnt_beyond(given), protocol=5)
    yield REPORT, None, None, None, None, pickle.dumps(share.report(), protocol=5)
