"""Merges, join lists and the state of the cluster: the rows of their events."""

from __future__ import annotations

from logging import DEBUG, WARNING

from quarterdeck.backend.core.causes import NONE_FOUND
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.split_brain.merge_decision import MergeDirection
from quarterdeck.backend.picture.events.event_row import EventRow, Follows, filled
from quarterdeck.backend.picture.text.formatting import NameOf, names_text

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
        events.SearchPlanned, "looks for other clusters in {wait:span}, then every {every:span}", part="background",
        follows=(
            Follows(events.NotMerging, "it waits with merging", deeper=False),
            Follows(events.MasterChanged, "a master looks for other clusters"),
        ),
    ),
    EventRow(
        events.AddressesRemembered, _remembered, mark=None, part="background",
        follows=(Follows(events.ListInstalled, "they are on its list no more"),),
    ),
    EventRow(events.JoinListChanged, _join_list, "strong", mark=("list e{edition}", "strong")),
    EventRow(
        events.MergeVerdict,
        lambda event, name_of: filled(
            f"met the cluster of {{remote:name}}: {VERDICTS[event.decision]} ({{rule}}: {{why}})", event, name_of
        ),
        "strong", mark=("met {remote:name}", "strong"), mark_weight=4, decides=15,
    ),
    EventRow(
        events.NotMerging,
        lambda event, _: (
            f"{'finds no other cluster' if event.cause in NONE_FOUND else 'is not merging'}: {event.reason}"
            if event.reason
            else "what kept it from merging is over"
        ),
        level=DEBUG, decides=16, follows=(Follows(events.MergeVerdict, "that is what it found"),),
    ),
    EventRow(
        events.MergeStarted, "begins to merge {merging:names} into the cluster of {target:name}", "strong",
        mark=("⇒ {target:name}", "strong"), mark_weight=5, decides=18,
        follows=(Follows(events.MergeVerdict, "it is the one that has to go"),),
    ),
    EventRow(
        events.MergeAbandoned, "gives up merging into the cluster of {target:name}: {reason}", "bad", WARNING,
        mark=("⇏ {target:name}", "bad"), decides=19,
        follows=(
            Follows(events.ClusterStateRefused, "its cluster could not be frozen"),
            Follows(events.MergeStarted, "it had begun to merge"),
        ),
    ),
    EventRow(
        events.MemberMerging, "leaves its cluster for that of {target:name}, and goes on as {next_uuid}", "strong",
        WARNING, mark=("⇒ {target:name}", "strong"), decides=17,
    ),
)  # fmt: skip

CLUSTER_STATE = (
    EventRow(
        events.ClusterStateChanged, "holds the cluster to be {state}: {reason}", "warning",
        mark=lambda event: (event.state.casefold(), "warning"),
    ),
    EventRow(
        events.ClusterStateRefused, "gives up changing the cluster to {wanted}: {reason}", "bad", WARNING, external=True,
    ),
    EventRow(
        events.LiteChangeRefused,
        lambda event, _: f"is not {'demoted' if event.lite else 'promoted'}: {event.reason}", "bad", WARNING,
        external=True,
    ),
)  # fmt: skip
