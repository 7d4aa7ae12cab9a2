"""How mastership passes: claims, the answers that they are made of, and the lineages that they found.

The rules are those of Cluster Service Consistency Improvements, Mastership Claim Process.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.invariants.invariant import Invariant, Violation

BY_CLAIM = "mastership claim"
"""The cause of the list that a claim ends with."""


@dataclass(slots=True)
class _Claim:
    started: Record
    latest_version: int
    latest: tuple[Member, ...] | None
    """The newest list among the claimant's own and those answered; None when it is not known from the records."""
    answers: dict[Address, tuple[events.ClaimAnswered, Record]] = field(default_factory=dict)

    def newest_answer(self) -> Record | None:
        """Return the record of the first answer with the newest list that was answered."""
        versions = ((answer.version, record) for answer, record in self.answers.values())
        return next((record for version, record in versions if version == self.latest_version), None)


@dataclass(eq=False)
class ClaimInvariant(Invariant):
    """Follows the claims under way, by claimant, with the newest list that each has learned of."""

    _claims: dict[str, _Claim] = field(default_factory=dict)

    def _start(self, record: Record, event: events.ClaimStarted) -> None:
        view = self._incarnations.of(record).view
        self._claims[record.uuid] = _Claim(record, event.version, view.members if view else None)

    def _answer(self, record: Record, event: events.ClaimAnswered) -> None:
        claim = self._claims.get(record.uuid)
        if claim is None:
            return
        claim.answers[event.by] = event, record
        if event.answer == "accepted" and event.version > claim.latest_version:
            other = self._incarnations.by_address.get(event.by)
            view = other.view if other is not None else None
            claim.latest_version = event.version
            claim.latest = view.members if view is not None and view.version == event.version else None

    def _abandon(self, record: Record, event: events.ClaimAbandoned) -> None:
        self._claims.pop(record.uuid, None)


@dataclass(eq=False)
class ClaimSoundness(ClaimInvariant):
    """A claim ends newer than every list answered, with the claimant and just those who accepted (M9).

    A member that accepted is missing when the claimant suspects it by then, and may be missing when the newest list answered does
    not hold it.
    """

    name = "claim soundness"

    _finished: dict[str, tuple[events.ClaimFinished, Record]] = field(default_factory=dict)
    """By claimant, until the list is installed."""

    def _finish(self, record: Record, event: events.ClaimFinished) -> Violation | None:
        self._finished[record.uuid] = event, record
        claim = self._claims.pop(record.uuid, None)
        if claim is None:
            return self.violated(f"{record.member} finished a claim that it never started", record)
        if event.version <= claim.latest_version:
            text = f"{record.member} claimed v{event.version}, no newer than v{claim.latest_version}, which it knew"
            return self.violated(text, claim.newest_answer() or claim.started, record)
        for address in event.accepted:
            answer, answered = claim.answers.get(address, (None, claim.started))
            if answer is None or answer.answer != "accepted":
                how = "never answered" if answer is None else f"answered {answer.answer!r}"
                return self.violated(f"{record.member} takes {address} along, which {how}", answered, record)
        for address, (answer, answered) in claim.answers.items():
            is_left_out = answer.answer == "accepted" and address not in event.accepted
            if is_left_out and not self._excused(record, claim, address):
                return self.violated(f"{record.member} leaves {address} out, which accepted", answered, record)
        return None

    def _excused(self, record: Record, claim: _Claim, address: Address) -> bool:
        if claim.latest is None:
            return True
        claimant = self._incarnations.of(record)
        # The incarnation that accepted stands on the claimant's own list; another may live at its address by now.
        incarnations = {member.uuid for member in (*claim.latest, *claimant.members) if member.address == address}
        listed = any(member.address == address for member in claim.latest)
        return not listed or not incarnations.isdisjoint(claimant.suspected)

    def _install(self, record: Record, event: events.ListInstalled) -> Violation | None:
        if event.cause != BY_CLAIM:
            return None
        finished, witness = self._finished.pop(record.uuid, (None, record))
        if finished is None:
            return self.violated(f"{record.member} installed a list by a claim that it has not finished", record)
        addresses = tuple(member.address for member in event.members)
        promised = (self._incarnations.of(record).address, *finished.accepted)
        if addresses != promised or (event.version, event.lineage) != (finished.version, finished.lineage):
            text = f"the list that {record.member} installed is not the one of its claim"
            return self.violated(text, witness, record)
        suspected = self._incarnations.of(record).suspected
        for member in event.members:
            if (since := suspected.get(member.uuid)) is not None:
                return self.violated(f"{record.member} takes {member.address} along, which it suspects", since, record)
        return None


