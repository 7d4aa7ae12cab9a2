"""What members say to one another about the data in partitions (behaviour 8.12). Part of the union in `backend.core.messages`."""

from __future__ import annotations

from msgspec import Struct

from backend.core.data.operations import Answer, Operation


class MapCall(Struct, frozen=True, tag="map-call", array_like=True):
    """A member asks the owner of a partition for operations on it, in order; again and again until it is answered.

    `number` counts the calls of the life `caller` to this partition, one at a time, so that none is ever done twice.
    """

    caller: str
    partition: int
    number: int
    operations: tuple[Operation, ...]


class MapAnswer(Struct, frozen=True, tag="map-answer", array_like=True):
    """Done, and safe in every backup: an answer for each operation. With a `retry`: nothing is done here, ask again."""

    partition: int
    number: int
    answers: tuple[Answer, ...]
    retry: str


DataMessage = MapCall | MapAnswer
