"""The interface through which the HTTP paths read a member and give it commands: the contract between paths and process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from quarterdeck.backend.core.cluster_snapshot import MemberReport
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.journal.audit_log import AuditEntry
from quarterdeck.backend.journal.writer import JournalCondition
from quarterdeck.backend.live.security.cluster_secret import ClusterKeyring, ClusterSecret
from quarterdeck.backend.live.transport.peer import WireQueues
from quarterdeck.backend.member_api.beliefs import NodeState
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.service.configuration.process_configuration import ProcessConfiguration, Role, UserGroup
from quarterdeck.backend.service.meters import Meters
from quarterdeck.backend.service.record_buffer import RecordBuffer


class Caller(Struct, frozen=True):
    """A client that made a request: where from, and what it may do."""

    remote: str
    """Host and port of the other end."""
    role: Role
    name: str = ""
    """The name under which it has identified itself, if any."""
    groups: tuple[UserGroup, ...] | None = None
    """The groups to which it is limited; None: all."""


class Face(Protocol):
    """One running member, as the HTTP paths see it. All of it belongs to the member's event loop."""

    label: str
    """The name by which people call the member."""
    run: str
    """The run under which it records."""
    configuration: ProcessConfiguration
    """How it was configured."""
    picture: Picture
    """The fold of all that this member has recorded, and of nothing that others record."""
    member: MemberState
    """What the member knows and believes, to be read only; commands go through `do` and `call`."""
    meters: Meters
    """What its process has counted and timed."""
    records: RecordBuffer
    """The latest of its records."""
    keyring: ClusterKeyring | None
    """The secrets of the cluster that it accepts; None when members need none."""

    @property
    def node_state(self) -> NodeState:
        """How far its process is, in the operators' words."""

    @property
    def connections(self) -> int:
        """How many connections to other members are open."""

    @property
    def journal(self) -> JournalCondition | None:
        """The condition of its journal; None when it has none."""

    def disconnect_proven(self, secret: ClusterSecret) -> None:
        """Close the connections with members that were agreed on with this secret. They are dialled anew."""

    @property
    def queues(self) -> WireQueues:
        """What waits in its connections."""

    @property
    def calls_in_flight(self) -> int:
        """How many calls of clients are not answered yet."""

    @property
    def faults(self) -> Sequence[LinkChanged]:
        """The link conditions that this member applies to what it sends."""

    async def report(self, caller: Caller) -> MemberReport:
        """Return all that the member knows, for a copy to continue from."""

    def now_us(self) -> int:
        """Return the time on the clock that its records carry."""

    async def do(self, command: Command, caller: Caller) -> None:
        """Carry out a command. Raises `CommandRefused`.

        Labels in commands about links are labels or addresses of members.
        """

    async def call(self, operation: Operation, caller: Caller) -> Answer:
        """Carry out an operation on a map."""

    def identified(self, host: str) -> None:
        """Give connections from `host` precedence over strangers: a client there has identified itself."""

    def audited(self, entry: AuditEntry, kind: str) -> None:
        """Put an entry into the audit log, if there is one; see `EntryCounter.add` for its `kind`."""

    async def reconfigure(self, properties: dict[str, str | int | float | bool], caller: Caller) -> None:
        """Change properties at runtime. Raises `BadProperty`, and then nothing was changed."""

    def shut_down(self, caller: Caller, *, whole_cluster: bool = False) -> None:
        """Begin to stop gracefully, this member or all members of its cluster; return at once."""


def own_belief(face: Face) -> MemberBelief:
    """Return the fold of this member's records in its present incarnation; an empty belief before the first of them."""
    found = face.picture.members.get(face.label)
    if found is None or found.uuid != face.member.uuid:
        return MemberBelief(face.label, face.member.address, face.member.uuid)
    return found


def utc_now_us() -> int:
    """Return UTC by this machine's clock, in microseconds since 1970."""
    return time.time_ns() // 1_000
