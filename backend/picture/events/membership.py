"""Incarnations, lists, claims, suspicion, partial disconnections, merges, the cluster's state: the rows of their events."""

from __future__ import annotations

from logging import DEBUG, WARNING

from quarterdeck.backend.core.address import bracketed
from quarterdeck.backend.core.causes import NONE_FOUND
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.split_brain.merge_decision import MergeDirection
from quarterdeck.backend.picture.events.event_row import EventRow, Follows, LandmarkMark, filled
from quarterdeck.backend.picture.text.formatting import NameOf, duration_text, names_text


def _started(event: events.MemberStarted, name_of: NameOf) -> str:
    kind = "lite member" if event.lite else "member"
    begins = "goes on after the merge" if event.merged_from else "starts"
    looks = f", looks for its cluster at {names_text(event.join_list, name_of)}" if event.join_list else ""
    return f"{begins} as {kind} at {event.address}{looks}"


def _join_failed(event: events.JoinFailed, name_of: NameOf) -> str:
    tried = "; ".join(f"{name_of(address)}: {reason}" for address, reason in event.reasons.items())
    return f"gives up joining: {tried or 'no address to ask'}"


def _list_installed(event: events.ListInstalled, name_of: NameOf) -> str:
    names = names_text((member.address for member in event.members), name_of)
    by = "" if event.author == event.master else f", sent by {name_of(event.author)}"
    leads = f"(master {name_of(event.master)}{by})"
    return f"installs list v{event.version} of {len(event.members)}: {names} {leads}: {event.reason or event.cause}"


def _claim_answered(event: events.ClaimAnswered, name_of: NameOf) -> str:
    why = f": {event.reason}" if event.reason else ""
    at = f" at list v{event.version}" if event.version else ""  # 0: it named none
    return f"hears {event.answer} to its claim from {name_of(event.by)}{at}{why}"


def _late(event: events.HeartbeatLate, name_of: NameOf) -> str:
    name, silence = name_of(event.address), duration_text(event.silence)
    if not event.over:
        left = f", suspects it in {duration_text(max(event.timeout - event.silence, 0))}" if event.timeout else ""
        return f"has not heard {name} for {silence}{left}"
    return f"hears {name} again after {silence}" if event.silence else f"waits for the heartbeats of {name} anew"


def _paused(event: events.ObserverPaused, name_of: NameOf) -> str:
    gap = duration_text(event.gap)
    if event.is_backwards:
        return f"had its clock set back by {gap}, so it suspects no member"
    set_forward = ", or had its clock set forward," if event.is_by_clock else ""
    return f"stood still{set_forward} for {gap} itself, so it suspects no member"


def _explicit_received(event: events.ExplicitSuspicionReceived, name_of: NameOf) -> str:
    asked = f"is asked by {name_of(event.sender)} to suspect it and {'does' if event.heeded else 'does not'}"
    return f"{asked}: {event.reason}" if event.reason else asked


def _reported(event: events.DisconnectionReported, name_of: NameOf) -> str:
    if not event.suspects:
        return f"hears that {name_of(event.reporter)} reaches every member again"
    return f"hears from {name_of(event.reporter)} that it cannot reach {names_text(event.suspects, name_of)}"


def _resolved(event: events.DisconnectionResolved, name_of: NameOf) -> str:
    how = "" if event.exact else " (the best found in time)"
    keep, remove = names_text(event.keep, name_of), names_text(event.remove, name_of)
    return f"settles who stays{how}: {keep}; removes {remove}: {event.why}"


VERDICTS: dict[MergeDirection, str] = {
    "local-merges": "this one should merge into it",
    "remote-merges": "it should merge into this one",
    "cannot-merge": "the two cannot merge",
}
"""The words of a verdict on two clusters, as seen by the cluster that reports it."""


def _remembered(event: events.AddressesRemembered, name_of: NameOf) -> str:
    new = [f"remembers {names_text(event.addresses, name_of)}, to look for clusters there"] * bool(event.addresses)
    old = [f"looks for clusters no longer at {names_text(event.forgotten, name_of)}"] * bool(event.forgotten)
    return "; ".join((*new, *old))


def _join_list(event: events.JoinListChanged, name_of: NameOf) -> str:
    listed = names_text(event.addresses, name_of)
    if not event.edition:  # no one edited it while it was watched
        return f"looks for others at {listed or 'no address'}, as its configuration is read"
    return f"takes edition {event.edition} of the join list, from {name_of(event.author)}: {listed}"


