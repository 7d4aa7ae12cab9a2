"""What a master would decide now on what its slaves report of one another, and what each side would lose.

See Partial Member Disconnection Resolution.

The decision is the core's own, on the reports that the master has. What the picture adds are the alternatives as sets of members,
and the data that hangs on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import DisconnectionReported, DisconnectionResolved, SettingsChanged
from quarterdeck.backend.core.membership.partial_disconnection.conflict_graph import (
    SHOWN_ALTERNATIVES,
    CliqueCandidate,
    ConflictGroup,
    ConflictResolution,
    alternatives_of,
    conflict_sets,
    resolve_conflicts,
)
from quarterdeck.backend.core.membership.partial_disconnection.independent_set import components
from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import vertices_of
from quarterdeck.backend.core.properties import DOCUMENTED, SECOND_US
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact, not_told_fact, under
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, names_text, one_line, with_names

RULE = "the greatest set without a conflict: most data members, then most members, then the oldest"
"""The rule by which `resolve_conflicts` of the core chooses."""

PREVIEW_BUDGET = 60_000
"""Vertex visits spent on a decision that is only predicted; some 30 ms. The master may spend ten times as many."""

REPORTS_SHOWN = 6


class SideCost(NamedTuple):
    """The members of one side after two have parted, and what they lose."""

    members: int
    data: int
    """Those of them that hold data."""
    lacks: int | None
    """Partitions of which all of them together hold no replica, by the master's table; None while it has none."""


class RemovalChoice(NamedTuple):
    """Who would go, in order of age, and what that costs."""

    remove: tuple[Address, ...]
    stay: SideCost
    go: SideCost


@dataclass(frozen=True, slots=True)
class DisconnectionDecision:
    """What a master would decide now, and what it could decide as well."""

    conflicts: tuple[tuple[Address, Address], ...]
    """Who reports whom, whatever counts of it."""
    keep: tuple[Address, ...]
    chosen: RemovalChoice
    exact: bool
    why: str
    alternatives: tuple[RemovalChoice, ...]
    """As many data members and as many members would stay. A few of them."""
    searched: bool
    """Whether all alternatives were looked for."""
    combine: bool
    """Whether they settle several disputes, so that one of them may go with another."""


def decide(master: MemberBelief) -> DisconnectionDecision | None:
    """Return what `master` would decide on the reports it has; None when it has none."""
    if not master.reports or not master.is_master:
        return None
    conflicts = tuple((reporter, other) for reporter, suspects in master.reports.items() for other in suspects)
    candidates = [CliqueCandidate(member.address, member.lite) for member in master.members]
    settlement = resolve_conflicts(candidates, conflicts, work_budget=PREVIEW_BUDGET)
    remove = tuple(map(Address, settlement.remove))
    others, searched, disputes = _alternatives(candidates, conflicts, settlement)
    keep, alternatives = tuple(map(Address, settlement.keep)), tuple(_choice(master, other) for other in others)
    chosen, exact, why = _choice(master, remove), settlement.exact, settlement.why
    return DisconnectionDecision(conflicts, keep, chosen, exact, why, alternatives, searched, disputes > 1)


def decision_facts(
    picture: Picture,
    master: MemberBelief,
    decision: DisconnectionDecision | None,
    timing: Timing,
    now_us: int,
    changed_us: int | None,
) -> tuple[Fact, ...]:
    """Return what `master` has heard, what it would decide, what that costs, and when.

    `changed_us`: when its reports changed last.
    """
    facts = [Fact("master", one_line(f"{master.label}, list v{master.version} of {len(master.members)}"), "strong")]
    if decision is None and not master.shows("suspicions"):
        facts.append(not_told_fact("reports", "suspicions", master.witnessed_by))
    elif decision is None:
        facts.append(Fact("reports", "none: there is nothing to decide", "faint"))
        facts += _unreported_suspicions(picture, master, timing)
    else:
        facts += _report_facts(picture, master, decision)
        facts.append(Fact("when", _when(timing, now_us, changed_us), "warning"))
    facts += _settled_before(picture, master, now_us)
    return tuple(Fact(fact.heading, one_line(fact.text), fact.tone) for fact in facts)


