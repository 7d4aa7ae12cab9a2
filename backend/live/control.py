"""What a cluster and a member in a process of its own say to one another over the pipes between them: one JSON line each."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import KillAt
from quarterdeck.backend.core.data.operations import Answer, Operation
from quarterdeck.backend.core.events import LinkChanged, Record
from quarterdeck.backend.core.member import Birth
from quarterdeck.backend.live.clock import RunClock
from quarterdeck.backend.live.host import MemberCommand
from quarterdeck.backend.live.transport import Patience

LONGEST_LINE_BYTES = 64 * 1024 * 1024
"""Room for an event with any list that a frame among members has room for."""


class Begin(Struct, frozen=True, tag=True):
    """The first line to a new process: the life to lead. `links` are the conditions that hold already."""

    birth: Birth
    clock: RunClock
    addresses: dict[str, Address]
    """Of all members, by label."""
    links: tuple[LinkChanged, ...]
    seed: str
    """Of everything that this life leaves to chance."""
    patience: Patience
    dies_at: KillAt | None = None
    """Where this life is to end."""


class Do(Struct, frozen=True, tag=True):
    """Carry out `command`, and answer with `Done` of the same number."""

    number: int
    command: MemberCommand


class Call(Struct, frozen=True, tag=True):
    """Begin `operation` as a client would, and give its answer with `Answered` of the same number."""

    number: int
    operation: Operation
    watched: bool


class Links(Struct, frozen=True, tag=True):
    """These links are now in these conditions."""

    conditions: tuple[LinkChanged, ...]


Order = Begin | Do | Call | Links


class Began(Struct, frozen=True, tag=True):
    """The life has begun; or not, when a `reason` is given, with the system's number of the error if there is one."""

    reason: str = ""
    errno: int | None = None


class Recorded(Struct, frozen=True, tag=True):
    record: Record


class Stranger(Struct, frozen=True, tag=True):
    remote: str
    reason: str


class Done(Struct, frozen=True, tag=True):
    """The command of this number was carried out, or begun; or refused, when a `refusal` is given."""

    number: int
    refusal: str = ""


class Answered(Struct, frozen=True, tag=True):
    """The operation of this number has ended so."""

    number: int
    answer: Answer


class Over(Struct, frozen=True, tag=True):
    """The life ended by its own decision. A process that ends without this line was killed or has crashed."""


Report = Began | Recorded | Stranger | Done | Answered | Over

ORDER: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
REPORT: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)

_ENCODER = msgspec.json.Encoder()


def line_of(said: Order | Report) -> bytes:
    return _ENCODER.encode(said) + b"\n"
