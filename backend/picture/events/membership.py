"""Incarnations, joining, member lists and mastership claims: the rows of their events."""

from __future__ import annotations

from logging import DEBUG, WARNING

from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.events.event_row import EventRow, Follows, LandmarkMark, filled
from quarterdeck.backend.picture.text.formatting import NameOf, names_text


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


INCARNATIONS = (
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
)  # fmt: skip

LISTS = (
    EventRow(
        events.ListInstalled, _list_installed, mark=("● v{version}{master:name}", "strong"), mark_weight=8, decides=5,
        part=lambda event: "detail" if event.cause in ("published", "joined") else "decision",
    ),
    EventRow(
        events.ListRejected, "rejects list v{version} from {sender:name}: {reason}", "bad", WARNING,
        mark=("✗ v{version}{sender:name}", "bad"),
    ),
    EventRow(
        events.MasterChanged, "follows {master:name} as master: {reason}", "strong", mark=("★ {master:name}", "plain"),
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
)  # fmt: skip

CLAIMS = (
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
)  # fmt: skip
