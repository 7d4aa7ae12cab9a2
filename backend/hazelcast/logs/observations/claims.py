"""Claims of the mastership that not everybody accepts, or that never end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from quarterdeck.backend.core.events import ClaimFinished
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    EvidenceLines,
    LogEnds,
    Observation,
    has_ended,
    lasted,
    listed,
    records_of_kind,
    times,
)
from quarterdeck.backend.hazelcast.logs.parsed_messages import (
    LoggedClaimFinish,
    LoggedClaimRefusal,
    LoggedClaimStart,
    LoggedStart,
)
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage


@dataclass
class _Claimant:
    first: ToldMessage | None = None
    last: ToldMessage | None = None
    refusers: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    reasons: Counter[str] = field(default_factory=Counter)
    unfinished: int = 0
    evidence: EvidenceLines = field(default_factory=EvidenceLines)

    def add(self, told: ToldMessage) -> None:
        """The message tells of trouble with a claim of this member."""
        self.first, self.last = self.first or told, told
        self.evidence.add(told)


class ClaimsNotAccepted:
    """Collects, for each claimant, who refused, who was left out, and claims without an end."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._claimants: dict[str, _Claimant] = {}
        self._open: dict[str, ToldMessage] = {}

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        member = told.place.member
        match told.parsed:
            case LoggedClaimStart():
                self._open[member] = told
            case LoggedClaimFinish():
                self._open.pop(member, None)
            case LoggedClaimRefusal(claimant=claimant, reason=reason):
                found = self._claimant(str(claimant))
                found.refusers.add(member)
                found.reasons[reason] += 1
                found.add(told)
            case LoggedStart():
                self._give_up(member)
            case _:
                pass
        if has_ended(told):
            self._give_up(member)
        for _, finished in records_of_kind(told, ClaimFinished):
            if finished.left_out:
                found = self._claimant(member)
                found.left_out |= {str(address) for address in finished.left_out}
                found.add(told)

    def _claimant(self, address: str) -> _Claimant:
        return self._claimants.setdefault(address, _Claimant())

    def _give_up(self, member: str) -> None:
        began = self._open.pop(member, None)
        if began is not None:
            self._claimant(member).unfinished += 1
            self._claimant(member).add(began)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """For each claimant what became of its claims."""
        still_open = dict(self._open)
        for member in still_open:
            self._give_up(member)
        for claimant, found in self._claimants.items():
            if found.first is None or found.last is None:
                continue
            parts = []
            if found.refusers:
                parts.append(f"refused by {listed(sorted(found.refusers))}")
            if silent := found.left_out - found.refusers:
                parts.append(f"not answered in time by {listed(sorted(silent))}")
            if found.unfinished:
                waited = f" for {lasted(ends.of(claimant) - still_open[claimant].at)}" if claimant in still_open else ""
                parts.append(f"not finished {times(found.unfinished)}{waited}")
            said = "; ".join(f"“{reason}” {times(count)}" for reason, count in found.reasons.most_common(3))
            yield Observation(
                kind="claim-not-accepted",
                run=self._run,
                start_us=found.first.at,
                end_us=found.last.at,
                is_open=claimant in still_open,
                members=tuple(sorted({claimant, *found.refusers, *found.left_out})),
                headline=f"the mastership claim of {claimant} was {listed(parts)}",
                detail=f"Those who refused said: {said}." if said else "Nobody says why.",
                cause="The claimant and the others do not agree who is alive: the network is broken in parts, or a member that "
                "was removed still takes itself for one.",
                remedy="Whoever is left out ends in a cluster of its own and merges later. Look at the network between the "
                "claimant and those who refused or did not answer.",
                evidence=found.evidence.kept,
                evidence_lines=found.evidence.count,
                start_utc=found.first.place.utc,
                end_utc=found.last.place.utc,
            )
