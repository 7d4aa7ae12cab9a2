"""What following a member brings to light: what it told, and what became of the connection to it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.messages import Answer, Message

ConnectionState = Literal["connected", "merging", "silent", "refused", "gone"]
"""How it stands with a member, seen from here.

connected
    It has accepted us and answers.
merging
    It answers that it is not ready yet: it is starting, or merges into another cluster and comes back as a new incarnation.
silent
    Nothing has been heard of it for a while, though nothing says that it is gone: frozen, or cut off.
refused
    Somebody is there and turns us away: another cluster name, credentials, TLS, or no member at all. The reason says which.
gone
    Nobody is there: the connection was closed, or refused by the host.
"""

Topic = Literal["cluster-state", "metrics", "config", "properties", "migrations", "losses"]
"""What the member may refuse to tell while it tells the rest."""


class Heard(Struct, frozen=True):
    """A member told something, asked or unasked."""

    at_us: int
    address: Address
    """How the member names itself."""
    member_uuid: str
    """The incarnation that spoke."""
    message: Message


class ConnectionTold(Struct, frozen=True):
    """How it stands with a member has changed."""

    at_us: int
    address: Address
    state: ConnectionState
    reason: str
    """A sentence for people: why it is refused or gone, since when silent. Empty when connected."""
    since_us: int
    """When it began, which is before `at_us` for a silence."""


class NotTold(Struct, frozen=True):
    """A member refuses to answer questions of one kind, while it tells the rest."""

    at_us: int
    address: Address
    topic: Topic
    reason: str


class RequestAnswered(Struct, frozen=True):
    """The answer to what somebody had `Followers.ask` a member. `None`: the connection ended before it came."""

    at_us: int
    address: Address
    ticket: int
    answer: Answer | None


class Renamed(Struct, frozen=True):
    """The address that was dialled leads to a member that names itself otherwise. From now on its own name is used."""

    at_us: int
    dialled: Address
    address: Address


class NotFollowed(Struct, frozen=True):
    """An address was found but is not followed, since as many are followed as are allowed."""

    at_us: int
    address: Address
    limit: int


Observation = Heard | ConnectionTold | NotTold | RequestAnswered | Renamed | NotFollowed