def _report_facts(picture: Picture, master: MemberBelief, decision: DisconnectionDecision) -> Iterator[Fact]:
    name_of = picture.label_of
    both = set(decision.conflicts)
    reporters = list(master.reports.items())
    said = []
    for reporter, suspects in reporters[:REPORTS_SHOWN]:
        marked = [f"{'⇄ ' if (other, reporter) in both else ''}{name_of(other)}" for other in suspects]
        said.append(f"{name_of(reporter)} cannot reach {listed(marked, REPORTS_SHOWN)}")
    if len(reporters) > REPORTS_SHOWN:
        said.append(f"{len(reporters) - REPORTS_SHOWN} more report others")
    yield from under("reports", said, "warning")
    chosen = decision.chosen
    if not chosen.remove:
        yield Fact("decides now", "all stay: no report that counts")
        return
    proven = "" if decision.exact else "; the best found in a short search, the master searches longer"
    text = f"keeps {names_text(decision.keep, name_of)}; removes {names_text(chosen.remove, name_of)}{proven}"
    yield Fact("decides now", text, "bad")
    yield Fact("", f"rule: {RULE}", "faint")
    yield Fact("", with_names(decision.why, name_of))
    yield Fact("would lose", cost_text(chosen), "warning" if chosen.stay.lacks else "plain")
    others = (
        f"{names_text(choice.remove, name_of)} could go instead: {cost_text(choice)}"
        for choice in decision.alternatives
    )
    yield from under("as good", others)
    if decision.combine:
        yield Fact("", "they settle different disputes, so one may go with another", "faint")
    if not decision.searched:
        yield Fact("" if decision.alternatives else "as good", "there may be more choices as good", "faint")
    elif not decision.alternatives:
        yield Fact("as good", "no other choice keeps as many", "faint")


def cost_text(choice: RemovalChoice) -> str:
    """Return what both sides lose, in a sentence."""
    texts = []
    for (members, data, lacks), verb, plural in ((choice.stay, "stays", "stay"), (choice.go, "goes", "go")):
        lite = f" ({members - data} lite)" if members > data else ""
        text = f"{counted(members, 'member')}{lite} {verb if members == 1 else plural}"
        if lacks is not None:
            text += f" without {counted(lacks, 'partition')}" if lacks else " with all partitions"
        texts.append(text)
    return "; ".join(texts) if choice.stay.lacks is not None else f"{', '.join(texts)}; there are no partitions yet"


def _when(timing: Timing, now_us: int, changed_us: int | None) -> str:
    quiet = "" if changed_us is None else f"; they have not changed for {age_text(now_us - changed_us)}"
    quiet_us = timing.quiet_us
    if quiet_us is None:
        return f"when the reports have not changed for some heartbeats{quiet}"
    if changed_us is None:
        return f"when the reports have not changed for {age_text(quiet_us)}"
    left_us = changed_us + quiet_us - now_us
    return f"in about {age_text(left_us)}{quiet}" if left_us > 0 else f"at the next heartbeat{quiet}"


def _unreported_suspicions(picture: Picture, master: MemberBelief, timing: Timing) -> Iterator[Fact]:
    silent = [
        belief.label
        for belief in picture.members.values()
        if belief.running and belief.suspicions and belief.master == master.address and belief is not master
        and any(suspicion in master.listed and suspicion != master.address for suspicion in belief.suspicions)
    ]  # fmt: skip
    if not silent:
        return
    named = ", ".join(silent[:REPORTS_SHOWN]) + (", …" if len(silent) > REPORTS_SHOWN else "")
    if timing.settles is False:
        why = "masters do not settle reports here"
    else:
        why = "they come with the next heartbeats, if it wants them"
    yield Fact("not reported", f"{named}: their suspicions have not reached it; {why}", "warning")


def _settled_before(picture: Picture, master: MemberBelief, now_us: int) -> Iterator[Fact]:
    if master.resolution is not None:
        settled, name_of = master.resolution, picture.label_of
        kept, removed = names_text(settled.keep, name_of), names_text(settled.remove, name_of)
        text = f"{age_text(now_us - settled.at_us)} ago: kept {kept}; removed {removed}"
        yield Fact("settled", text, "faint")


