"""Incarnations, joining, member lists and mastership claims: the rows of their events."""

from __future__ import annotations

from logging import DEBUG, WARNING

from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.events.event_row import EventRow, Follows, LandmarkMark, LetterOf, Mark
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


def _claim_started(event: events.ClaimStarted, name_of: NameOf) -> str:
    suspected, asked = names_text(event.suspected, name_of), names_text(event.asked, name_of)
    return f"claims mastership from list v{event.version}: suspects {suspected}, asks {asked}"


def _claim_answered(event: events.ClaimAnswered, name_of: NameOf) -> str:
    why = f": {event.reason}" if event.reason else ""
    at = f" at list v{event.version}" if event.version else ""  # 0: it named none
    return f"hears {event.answer} to its claim from {name_of(event.by)}{at}{why}"


def _claim_answer_mark(event: events.ClaimAnswered, letter: LetterOf) -> Mark:
    accepted = event.answer == "accepted"
    return (f"✓ {letter(event.by)}", "good") if accepted else (f"no {letter(event.by)}", "warning")


def _claim_finished(event: events.ClaimFinished, name_of: NameOf) -> str:
    accepted, left_out = names_text(event.accepted, name_of), names_text(event.left_out, name_of)
    return f"is master with list v{event.version}: accepted by {accepted}, leaves out {left_out}"


INCARNATIONS = (
    EventRow(
        kind=events.MemberStarted, words=_started, tone="strong",
        mark=lambda event, letter: ("▲ anew" if event.merged_from else "▲ start", "good"), mark_weight=5,
        lane="alive",
    ),
    EventRow(
        kind=events.MemberStopped, words=lambda event, name_of: f"stops: {event.reason}", mark=("■ stop", "bad"),
        mark_weight=5, lane="over",
    ),
    EventRow(
        kind=events.AddressUnusable,
        words=lambda event, name_of: f"looks for others at {name_of(event.address)} in vain: {event.reason}",
        tone="warning", level=WARNING, external=True,
    ),
    EventRow(
        kind=events.JoinRequested,
        words=lambda event, name_of: f"asks {name_of(event.master)} to let it join (attempt {event.attempt})",
        level=DEBUG, mark=lambda event, letter: (f"ask {letter(event.master)}", "plain"), part="detail",
        follows=(Follows(events.MasterChanged, "it has learned who is master"),),
    ),
    EventRow(
        kind=events.JoinFailed, words=_join_failed, tone="bad", level=WARNING,
        logged_as="Could not join cluster. Shutting down now! ", mark=("■ no join", "bad"), lane="over", decides=4,
        follows=(
            Follows(events.JoinDelayed, "it was held back"),
            Follows(events.JoinRequested, "it asked and was not let in"),
        ),
    ),
)  # fmt: skip

LISTS = (
    EventRow(
        kind=events.ListInstalled, words=_list_installed,
        mark=lambda event, letter: (f"● v{event.version}{letter(event.master)}", "strong"), mark_weight=8,
        part=lambda event: "detail" if event.cause in ("published", "joined") else "decision", decides=5,
    ),
    EventRow(
        kind=events.ListRejected,
        words=lambda event, name_of: f"rejects list v{event.version} from {name_of(event.sender)}: {event.reason}",
        tone="bad", level=WARNING, mark=lambda event, letter: (f"✗ v{event.version}{letter(event.sender)}", "bad"),
    ),
    EventRow(
        kind=events.MasterChanged,
        words=lambda event, name_of: f"follows {name_of(event.master)} as master: {event.reason}", tone="strong",
        mark=lambda event, letter: (f"★ {letter(event.master)}", "plain"), mark_weight=2, part="detail",
    ),
    EventRow(
        kind=events.MemberAdmitted,
        words=lambda event, name_of: (
            f"admits {name_of(event.address)} with list v{event.version}"
            + (f" ({event.acknowledged} of {event.expected} acknowledged it)" if event.expected else "")
        ),
        tone="good", level=DEBUG, mark=lambda event, letter: (f"+ {letter(event.address)}", "good"), part="detail",
        decides=6, follows=(Follows(events.ListInstalled, "it is on the list, and the others know or had time to"),),
    ),
    EventRow(
        kind=events.MemberRemoved,
        words=lambda event, name_of: f"removes {name_of(event.address)} from the list: {event.reason}", tone="bad",
        level=WARNING, mark=lambda event, letter: (f"− {letter(event.address)}", "bad"), mark_weight=6, decides=11,
    ),
    EventRow(
        kind=events.MemberHeldBack,
        words=lambda event, name_of: (
            f"holds {name_of(event.address)} back until its links to {names_text(event.missing, name_of)} are proven"
        ),
        tone="warning", mark=lambda event, letter: (f"hold {letter(event.address)}", "warning"), decides=7,
        follows=(Follows(events.DisconnectionResolved, "it had to go for links that were down"),),
    ),
    EventRow(
        kind=events.JoinDelayed,
        words=lambda event, name_of: (
            f"is held back by {name_of(event.master)}: proves its links to {names_text(event.missing, name_of)}, "
            f"again in {duration_text(event.wait)}"
        ),
        tone="warning", mark=("held", "warning"), follows=(Follows(events.JoinRequested, "it asked to be let in"),),
    ),
    EventRow(
        kind=events.ProtectionChanged,
        words=lambda event, name_of: (
            f"{'serves' if event.operating else 'refuses'} operations: sees {event.size} of {event.needed} needed members"
        ),
        tone="warning", follows=(Follows(events.ListInstalled, "its list has another length"),),
    ),
)  # fmt: skip

CLAIMS = (
    EventRow(
        kind=events.ClaimStarted, words=_claim_started, tone="warning",
        logged_as="Starting mastership claim process: ", mark=("◇ claim", "warning"), mark_weight=5,
        landmark=lambda event, member: LandmarkMark("claims", "C", "warning", f"{member} claims the mastership"),
        decides=10,
    ),
    EventRow(
        kind=events.ClaimAnswered, words=_claim_answered, level=DEBUG, mark=_claim_answer_mark, part="detail",
        follows=(Follows(events.ClaimStarted, "it claims mastership and asked"),),
    ),
    EventRow(
        kind=events.ClaimFinished, words=_claim_finished, tone="good",
        logged_as=lambda event: f"Mastership is claimed with {len(event.accepted) + 1} members: ",
        mark=lambda event, letter: (f"◆ v{event.version}", "good"), mark_weight=7,
        landmark=lambda event, member: LandmarkMark("claims", "D", "good", f"{member} is done with its claim"),
        decides=13,
    ),
    EventRow(
        kind=events.ClaimAbandoned, words=lambda event, name_of: f"abandons its claim: {event.reason}",
        tone="warning", level=WARNING, mark=("◇ drop", "warning"),
        landmark=lambda event, member: LandmarkMark("claims", "A", "bad", f"{member} abandons its claim"), decides=12,
        follows=(Follows(events.ClaimStarted, "it had claimed mastership"),),
    ),
)  # fmt: skip
