"""The messages between a cluster and a member in a process of its own: one JSON line each, over the pipes between them."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_snapshot import CapturedMember
from quarterdeck.backend.core.commands import KillAt
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.live.member.member_host import MemberCommand, RunClock
from quarterdeck.backend.live.transport.limits import Timeouts

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Room for an event with any list that a frame among members has room for."""


class StartIncarnation(Struct, frozen=True, tag=True):
    """The first line to a new process: the incarnation to run. `links` are the conditions that hold already."""

    configuration: MemberConfiguration
    clock: RunClock
    addresses: dict[str, Address]
    """Of all members, by label."""
    links: tuple[LinkChanged, ...]
    seed: str
    """Of everything that this incarnation leaves to chance."""
    timeouts: Timeouts
    kill_point: KillAt | None = None
    """Where this incarnation is to end."""


class ExecuteCommand(Struct, frozen=True, tag=True):
    """Carry out `command`, and send the `Reply` of the same number."""

    number: int
    command: MemberCommand


class BeginCall(Struct, frozen=True, tag=True):
    """Begin `operation` as a client would, and send its answer with the `Reply` of the same number."""

    number: int
    operation: Operation
    watched: bool


class SetLinks(Struct, frozen=True, tag=True):
    """These links are now in these conditions."""

    conditions: tuple[LinkChanged, ...]


class CaptureState(Struct, frozen=True, tag=True):
    """Report all that the member knows, with the `Reply` of the same number."""

    number: int


PipeRequest = StartIncarnation | ExecuteCommand | BeginCall | SetLinks | CaptureState


class IncarnationStarted(Struct, frozen=True, tag=True):
    """The incarnation has begun; or not, when a `reason` is given, with the system's number of the error if it has one."""

    reason: str = ""
    errno: int | None = None


class EventRecorded(Struct, frozen=True, tag=True):
    """The member recorded an event; of a stranger that was refused, the cluster makes a record of its own."""

    record: Record


class Reply(Struct, frozen=True, tag=True):
    """The fate of the request of this number: it was carried out, or begun; or refused, when a `refusal` is given."""

    number: int
    refusal: str = ""
    answer: Answer | None = None
    """Of an operation."""
    captured: CapturedMember | None = None
    """The whole state of the member, as requested."""


class IncarnationEnded(Struct, frozen=True, tag=True):
    """The incarnation ended by its own decision. A process that ends without this line was killed or has crashed."""


PipeReport = IncarnationStarted | EventRecorded | Reply | IncarnationEnded

PIPE_REQUEST: msgspec.json.Decoder[PipeRequest] = msgspec.json.Decoder(PipeRequest)
PIPE_REPORT: msgspec.json.Decoder[PipeReport] = msgspec.json.Decoder(PipeReport)

_ENCODER = msgspec.json.Encoder()


def line_of(message: PipeRequest | PipeReport) -> bytes:
    """Return the message as a line for the pipe."""
    return _ENCODER.encode(message) + b"\n"