def _alternatives(
    members: Sequence[CliqueCandidate], conflicts: Sequence[tuple[Address, Address]], settlement: ConflictResolution
) -> tuple[list[tuple[Address, ...]], bool, int]:
    """Who could go as well, dispute by dispute; whether all such choices were looked for; and how many disputes have any."""
    adjacent = conflict_sets(members, conflicts)
    lite = sum(1 << place for place, member in enumerate(members) if member.lite)
    removed = set(settlement.remove)
    gone = sum(1 << place for place, member in enumerate(members) if member.name in removed)
    disputed = sum(1 << place for place, around in enumerate(adjacent) if around)
    found: list[int] = []
    searched, disputes = settlement.exact, 0
    for group in components(adjacent, disputed) if settlement.exact else ():
        equals = alternatives_of(ConflictGroup(group, group & ~gone, True), lite, adjacent)
        room = SHOWN_ALTERNATIVES - len(found)
        if equals is None or len(equals) > room:
            searched = False
        disputes += bool(equals)
        found += [gone & ~group | group & ~stay for stay in (equals or ())[:room]]
    going = [tuple(Address(members[place].name) for place in vertices_of(clique)) for clique in found]
    return going, searched, disputes


def _choice(master: MemberBelief, remove: tuple[Address, ...]) -> RemovalChoice:
    everyone, going = {member.uuid for member in master.members}, set(remove)
    costs = []
    for goes in (False, True):
        side = [member for member in master.members if (member.address in going) is goes]
        others = everyone.difference(member.uuid for member in side)
        lacks = len(master.table.loss_without(others, everyone).lost) if master.table is not None else None
        costs.append(SideCost(len(side), sum(not member.lite for member in side), lacks))
    return RemovalChoice(remove, *costs)


# When it decides: by the settings of a member, or by what happened

INTERVAL = "hazelcast.heartbeat.interval.seconds"
QUIET_HEARTBEATS = "hazelcast.partial.member.disconnection.resolution.heartbeat.count"


@dataclass(frozen=True, slots=True)
class Timing:
    """Lengths of time in microseconds; None for what is not known."""

    interval_us: int | None = None
    """Between two heartbeats."""
    quiet_heartbeats: int | None = None
    """For how many heartbeats reports have to stay the same before a master settles them; 0: it never does."""
    quiet_seen_us: int | None = None
    """How long they had stayed the same when one did, the last time."""
    settles: bool | None = None
    """Whether masters settle reports at all."""

    @property
    def quiet_us(self) -> int | None:
        """How long reports have to stay the same before the master decides."""
        if self.quiet_heartbeats and self.interval_us:
            return self.quiet_heartbeats * self.interval_us
        return self.quiet_seen_us


def timing_of(records: Iterable[Record], belief: MemberBelief | None = None) -> Timing:
    """Return what `records`, in order, show of timing; the latest change counts.

    A member whose settings are known goes before.
    """
    known: dict[str, str] = {}
    if belief is not None and belief.settings is not None:  # with the documented defaults for what it did not report
        known = {name: belief.settings.get(name, str(DOCUMENTED[name])) for name in (INTERVAL, QUIET_HEARTBEATS)}
    changed_us: dict[str, int] = {}
    quiet_seen_us: int | None = None
    reported = False
    for record in records:
        match record.event:
            case SettingsChanged(properties):
                if belief is None or belief.settings is None:
                    known.update(properties)
            case DisconnectionReported():
                reported = True
                changed_us[record.uuid] = record.at
            case DisconnectionResolved():
                reported = True
                if record.uuid in changed_us:
                    quiet_seen_us = record.at - changed_us.pop(record.uuid)
    interval, heartbeats = known.get(INTERVAL), known.get(QUIET_HEARTBEATS)
    interval_us = round(float(interval) * SECOND_US) if interval is not None else None
    if heartbeats is None:
        return Timing(interval_us, None, quiet_seen_us, True if reported else None)
    return Timing(interval_us, int(float(heartbeats)), quiet_seen_us, int(float(heartbeats)) > 0)


def reports_changed_us(records: Iterable[Record], master_uuid: str) -> int | None:
    """When the reports of this incarnation of a master changed last, which it records each time; None before any did.

    A decision uses them up.
    """
    changed_us: int | None = None
    for record in records:
        if record.uuid == master_uuid and isinstance(record.event, DisconnectionReported | DisconnectionResolved):
            changed_us = record.at if isinstance(record.event, DisconnectionReported) else None
    return changed_us
