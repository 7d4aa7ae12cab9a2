"""What chapters of membership report to one another: facts, not calls.

A chapter changes only its own state and reports what has come about. Which chapters react to it, and in which order, is
declared in `handlers`; the chapter that reports it knows none of them.
"""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence
from quarterdeck.backend.core.cluster_profile import ClusterProfile
from quarterdeck.backend.core.membership.messages import JoinRequest, LinksReport, MembersUpdate
from quarterdeck.backend.core.membership.views.identity import Member


class Installed(Struct, frozen=True):
    """Another list is in force now. An address with a new incarnation is in both fields."""

    gone: tuple[Address, ...]
    newcomers: tuple[Member, ...]


class ListReceived(Struct, frozen=True):
    """A joiner that has just been admitted had got a list of its master before the answer to its request."""

    sender: Address
    update: MembersUpdate


class Joined(Struct, frozen=True):
    """This incarnation has its first list."""


class BecameMaster(Struct, frozen=True):
    """This member leads from now on: it has formed a cluster, or finished its claim."""


class EvidenceFound(Struct, frozen=True):
    """These members seem to be dead. One suspicion of all follows, or one removal."""

    evidence: dict[Address, Evidence]


class SuspectedFact(Struct, frozen=True):
    """This slave suspects these members; all but those in `newly` it has suspected before."""

    newly: tuple[Address, ...]


class SuspicionEnded(Struct, frozen=True):
    """This member suspects the incarnation no more."""

    address: Address
    uuid: str


class Removed(Struct, frozen=True):
    """This master has removed these from its list, and has published that."""

    gone: frozenset[Address]


class LostInMerge(Struct, frozen=True):
    """There is evidence against members of a cluster that dissolves, from whose list no member is removed any more."""

    gone: frozenset[Address]


class LinkProven(Struct, frozen=True):
    """The incarnation has replied to a probe: the link works both ways. `knows_us` when this one is on its list."""

    address: Address
    uuid: str
    knows_us: bool
    token: str


class HeldLinksProven(Struct, frozen=True):
    """A joiner has proven all the links for which the master holds it back."""


class LinksReported(Struct, frozen=True):
    """This master has tried its own links to another cluster."""

    report: LinksReport


class AliveConfirmed(Struct, frozen=True):
    """The incarnation that asked to join is alive at its address."""

    address: Address
    request: JoinRequest


class AdmissionEnded(Struct, frozen=True):
    """The admitted members have been answered; others may have asked meanwhile."""


class MergeDecided(Struct, frozen=True):
    """This master's cluster is to merge into that one."""

    remote: ClusterProfile


class Departing(Struct, frozen=True):
    """This member leaves its cluster for that of `target`."""

    target: Address


class StateChangeEnded(Struct, frozen=True):
    """The change of the cluster's state that this master leads is decided; or refused, and why."""

    refusal: str


Fact = (
    Installed | ListReceived | Joined | BecameMaster | EvidenceFound | SuspectedFact | SuspicionEnded | Removed |
    LostInMerge | LinkProven | HeldLinksProven | LinksReported | AliveConfirmed | AdmissionEnded | MergeDecided |
    Departing | StateChangeEnded
)  # fmt: skip
