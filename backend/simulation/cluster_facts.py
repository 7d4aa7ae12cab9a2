"""What records say beyond the picture, folded for expectations: states, join lists, who is held back, why none merges."""

from __future__ import annotations

from dataclasses import dataclass, field

from backend.core import events
from backend.core.address import Address
from backend.core.cluster_profile import ClusterState
from backend.core.events import Record


@dataclass
class Facts:
    """A fold over records like the picture; keys are labels of members unless said otherwise."""

    states: dict[str, ClusterState] = field(default_factory=dict)
    """What each member's present life holds the cluster to be in."""
    join_lists: dict[str, tuple[Address, ...]] = field(default_factory=dict)
    """Where each member's present life looks for its cluster."""
    not_merging: dict[str, str] = field(default_factory=dict)
    """Why each member, as a master, did not merge when it last said so in its present life."""
    held_back: dict[Address, tuple[Address, ...]] = field(default_factory=dict)
    """Whom a master does not let in again, and the members to which its links are not proven."""
    refusal: str | None = None
    """Why the last command was refused; None when it was done."""

    def apply(self, record: Record) -> None:
        """Take in one record."""
        match record.event:
            case events.MemberStarted(address, _, join_list):
                self.states[record.member] = "ACTIVE"
                self.join_lists[record.member] = join_list
                self.not_merging.pop(record.member, None)
                self.held_back.pop(address, None)
            case events.ClusterStateChanged(state):
                self.states[record.member] = state
            case events.JoinListChanged(addresses):
                self.join_lists[record.member] = addresses
            case events.NotMerging(reason):
                self.not_merging[record.member] = reason
            case events.MemberHeldBack(address, missing):
                self.held_back[address] = missing
            case events.MemberAdmitted(address):
                self.held_back.pop(address, None)
            case _:
                pass  # the picture's affair, or nobody's
