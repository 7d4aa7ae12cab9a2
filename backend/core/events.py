"""Everything that happens, as events: a journal contains nothing else, and all that a console knows comes from them.

A `Record` is the envelope: whose event it is, its place in the gap-free numbering of that incarnation, and when it happened. The
event itself is one of the classes below or of those that the chapters declare, distinguished by its ``kind``.
"""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from quarterdeck.backend.core import causes
from quarterdeck.backend.core.causes import Int64
from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.data.events import DataEvent
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events as membership
from quarterdeck.backend.core.membership.events import MembershipEvent
from quarterdeck.backend.core.partitions import events as partitions
from quarterdeck.backend.core.partitions.events import PartitionEvent
from quarterdeck.backend.core.witnessed.events import WitnessEvent

# What operators and the network did; recorded under the name of the cluster, not of a member


class ProcessKilled(Struct, frozen=True, tag_field="kind", tag="process-killed"):
    """The process of a member was killed, without a chance to say goodbye."""

    target: str


class ProcessPaused(Struct, frozen=True, tag_field="kind", tag="process-paused"):
    """The process of a member was frozen."""

    target: str


class ProcessResumed(Struct, frozen=True, tag_field="kind", tag="process-resumed"):
    """The frozen process of a member goes on."""

    target: str


class OperatorAsked(Struct, frozen=True, tag_field="kind", tag="operator-asked"):
    """An operator asked for something that changes a member or its cluster: who, what, and whether it was done.

    Members of ours record what they begin to do, so that its effects have a cause; who was refused is in their audit log.
    """

    command: str
    role: str
    remote: str
    granted: bool
    reason: str
    do: str = ""
    """The kind of the command, as in scenarios; empty where that is not known."""
    target: str = ""
    """The label of the member that was asked."""


class StrangerRefused(Struct, frozen=True, tag_field="kind", tag="stranger-refused"):
    """The member refused a peer on its port that is not a member of its cluster."""

    remote: str
    reason: str
    cause: causes.RefusalCause = "unknown"


class JournalChanged(Struct, frozen=True, tag_field="kind", tag="journal-changed"):
    """The journal of the member `target` cannot be written, or, when `failure` is empty, is written again.

    By then `lost` of its records are lost for ever.
    """

    target: str
    failure: str
    lost: Int64


class MembersExpected(Struct, frozen=True, tag_field="kind", tag="members-expected"):
    """An operator accepts `size` members as the size of the cluster: members that left before are not missed."""

    size: Int64


ClusterEvent = (
    ProcessKilled | ProcessPaused | ProcessResumed | LinkChanged | StrangerRefused | OperatorAsked | JournalChanged
    | MembersExpected
)  # fmt: skip
CLUSTER_EVENTS: frozenset[type] = frozenset(get_args(ClusterEvent))
"""What is recorded under the name of the cluster: the label of such a record is not that of a member."""

Event = MembershipEvent | PartitionEvent | DataEvent | WitnessEvent | ClusterEvent

EVENT_KINDS: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Event)}
"""Every kind of event by the name that it has in journals and in scenario files."""

NOTES: frozenset[type] = frozenset(
    {
        *(membership.HeartbeatLate, membership.ObserverPaused, membership.AddressesRemembered),
        *(membership.SearchPlanned, membership.NotMerging, membership.ProtectionChanged, membership.MessageRefused),
        *(partitions.PartitionLost, partitions.MigrationsCancelled, partitions.CompletedEvicted),
        *(data.CallFinished, data.EntriesEvicted, data.DataMeasured),
    }
)
"""What a member only notes: what it does next in the same step does not follow from it."""

FORM = 3
"""The form of records that are made now: those that have a cause name it. In form 2 few did, in form 1, which records do not say,
causes were in sentences alone; both are still read.
"""

WITNESSED_FORM = 2
"""The form of what a witness records: it does not know which record brought about another one."""


class Record(Struct, frozen=True, gc=False, omit_defaults=True):
    """One event of one incarnation. (`uuid`, `seq`) is its identity: `seq` counts from 1 without gaps within a uuid."""

    run: str
    member: str
    """The label of the member."""
    uuid: str
    seq: Int64
    at: Int64
    """Microseconds on the run's monotonic clock."""
    utc: Int64
    """Microseconds since 1970, UTC."""
    event: Event
    because: causes.RecordId | None = None
    """The record that brought this one about; left out where the member does not know it."""
    form: Int64 = 1
