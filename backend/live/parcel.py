"""A message on its way: its frame, and which of the two lanes of a connection it takes."""

from __future__ import annotations

from typing import NamedTuple, get_args

from quarterdeck.backend.core.data.messages import DataMessage
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.partitions.messages import PartitionMessage
from quarterdeck.backend.live.connection import Connection
from quarterdeck.backend.live.frames import frame_of

BULK = frozenset((*get_args(PartitionMessage), *get_args(DataMessage)))
"""What is said about tables and data. It may be long, and stays in order among itself; everything else goes ahead of it."""


class Parcel(NamedTuple):
    frame: bytes
    is_bulk: bool

    def hand_to(self, connection: Connection) -> None:
        if self.is_bulk:
            connection.send_bulk(self.frame)
        else:
            connection.send(self.frame)


NOTHING = Parcel(b"", is_bulk=False)


def parcel_of(message: Message) -> Parcel:
    """Raises `FrameTooLarge`."""
    return Parcel(frame_of(message), type(message) in BULK)
