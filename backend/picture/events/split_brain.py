"""Merges, join lists and the state of the cluster: the rows of their events."""

from __future__ import annotations

from logging import DEBUG, WARNING

from quarterdeck.backend.core.causes import NONE_FOUND
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.split_brain.merge_decision import MergeDirection
from quarterdeck.backend.picture.events.event_row import EventRow, Follows
from quarterdeck.backend.picture.text.formatting import NameOf, names_text, span_text

VERDICTS: dict[MergeDirection, str] = {
    "local-merges": "this one merges into it",
    "remote-merges": "it merges into this one",
    "cannot-merge": "the two cannot merge",
}
"""What a verdict on two clusters says, as seen from the one that reports it."""


def _remembered(event: events.AddressesRemembered, name_of: NameOf) -> str:
    new = [f"remembers {names_text(event.addresses, name_of)}, to look for clusters there"] * bool(event.addresses)
    old = [f"looks for clusters no longer at {names_text(event.forgotten, name_of)}"] * bool(event.forgotten)
    return "; ".join((*new, *old))


def _join_list(event: events.JoinListChanged, name_of: NameOf) -> str:
    listed = names_text(event.addresses, name_of)
    if not event.edition:  # no one edited it while it was watched
        return f"looks for others at {listed or 'no address'}, as its configuration is read"
    return f"takes edition {event.edition} of the join list, from {name_of(event.author)}: {listed}"


MERGES = (
    EventRow(
        kind=events.SearchPlanned,
        words=lambda event, name_of: (
            f"looks for other clusters in {span_text(event.wait)}, then every {span_text(event.every)}"
        ),
        part="background",
        follows=(
            Follows(events.NotMerging, "it waits with merging", deeper=False),
            Follows(events.MasterChanged, "a master looks for other clusters"),
        ),
    ),
    EventRow(
        kind=events.AddressesRemembered, words=_remembered, mark=None, part="background",
        follows=(Follows(events.ListInstalled, "they are on its list no more"),),
    ),
    EventRow(
        kind=events.JoinListChanged, words=_join_list, tone="strong",
        mark=lambda event, letter: (f"list e{event.edition}", "strong"),
    ),
    EventRow(
        kind=events.MergeVerdict,
        words=lambda event, name_of: (
            f"met the cluster of {name_of(event.remote)}: {VERDICTS[event.decision]} ({event.rule}: {event.why})"
        ),
        tone="strong", mark=lambda event, letter: (f"met {letter(event.remote)}", "strong"), mark_weight=4,
        decides=15,
    ),
    EventRow(
        kind=events.NotMerging,
        words=lambda event, name_of: (
            f"{'finds no other cluster' if event.cause in NONE_FOUND else 'is not merging'}: {event.reason}"
            if event.reason
            else "what kept it from merging is over"
        ),
        level=DEBUG, decides=16, follows=(Follows(events.MergeVerdict, "that is what it found"),),
    ),
    EventRow(
        kind=events.MergeStarted,
        words=lambda event, name_of: (
            f"begins to merge {names_text(event.merging, name_of)} into the cluster of {name_of(event.target)}"
        ),
        tone="strong", mark=lambda event, letter: (f"⇒ {letter(event.target)}", "strong"), mark_weight=5, decides=18,
        follows=(Follows(events.MergeVerdict, "it is the one that has to go"),),
    ),
    EventRow(
        kind=events.MergeAbandoned,
        words=lambda event, name_of: f"gives up merging into the cluster of {name_of(event.target)}: {event.reason}",
        tone="bad", level=WARNING, mark=lambda event, letter: (f"⇏ {letter(event.target)}", "bad"), decides=19,
        follows=(
            Follows(events.ClusterStateRefused, "its cluster could not be frozen"),
            Follows(events.MergeStarted, "it had begun to merge"),
        ),
    ),
    EventRow(
        kind=events.MemberMerging,
        words=lambda event, name_of: (
            f"leaves its cluster for that of {name_of(event.target)}, and goes on as {event.next_uuid}"
        ),
        tone="strong", level=WARNING, mark=lambda event, letter: (f"⇒ {letter(event.target)}", "strong"), decides=17,
    ),
)  # fmt: skip

CLUSTER_STATE = (
    EventRow(
        kind=events.ClusterStateChanged,
        words=lambda event, name_of: f"holds the cluster to be {event.state}: {event.reason}", tone="warning",
        mark=lambda event, letter: (event.state.casefold(), "warning"),
    ),
    EventRow(
        kind=events.ClusterStateRefused,
        words=lambda event, name_of: f"gives up changing the cluster to {event.wanted}: {event.reason}", tone="bad",
        level=WARNING, external=True,
    ),
    EventRow(
        kind=events.LiteChangeRefused,
        words=lambda event, name_of: f"is not {'demoted' if event.lite else 'promoted'}: {event.reason}", tone="bad",
        level=WARNING, external=True,
    ),
)  # fmt: skip
