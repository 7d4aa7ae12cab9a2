"""Why members do things: for each kind of event a closed set of causes, on which code may branch.

The sentence beside a cause is for people, and nothing looks at its words. ``unknown`` stands in events that were recorded before
there were causes, and in those read from the logs of other programs, where these do not give it.
"""

from __future__ import annotations

from typing import Annotated, Generic, Literal, NamedTuple, TypeVar

from msgspec import Meta, Struct

from quarterdeck.backend.core.address import Address

Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A whole number of what is recorded. A line with one of more than 64 bits is no record."""


class RecordId(Struct, frozen=True, gc=False):
    """What distinguishes a record from every other one: an incarnation, and the place in its numbering."""

    uuid: str
    seq: Int64


StopCause = Literal["asked", "could-not-join", "unknown"]

ListCause = Literal[
    "formed", "join", "joined", "removal", "promotion", "demotion", "mastership claim", "published", "unknown",
]  # fmt: skip
"""``join``: the master let a member in; ``joined``: this member was let in; ``published``: its master sent the list."""

ListRejectionCause = Literal["not-its-master", "without-this-member", "unknown"]

MasterCause = Literal["forms-cluster", "named", "merges", "suspects-older", "claim-accepted", "unknown"]
"""``named``: another member names that master; ``merges``: the cluster merges into that master's."""

UnreachableCause = Literal[
    "no-answer", "unresolvable", "other-cluster", "no-member", "rejected", "rejected-by-cluster", "itself",
]  # fmt: skip
"""Why the transport does not reach an address: no process is there, or the connection is lost; its host has no address; a member
of a cluster of another name is there; the program there is no member, as far as it shows; the member there and this one do
not accept one another, for a secret, a certificate or TLS; the same, and it says that it is in a cluster; it is the member's
own address under another name."""

REFUSALS: tuple[UnreachableCause, ...] = ("no-member", "rejected", "rejected-by-cluster")
"""Those that may be reported of one address by turns, the one that says least first."""

RefusalCause = Literal[
    "secret", "certificate", "tls", "other-cluster", "other-version", "itself", "no-member", "too-slow", "too-many",
    "unknown",
]  # fmt: skip
"""Why a member refuses a peer on its port: no proof of the secret of the cluster; no certificate that it accepts; TLS on one
side only, or none agreed on; a cluster of another name; another version of the protocol; this member's own address; nothing that
members say; nothing in time; too many at a time that had not said who they are."""

OwnSuspicionCause = Literal[
    "no-heartbeat", "no-confirmation", "no-connection", "goodbye", "asked", "new-incarnation",
    "leads-another-cluster", "disconnected", "no-list-confirmed", "ordered", "unknown",
]  # fmt: skip
"""The evidence that members give one another for a suspicion, and for a removal by the master."""

SuspicionCause = Literal[OwnSuspicionCause, "refused"]
"""The same, as logs of other members have it, too. ``refused``: a host answered, and no process listens there."""

ClearanceCause = Literal["heartbeat", "probe-reply", "claim-accepted", "list-received", "report-withdrawn", "unknown"]

SeparationCause = Literal[
    "heartbeat-for-earlier-incarnation", "heartbeat-of-stranger", "complaint", "master-asked", "confirmed-as-master",
    "confirmation-of-stranger", "foreign-list", "foreign-join-answer", "leads-another-cluster", "unknown",
]  # fmt: skip
"""Why a member asks another one to suspect it."""

SEPARATION_TEXT: dict[SeparationCause, str] = {
    "heartbeat-for-earlier-incarnation": "its heartbeat was for an earlier incarnation of this member",
    "heartbeat-of-stranger": "the master got a heartbeat from a member that is not on its list",
    "complaint": "a heartbeat complaint showed that it does not follow this master",
    "master-asked": "the master asked for it",
    "confirmed-as-master": "it was confirmed as master and is none",
    "confirmation-of-stranger": "a member that is not on the list confirmed the master",
    "foreign-list": "it published a list without being this member's master",
    "foreign-join-answer": "it finalized a join without being this member's master",
    "leads-another-cluster": "it leads another cluster and has this member on its list",
}
"""The same for people."""

SeparationAnswer = Literal["heeded", "moved-on", "not-listed", "unknown"]
"""What became of such a request, and why."""

ClaimEndCause = Literal["stopping", "merging", "unknown"]

StateCause = Literal["decided", "list", "joined", "claim-answer", "merge-died", "unknown"]
"""Why a member holds the cluster to be in another state: who said so, or that the merge died for which it was frozen."""

StateRefusalCause = Literal[
    "no-master", "not-in-time", "master-refused", "changing-already", "merging", "is-so-already", "member-refused",
    "no-answer", "merge-given-up", "unknown",
]  # fmt: skip

LiteRefusalCause = Literal[
    "cluster-state", "last-data-member", "withdrawn", "not-in-time", "unknown",
]  # fmt: skip
"""Why a member is not promoted or demoted."""

ObstacleCause = Literal[
    "", "state", "state-changes", "somebody-joins", "nobody-known", "nobody-answers", "verdict", "links-missing",
    "not-frozen", "refused", "no-answer", "unknown",
]  # fmt: skip
"""What keeps a master from merging, empty for nothing. From ``links-missing`` on it had decided to merge, and gave up."""

NONE_FOUND: tuple[ObstacleCause, ...] = ("nobody-known", "nobody-answers")
"""A search that found no other cluster: where there is none, nothing is amiss."""

C = TypeVar("C", bound=str)


class Reason(NamedTuple, Generic[C]):
    """Why something is done: the cause, the same as a sentence for people, and the record that brought it about, if known."""

    cause: C
    text: str
    because: RecordId | None = None


class Evidence(NamedTuple):
    """Why a member is suspected, or removed."""

    cause: OwnSuspicionCause
    text: str
    silence_us: int | None = None
    """How long nothing had come, where that is the evidence."""
    reporter: Address | None = None
    """Who has found it out, when it was another member."""
    because: RecordId | None = None


class HeldSuspicion(NamedTuple):
    """The suspicion of one incarnation: where it lived, and the evidence; its `because` is the record of the suspicion."""

    address: Address
    evidence: Evidence


# Sentences quote what others have sent. Control characters in it steer terminals and begin new lines of a log; marks of writing
# direction make a line read otherwise than it is.

STAND_IN = "\N{REPLACEMENT CHARACTER}"


def one_line(text: str, kept: str = "") -> str:
    """Return `text` with every unprintable character replaced, but those in `kept`."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in kept else STAND_IN for letter in text)


def several_lines(text: str) -> str:
    """Return the same for text that may have several lines, and tabs."""
    return one_line(text, kept="\n\t")
