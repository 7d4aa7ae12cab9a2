"""What a member says to commands and to calls of maps, its settings, and the messages of its event stream.

The contract is docs/reference/http-api.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.link_condition import KindCondition

ROOT = "/quarterdeck/v1"
"""Below it are all paths of the interface."""


class Done(Struct, frozen=True, tag_field="status", tag="success"):
    """The command was done, or has begun; events report how it ends."""

    message: str


class Fail(Struct, frozen=True, tag_field="status", tag="fail"):
    """The command was not done."""

    message: Annotated[str, Meta(examples=["addresses: is missing"])]
    hint: Annotated[str, Meta(examples=["write a list of host:port"])] = ""


class JoinList(Struct, frozen=True):
    """Where a member looks for its cluster, and for others."""

    addresses: Annotated[tuple[Address, ...], Meta(examples=[["127.0.0.1:5701", "127.0.0.1:5702"]])]


class AcceptedSecrets(Struct, frozen=True):
    """The secrets of the cluster by which a member knows others, as fingerprints."""

    used: Annotated[str, Meta(description="That with which it introduces itself.", examples=["3f2a90c41b7d"])]
    accepted: Annotated[tuple[str, ...], Meta(description="One, or two while the secret turns.")]


class StateIs(Struct, frozen=True):
    """The state of the cluster as a member holds it to be."""

    state: ClusterState


class PartitionHead(Struct, frozen=True):
    """The first line of an exported partition: its source, and the number of lines that follow."""

    partition: int
    partitions: Annotated[int, Meta(description="How many there are.")]
    owner: Address
    uuid: str
    utc_us: Annotated[int, Meta(description="The moment at which the entries were so, since 1970.")]
    entries: int


class ExportedEntry(Struct, frozen=True, omit_defaults=True):
    """One entry of a map, with its value as text or, if it is no UTF-8, in base64. Times are UTC since 1970."""

    map: str
    key: str
    version: int
    created_us: int
    updated_us: int
    accessed_us: int
    hits: int
    value: str | None = None
    value_base64: str | None = None


class Snapshot(Struct, frozen=True):
    """The whole state of a member, as MessagePack for programs of the same version."""

    label: str
    uuid: str
    version: Annotated[str, Meta(description="The version of the software, which has to be that of the reader.")]
    content: Annotated[bytes, Meta(description="A MemberReport, in base64.")]


class Properties(Struct, frozen=True):
    """Every property with its present value."""

    properties: dict[str, bool | int | float | str]
    fixed_at_start: Annotated[tuple[str, ...], Meta(description="Those that cannot be changed while the member runs.")]


class LinkCondition(Struct, frozen=True):
    """The condition of the one-way link from `source` to `target`."""

    source: str
    target: str
    blocked: Literal["", "blackhole", "reset"]
    delay: Annotated[int, Meta(description="Microseconds added to each message.")]
    loss: float
    duplicate: float
    dropped_kinds: tuple[str, ...]
    delay_up_to: Annotated[
        int, Meta(description="When greater than the delay: it is drawn from between for each message.")
    ]
    of_kinds: Annotated[tuple[KindCondition, ...], Meta(description="What happens besides to messages of one kind.")]


class Faults(Struct, frozen=True):
    """The link conditions that a member applies to the messages that it sends."""

    faults: tuple[LinkCondition, ...]


# Maps


class Entry(Struct, frozen=True):
    """A value of a map. One that is no UTF-8 text is given as base64."""

    key: str
    found: bool
    value: str | None = None
    value_base64: str | None = None


class EntriesStored(Struct, frozen=True):
    """How many entries were stored at once."""

    stored: int


class MapSize(Struct, frozen=True):
    """How many entries a map has."""

    size: int


class MapKeys(Struct, frozen=True):
    """All keys of a map, sorted."""

    keys: tuple[str, ...]


# Records


class RecordPage(Struct, frozen=True):
    """Records exactly as in journals, oldest first; `complete`: none before them is lost."""

    complete: bool
    records: tuple[Record, ...]


class Hello(Struct, frozen=True, tag_field="type", tag="hello"):
    """The first message of a stream: whose records these are."""

    label: str
    uuid: str
    run: str
    utc_origin_us: int
    """The UTC instant of zero on the member's clock."""


class Records(Struct, frozen=True, tag_field="type", tag="records"):
    """The next records of a stream, oldest first."""

    records: tuple[Record, ...]


class Gap(Struct, frozen=True, tag_field="type", tag="gap"):
    """These records of an incarnation are lost: the member no longer keeps them. No `to_seq`: all records from `from_seq` on."""

    uuid: str
    from_seq: int
    to_seq: int | None


StreamMessage = Hello | Records | Gap
