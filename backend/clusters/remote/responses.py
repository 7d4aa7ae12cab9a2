"""What members say over HTTP and WebSocket, as far as a remote cluster reads it. Fields that it does not know it lets pass."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.text.formatting import one_line


class ListedMember(Struct, frozen=True):
    """A line of a member list."""

    address: Address
    uuid: str
    lite: bool = False
    zone: str = ""
    join_version: int = 0


class MemberFacts(Struct, frozen=True):
    """What a member says of itself (GET /member)."""

    label: str
    address: Address
    uuid: str
    run: str
    cluster_name: str
    utc_us: int
    """Its clock at this moment, microseconds since 1970."""
    now_us: int
    """The same moment on the clock that its records carry."""
    started_utc: datetime | None = None
    """When its process began."""
    node_state: str = ""
    version: str = ""
    cluster_state: str = ""
    master: Address | None = None
    is_master: bool = False
    list_version: int = 0
    lineage: str = ""
    members: tuple[ListedMember, ...] = ()
    join_list: tuple[Address, ...] = ()
    remembered: tuple[Address, ...] = ()
    table_version: int = 0
    table_digest: str = ""
    allow_faults: bool = False
    read_only: bool = False


class RecordsAnswer(Struct, frozen=True):
    """Records oldest first (GET /records), and whether none of those asked for is lost."""

    complete: bool
    records: tuple[Record, ...]


class Entry(Struct, frozen=True):
    """A key of a map and what is there; what is no text is told in base64."""

    key: str
    value: str | None = None
    value_base64: str | None = None


class MapSize(Struct, frozen=True):
    size: int


class MapKeys(Struct, frozen=True):
    keys: tuple[str, ...]


class ErrorBody(Struct, frozen=True):
    """The body of every answer that is none."""

    message: str = ""
    hint: str = ""

    @property
    def text(self) -> str:
        """Safe to show: it may be anybody who answers."""
        return one_line("; ".join(filter(None, (self.message, self.hint))))


class StreamHello(Struct, frozen=True, tag_field="type", tag="hello"):
    """The first message of an event stream."""

    label: str
    uuid: str
    run: str


class Records(Struct, frozen=True, tag_field="type", tag="records"):
    records: tuple[Record, ...]


class Gap(Struct, frozen=True, tag_field="type", tag="gap"):
    """Records that this stream has left out, or that the member does not have any more."""

    uuid: str = ""
    from_seq: int = 0
    to_seq: int | None = None


StreamMessage = StreamHello | Records | Gap

FACTS: msgspec.json.Decoder[MemberFacts] = msgspec.json.Decoder(MemberFacts)
RECORDS: msgspec.json.Decoder[RecordsAnswer] = msgspec.json.Decoder(RecordsAnswer)
ENTRY: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)
MAP_SIZE: msgspec.json.Decoder[MapSize] = msgspec.json.Decoder(MapSize)
MAP_KEYS: msgspec.json.Decoder[MapKeys] = msgspec.json.Decoder(MapKeys)
ERROR_BODY: msgspec.json.Decoder[ErrorBody] = msgspec.json.Decoder(ErrorBody)
STREAM_MESSAGE: msgspec.json.Decoder[StreamMessage] = msgspec.json.Decoder(StreamMessage)
