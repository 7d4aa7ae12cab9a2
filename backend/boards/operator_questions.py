"""The questions that operators of such clusters ask, each answered from the picture in a line or two.

Is it one cluster, and if not, why does it not become one? Who was removed, and why? Have all members the same partition table?
Is the migration stuck? Which answers of health checks mislead now? What is not known is said to be so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quarterdeck.backend.boards.belief_matrix import same_table
from quarterdeck.backend.boards.join_list_board import TONES
from quarterdeck.backend.boards.suspicion_board import lasting_facts
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.absence import has_ended, is_merging
from quarterdeck.backend.judgement.conclusion import Answer
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.losses.loss import TONES as LOSS_TONES
from quarterdeck.backend.judgement.stuck_migrations import migration_progress
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact, Tone, not_told, under
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, names_text, with_names

PAIRS_TOLD = 6
MEMBERS_NAMED = 4
"""How many members one answer names."""


def operator_questions(judge: Judge, recent: Sequence[Record]) -> tuple[Fact, ...]:
    """Return all questions with the answers of `judge`; `recent` are the latest records, oldest first."""
    picture, now_us = judge.picture, judge.now_us
    return (
        *_one_cluster(judge),
        *under("which calls fail now", [refusal.text for refusal in judge.refusals], "bad"),
        *_why_apart(judge),
        *removal_facts(picture, recent, now_us),
        *lasting_facts(picture, now_us),
        *same_table(judge),
        *_lost_data(judge),
        *_migrating(judge),
        *_misleading(judge),
        Fact("which member owns a key", "type :owner MAP KEY", "faint"),
    )


# One cluster


def _one_cluster(judge: Judge) -> Iterator[Fact]:
    masters, sides = judge.masters, judge.agreement.sides
    answers: list[tuple[str, Tone]] = []
    if not masters:
        answers.append(("no master is seen", "warning"))
    elif len(sides) > 1:
        answers.append((f"no: {counted(len(sides), 'master')} lead at the same time", "bad"))
        answers += [(_half(master), "warning") for master in masters]
        answers += [
            (f"{side.master} led {counted(side.size, 'member')} when it was heard last, {age} ago", "warning")
            for side in judge.agreement.unheard
            for age in [age_text(judge.now_us - (side.unheard_since_us or 0))]
        ]
    elif doubtful := _doubtful(judge):
        answers.append((f"not known: {_half(masters[0])}; {doubtful}", "warning"))
    else:
        answers.append((f"yes, as far as is seen: {_half(masters[0])}", "good"))
    ended = [label for label, belief in judge.picture.members.items() if has_ended(belief)]
    if ended:
        answers.append((f"ended: {', '.join(ended)}", "warning"))
    if unseen := [absence.label for absence in judge.absences if absence.way not in ("gone", "joining")]:
        answers.append((f"not seen: {', '.join(unseen)}; whom they follow now is not known", "warning"))
    yield from under("is it one cluster", answers)


def _doubtful(judge: Judge) -> str:
    """Return which members may lead besides the only master that is seen; empty where none may."""
    picture, master = judge.picture, judge.masters[0]
    merging = [label for label, belief in picture.members.items() if is_merging(belief)]
    if merging:
        return f"{listed(merging, MEMBERS_NAMED)} {'merges' if len(merging) == 1 else 'merge'}"
    dropped = master.ever_listed - master.listed
    removed = [belief.label for belief in judge.agreement.holders if belief.address in dropped]
    if removed:
        verb = "was removed from its list and has" if len(removed) == 1 else "were removed from its list and have"
        return f"{listed(removed, MEMBERS_NAMED)} {verb} another one"
    unseen = [it.label for it in judge.absences if not it.is_listed and it.way in ("not reached", "frozen")]
    if len(unseen) > 1:
        return f"{listed(unseen, MEMBERS_NAMED)} are not seen and may have a master of their own"
    return f"{unseen[0]} is not seen and may lead on its own" if unseen else ""


def _half(master: MemberBelief) -> str:
    size = counted(len(master.members), "member")
    return f"{master.label} leads {size}, list v{master.version} of lineage {master.lineage[:8]}"


def _why_apart(judge: Judge) -> Iterator[Fact]:
    answers: list[tuple[str, Tone]] = []
    for pair in judge.pairs[:PAIRS_TOLD]:
        answers.append((f"{pair.smaller} and {pair.greater}: {pair.sentence}", TONES[pair.state]))
        if pair.unblock is not None:
            answers.append((f"what helps: {pair.unblock.text}; see the join lists", "plain"))
    if unheard := [side.master for side in judge.agreement.unheard]:
        answers.append((f"not known of {listed(unheard, MEMBERS_NAMED)}, of which nothing is heard", "warning"))
    yield from under("why do they not merge", answers or [("there are no two masters in sight", "faint")])


# Partitions


def _lost_data(judge: Judge) -> Iterator[Fact]:
    heading = "which data was lost"
    unknown = judge.picture.without("losses")
    answers = [(loss.account(judge.now_us), LOSS_TONES[loss.state]) for loss in judge.losses]
    if not answers and unknown is not None and unknown.witnessed_by:
        yield Fact(heading, not_told("losses", unknown.witnessed_by), "faint")
    else:
        yield from under(heading, answers or [("none that was recorded here", "good")])


HANGS: dict[Answer, tuple[str, Tone]] = {
    "yes": ("it stands still: ", "bad"),
    "no": ("no: ", "good"),
    "unknown": ("", "faint"),
}


def _migrating(judge: Judge) -> Iterator[Fact]:
    heading, several = "is the migration stuck", len(judge.masters) > 1
    answers = [
        (f"{HANGS[it.stands_still][0]}{f'{it.master}: ' if several else ''}{it.text}", HANGS[it.stands_still][1])
        for it in migration_progress(judge.agreement)
    ]
    leading = {master.label for master in judge.masters}
    latest = next(reversed(judge.picture.history.witnessed), None)
    if latest is not None and latest.teller not in leading:
        ended = f"{latest.migrated.done_count} of {latest.migrated.planned_count} done at {latest.teller}"
        answers.append((f"{ended}, which leads no more: how that round ended was not reported", "plain"))
    yield from under(heading, answers or [("no master is seen that migrates", "faint")])


# Health


def _misleading(judge: Judge) -> Iterator[Fact]:
    answers: list[tuple[str, Tone]] = []
    picture, sides = judge.picture, judge.agreement.sides
    if len(sides) > 1:
        names = listed([side.master for side in sides], MEMBERS_NAMED)
        halves = f"cluster-safe and cluster-size speak of one half alone, each of its own: there are {names}"
        answers.append((halves, "warning"))
    shut = sorted({belief.cluster_state for belief in picture.members.values() if belief.running} - {"ACTIVE"})
    if shut:
        active = f"node-state says ACTIVE while the cluster is {', '.join(shut)}: ask for cluster-state"
        answers.append((active, "warning"))
    if any(not belief.running for belief in picture.members.values()):
        waits = "/hazelcast/health waits for cluster-safe, up to 2 s, while a fault is found: probe node-state alone"
        answers.append((waits, "warning"))
    yield from under("which health answers mislead", answers or [("none that is known of now", "faint")])


ANSWERS_SHOWN = 8
AT_ONCE_US = 3 * SECOND_US
"""What one member removes within this time is one answer."""


class WordedReason(NamedTuple):
    """Why a member was removed. Reasons of one kind are worded once: their texts differ by names and times only."""

    kind: str
    text: str


NO_REASON = WordedReason("", "")


class Removal(NamedTuple):
    """Members that one member took off its list, when it began to, and whether it claimed the mastership with that."""

    remover: str
    at_us: int
    removed: tuple[Member, ...]
    claims: bool


def removals(picture: Picture, recent: Sequence[Record]) -> list[Removal]:
    """Return what `recent` records show of removals by masters, in order of time.

    What one member removed at once is one answer. A member that claims the mastership removes who is not on its first list.
    """
    lists: dict[str, events.ListInstalled] = {}
    found: list[Removal] = []
    for record in recent:
        event = record.event
        if not isinstance(event, events.ListInstalled):
            continue
        before, lists[record.uuid] = lists.get(record.uuid), event
        if before is None or picture.label_of(event.master) != record.member:
            continue
        staying = {member.uuid for member in event.members}
        gone = tuple(member for member in before.members if member.uuid not in staying)
        if gone:
            _add(found, Removal(record.member, record.at, gone, before.master != event.master))
    return found


def _add(found: list[Removal], removal: Removal) -> None:
    for place, earlier in enumerate(found):
        if earlier.remover == removal.remover and removal.at_us - earlier.at_us <= AT_ONCE_US:
            found[place] = earlier._replace(removed=(*earlier.removed, *removal.removed))
            return
    found.append(removal)


def removal_facts(picture: Picture, recent: Sequence[Record], now_us: int) -> Iterator[Fact]:
    """Answer who was removed, and why, the latest first: by the words of the remover, and of the removed of its own end."""
    found = removals(picture, recent)
    reasons: dict[tuple[str, Address], list[tuple[int, WordedReason]]] = {}
    ends: dict[str, tuple[int, str]] = {}
    for record in recent:
        match record.event:
            # A claimant leaves out whom it suspects.
            case (
                events.MemberRemoved(address=address, reason=reason, cause=cause)
                | events.SuspicionRaised(suspect=address, reason=reason, cause=cause)
            ):
                given = WordedReason(reason if cause == "unknown" else cause, reason)
                reasons.setdefault((record.member, address), []).append((record.at, given))
            case events.SuspicionCleared(suspect=address):
                reasons.setdefault((record.member, address), []).append((record.at, NO_REASON))
            case events.MemberStopped(reason=reason):
                ends[record.uuid] = record.at, reason
    answers: list[tuple[str, Tone]] = []
    for removal in reversed(found[-ANSWERS_SHOWN:]):
        names = names_text((member.address for member in removal.removed), picture.label_of)
        ago = age_text(max(now_us - removal.at_us, 0))
        by = f"{removal.remover}{', which claimed the mastership' if removal.claims else ''}"
        of_each = [_reason(picture, removal, member, reasons, ends) for member in removal.removed]
        why = {reason.kind: reason.text for reason in reversed(of_each)}  # of one kind the first one's words
        text = with_names("; ".join(reversed(why.values())), picture.label_of)
        answers.append((f"{names} by {by}, {ago} ago: {text}", "warning"))
    if len(found) > ANSWERS_SHOWN:
        answers.append((f"and {len(found) - ANSWERS_SHOWN} times before", "faint"))
    if not found:
        answers += _removed_in_words(picture, recent, now_us) or [
            ("no member, as far back as is remembered here", "faint")
        ]
    yield from under("who was removed, and why", answers)


def _removed_in_words(picture: Picture, recent: Sequence[Record], now_us: int) -> list[tuple[str, Tone]]:
    """Return the removals that members say without a list before, or whose lists are not in their logs."""
    logged = {label: belief for label, belief in picture.members.items() if "logs" in belief.witnessed_by}
    said: list[tuple[str, Tone]] = [
        (
            f"{picture.label_of(record.event.address)} by {record.member}, {age_text(max(now_us - record.at, 0))} ago: "
            f"{record.event.reason or 'no reason was given'}; who else was listed is not in its log",
            "warning",
        )
        for record in recent
        if isinstance(record.event, events.MemberRemoved) and record.member in logged
    ]
    listless = [label for label, belief in logged.items() if not belief.members]
    if not said and listless:
        said.append((f"not known: the logs of {listed(listless, MEMBERS_NAMED)} have no member list", "faint"))
    return said[::-1][:ANSWERS_SHOWN]


def _reason(
    picture: Picture,
    removal: Removal,
    member: Member,
    reasons: dict[tuple[str, Address], list[tuple[int, WordedReason]]],
    ends: dict[str, tuple[int, str]],
) -> WordedReason:
    """Say why, by what was said up to the removal: what came long after it is no reason."""
    latest_us = removal.at_us + AT_ONCE_US
    ended_us, end = ends.get(member.uuid, (latest_us + 1, ""))
    if ended_us <= latest_us:
        return WordedReason(end, f"it stopped: {end}")
    given = [reason for at_us, reason in reasons.get((removal.remover, member.address), ()) if at_us <= latest_us]
    reason = given[-1] if given else NO_REASON
    belief = picture.members.get(removal.remover)
    if reason.text:
        return reason
    if belief is None or belief.shows("suspicions"):
        unaccepted = removal.claims and belief is not None and not belief.witnessed_by
        return WordedReason("", "no acceptance of its claim came" if unaccepted else "no reason was given")
    return WordedReason("", f"why is {not_told('suspicions', belief.witnessed_by)}")
