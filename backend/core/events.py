"""Everything that happens, as events: the journal is nothing but these, and so is all that a console knows.

A `Record` is the envelope: whose event it is, its place in that incarnation's gap-free numbering, and when. The event
itself is one of the classes below, told apart by its ``kind``. Schemas of tables are derived from these classes.
"""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from quarterdeck.backend.core import causes
from quarterdeck.backend.core.data.events import DataEvent
from quarterdeck.backend.core.link_condition import LinkChanged as LinkChanged
from quarterdeck.backend.core.membership.events import *  # noqa: F403 — readers find the events of members here too
from quarterdeck.backend.core.membership.events import MembershipEvent
from quarterdeck.backend.core.partitions.events import PartitionEvent
from quarterdeck.backend.core.witnessed.events import WitnessEvent

# What operators and the network did; recorded under the name of the cluster, not of a member


class ProcessKilled(Struct, frozen=True, tag_field="kind", tag="process-killed"):
    """A member's process was ended without a chance to say goodbye."""

    target: str


class ProcessPaused(Struct, frozen=True, tag_field="kind", tag="process-paused"):
    """A member's process was frozen."""

    target: str


class ProcessResumed(Struct, frozen=True, tag_field="kind", tag="process-resumed"):
    """A frozen process goes on."""

    target: str


class OperatorAsked(Struct, frozen=True, tag_field="kind", tag="operator-asked"):
    """Somebody asked a member for something that is not just to look: who, what, and whether it was done."""

    command: str
    role: str
    remote: str
    granted: bool
    reason: str


class SettingsChanged(Struct, frozen=True, tag_field="kind", tag="settings-changed"):
    """Properties of this member have other values now, as text by name."""

    properties: dict[str, str]


class StrangerRefused(Struct, frozen=True, tag_field="kind", tag="stranger-refused"):
    """Somebody on the member port who is not one of us."""

    remote: str
    reason: str
    cause: causes.RefusalCause = "unknown"


class JournalChanged(Struct, frozen=True, tag_field="kind", tag="journal-changed"):
    """The journal of the member `target` cannot be written, or is written again when `failure` is empty.

    So many of its records are `lost` for ever by then.
    """

    target: str
    failure: str
    lost: int


Event = (
    MembershipEvent
    | PartitionEvent
    | DataEvent
    | WitnessEvent
    | ProcessKilled
    | ProcessPaused
    | ProcessResumed
    | LinkChanged
    | StrangerRefused
    | OperatorAsked
    | SettingsChanged
    | JournalChanged
)

EVENT_KINDS: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Event)}
"""Every kind of event by the name that it has in journals and in scenario files."""

FORM = 2
"""The form of records that are made now. Form 1, which goes without saying, had causes in sentences alone and is still read."""


class Record(Struct, frozen=True, omit_defaults=True):
    """One event of one incarnation. (`uuid`, `seq`) is its identity: `seq` counts from 1 without gaps within a uuid."""

    run: str
    member: str
    """The label of the member: what people call it."""
    uuid: str
    seq: int
    at: int
    """Microseconds on the run's monotonic clock."""
    utc: int
    """Microseconds since 1970, UTC."""
    event: Event
    because: causes.RecordId | None = None
    """The record that brought this one about, where the member knows it; left out where it does not."""
    form: int = 1