MEMBERSHIP = (
    EventRow(
        events.MemberStarted, _started, "strong", mark_weight=5, lane="alive",
        mark=lambda event: ("▲ anew" if event.merged_from else "▲ start", "good"),
    ),
    EventRow(events.MemberStopped, "stops: {reason}", mark=("■ stop", "bad"), mark_weight=5, lane="over"),
    EventRow(
        events.AddressUnusable, "looks for others at {address:name} in vain: {reason}", "warning", WARNING, external=True,
    ),
    EventRow(
        events.JoinRequested, "asks {master:name} to let it join (attempt {attempt})", level=DEBUG,
        mark=("ask {master:name}", "plain"), part="detail",
        follows=(Follows(events.MasterChanged, "it has learned who is master"),),
    ),
    EventRow(
        events.JoinFailed, _join_failed, "bad", WARNING, "Could not join cluster. Shutting down now! ",
        mark=("■ no join", "bad"), lane="over", decides=4,
        follows=(
            Follows(events.JoinDelayed, "it was held back"),
            Follows(events.JoinRequested, "it asked and was not let in"),
        ),
    ),
    EventRow(
        events.ListInstalled, _list_installed, mark=("● v{version}{master:name}", "strong"), mark_weight=8, decides=5,
        part=lambda event: "detail" if event.cause in ("published", "joined") else "decision",
    ),
    EventRow(
        events.ListRejected, "rejects list v{version} from {sender:name}: {reason}", "bad", WARNING,
        mark=("✗ v{version}{sender:name}", "bad"),
    ),
    EventRow(
        events.MessageRefused, "refuses {message} from {sender:name}: {reason}", "bad", WARNING,
        mark=("✗ {message}{sender:name}", "bad"), external=True,
    ),
    EventRow(
        events.MasterChanged, "has {master:name} as master: {reason}", "strong", mark=("★ {master:name}", "plain"),
        mark_weight=2, part="detail",
    ),
    EventRow(
        events.MemberAdmitted,
        lambda event, name_of: filled("admits {address:name} with list v{version}", event, name_of)
        + (f" ({event.acknowledged} of {event.expected} acknowledged it)" if event.expected else ""),
        "good", DEBUG, mark=("+ {address:name}", "good"), part="detail", decides=6,
        follows=(Follows(events.ListInstalled, "it is on the list, and the others know or had time to"),),
    ),
    EventRow(
        events.MemberRemoved, "removes {address:name} from the list: {reason}", "bad", WARNING,
        mark=("− {address:name}", "bad"), mark_weight=6, decides=11,
    ),
    EventRow(
        events.MemberHeldBack, "holds {address:name} back until its links to {missing:names} are proven", "warning",
        mark=("hold {address:name}", "warning"), decides=7,
        follows=(Follows(events.DisconnectionResolved, "it had to go for links that were down"),),
    ),
    EventRow(
        events.JoinDelayed,
        "is held back by {master:name}: proves its links to {missing:names}, again in {wait:duration}",
        "warning", mark=("held", "warning"), follows=(Follows(events.JoinRequested, "it asked to be let in"),),
    ),
    EventRow(
        events.ProtectionChanged,
        lambda event, _: (
            f"{'serves' if event.operating else 'refuses'} operations: sees {event.size} of {event.needed} needed members"
        ),
        "warning", follows=(Follows(events.ListInstalled, "its list has another length"),),
    ),
    EventRow(
        events.ClaimStarted,
        "claims mastership from list v{version}: suspects {suspected:names}, asks {asked:names}",
        "warning", logged_as="Starting mastership claim process: ", mark=("◇ claim", "warning"), mark_weight=5,
        landmark=lambda event, member: LandmarkMark("claims", "C", "warning", f"{member} claims the mastership"),
        decides=10,
    ),
    EventRow(
        events.ClaimAnswered, _claim_answered, level=DEBUG, part="detail",
        mark=lambda event: ("✓ {by:name}", "good") if event.answer == "accepted" else ("no {by:name}", "warning"),
        follows=(Follows(events.ClaimStarted, "it claims mastership and asked"),),
    ),
    EventRow(
        events.ClaimFinished,
        "is master with list v{version}: accepted by {accepted:names}, leaves out {left_out:names}", "good",
        logged_as=lambda event: f"Mastership is claimed with {len(event.accepted) + 1} members: ",
        mark=("◆ v{version}", "good"), mark_weight=7,
        landmark=lambda event, member: LandmarkMark("claims", "D", "good", f"{member} is done with its claim"),
        decides=13,
    ),
    EventRow(
        events.ClaimAbandoned, "abandons its claim: {reason}", "warning", WARNING, mark=("◇ drop", "warning"),
        landmark=lambda event, member: LandmarkMark("claims", "A", "bad", f"{member} abandons its claim"), decides=12,
        follows=(Follows(events.ClaimStarted, "it had claimed mastership"),),
    ),
    EventRow(
        events.HeartbeatLate, _late, lambda event: "good" if event.over else "warning", DEBUG, part="detail",
        mark=lambda event: (f"{'○' if event.over else '◔'} {{address:name}}", "faint"),
    ),
    EventRow(
        events.ObserverPaused, _paused, level=WARNING,
        logged_as="Resetting heartbeat timestamps: ",
    ),
    EventRow(
        events.SuspicionRaised, "suspects {suspect:name}: {reason}", "warning", WARNING,
        mark=("⊘ {suspect:name}", "warning"), mark_weight=5, decides=8,
    ),
    EventRow(
        events.SuspicionCleared, "no longer suspects {suspect:name}: {reason}", "good",
        mark=("○ {suspect:name}", "good"), decides=9,
    ),
    EventRow(
        events.ExplicitSuspicionSent, "asks {to:name} to suspect it: {reason}", mark=("! {to:name}", "warning"),
        part="detail", follows=(Follows(events.ListInstalled, "that one is not on it, or does not follow its master"),),
    ),
    EventRow(
        events.ExplicitSuspicionReceived, _explicit_received, level=WARNING,
        logged_as=lambda event: f"Received suspicion request from {bracketed(event.sender)}: ",
        mark=("! {sender:name}", "warning"), part="detail",
    ),
    EventRow(
        events.ComplaintSent, "complains to {master:name} of heartbeats from the stranger {stranger:name}",
        mark=("¿ {stranger:name}", "faint"), part="detail",
        follows=(Follows(events.ListInstalled, "the stranger is not on it", deeper=False),),
    ),
    EventRow(events.DisconnectionReported, _reported, "warning", mark=("≁ {reporter:name}", "warning")),
    EventRow(
        events.DisconnectionResolved, _resolved, "bad", WARNING, mark=("◆ settle", "bad"), decides=14,
        follows=(Follows(events.DisconnectionReported, "members cannot reach one another"),),
    ),
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
            else "nothing keeps it from merging any more"
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
    EventRow(
        events.ClusterStateChanged, "believes that the cluster is {state}: {reason}", "warning",
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