class ClaimCompleteness(ClaimInvariant):
    """A claim decides on every incarnation that the newest answer names: it follows, was asked in vain, or is suspected itself.

    A suspicion of an earlier incarnation at the same address says nothing about this one (seed 000: the claimant asks the new
    members that it discovers in an answer).
    """

    name = "claim completeness"

    def _finish(self, record: Record, event: events.ClaimFinished) -> Violation | None:
        claim = self._claims.pop(record.uuid, None)
        if claim is None or claim.latest is None:
            return None
        uuids = [member.uuid for member in claim.latest]
        younger = claim.latest[uuids.index(record.uuid) + 1 :] if record.uuid in uuids else ()
        suspected = self._incarnations.of(record).suspected
        asked = {*event.accepted, *event.left_out, *claim.answers}
        for member in younger:
            if member.address not in asked and member.uuid not in suspected:
                text = f"{record.member} leaves {member.address} out, which it neither asked nor suspects"
                return self.violated(text, claim.started, claim.newest_answer(), record)
        return None


class OldestLeads(Invariant):
    """A master was the oldest of its list, or it and all who accepted its claim suspected those who were older (M6)."""

    name = "oldest leads"

    def _start(self, record: Record, event: events.ClaimStarted) -> Violation | None:
        return self._trusting(record, self._incarnations.of(record).older(), "claims mastership")

    def _follow(self, record: Record, event: events.MasterChanged) -> Violation | None:
        view = self._incarnations.of(record).view
        if event.cause != "claim-accepted" or view is None:
            return None
        older = takewhile(lambda member: member.address != event.master, view.members)
        return self._trusting(record, older, f"accepts the claim of {event.master}")

    def _trusting(self, record: Record, older: Iterable[Member], what: str) -> Violation | None:
        incarnation = self._incarnations.of(record)
        trusted = [member.address for member in older if member.uuid not in incarnation.suspected]
        if not trusted:
            return None
        text = f"{record.member} {what} without suspecting {', '.join(trusted)}, who are older"
        return self.violated(text, incarnation.view_record, record)

    def _install(self, record: Record, event: events.ListInstalled) -> Violation | None:
        incarnation = self._incarnations.of(record)
        if not incarnation.is_author_of(event) or event.cause == BY_CLAIM:
            return None
        before, witness = incarnation.before, incarnation.before_record
        if before is None or witness is None:
            if len(event.members) == 1:
                return None
            return self.violated(f"{record.member} made its first list of more than itself", record)
        if before.members and before.members[0].uuid == record.uuid:
            return None
        text = f"{record.member} made v{event.version} without a claim, while {before.master} led v{before.version}"
        return self.violated(text, witness, record)


@dataclass(eq=False)
class LineageChange(Invariant):
    """Within an incarnation the lineage changes only by a claim: one's own, or one that it accepted (M1')."""

    name = "lineage"

    _claims: dict[str, tuple[events.ClaimFinished, Record]] = field(default_factory=dict)
    """By the lineage that they founded."""

    def _finish(self, record: Record, event: events.ClaimFinished) -> Violation | None:
        _, witness = self._claims.setdefault(event.lineage, (event, record))
        if witness is record:
            return None
        return self.violated(f"{event.lineage} was founded by two claims", witness, record)

    def _install(self, record: Record, event: events.ListInstalled) -> Violation | None:
        incarnation = self._incarnations.of(record)
        before, witness = incarnation.before, incarnation.before_record
        if before is None or witness is None or before.lineage == event.lineage:
            return None
        claim = self._claims.get(event.lineage)
        step = f"{record.member} went from {before.lineage} to {event.lineage}"
        if claim is None:
            return self.violated(f"{step}, which no claim founded", witness, record)
        finished, founded = claim
        if founded.uuid == record.uuid or incarnation.address in finished.accepted:
            return None
        return self.violated(f"{step}, whose claim it did not accept", witness, founded, record)


class MergedVersion(Invariant):
    """An incarnation that merged into another cluster begins there with a greater version than it had before the merge (M1').

    Only a winner that still leads has promised that. If it died meanwhile, or does not answer, the incarnation that merges joins
    the cluster that it finds, which may be younger than its own was.
    """

    name = "merged version"

    def _install(self, record: Record, event: events.ListInstalled) -> Violation | None:
        incarnation = self._incarnations.of(record)
        if incarnation.before is not None or not incarnation.merged_from or not event.members:
            return None
        old = self._incarnations.by_uuid.get(incarnation.merged_from)
        if old is None or old.view is None or old.view_record is None or old.merge_target != event.members[0].uuid:
            return None
        if event.version > old.view.version:
            return None
        text = f"{record.member} merged from v{old.view.version} into v{event.version} of {event.lineage}"
        return self.violated(text, old.view_record, record)
