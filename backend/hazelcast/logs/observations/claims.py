"""Claims of the mastership that some members do not accept, or that never end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from quarterdeck.backend.core.membership.events import ClaimFinished, MemberMerging, MemberStopped
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    LogEnds,
    Observation,
    lasted,
    listed,
    observation,
    times,
)

CLAIMING_US = 15 * SECOND_US
"""Where the logs end sooner after a claim began, it may just go on."""


@dataclass
class _Claimant:
    messages: list[InterpretedMessage] = field(default_factory=list)
    """Those that show trouble with its claims."""
    refusers: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    reasons: Counter[str] = field(default_factory=Counter)
    unfinished: int = 0

    def without_end(self, began: InterpretedMessage) -> _Claimant:
        """Return the same with one more claim that has not ended."""
        return replace(self, messages=[*self.messages, began], unfinished=self.unfinished + 1)


class ClaimsNotAccepted:
    """Collects, for each claimant, the members that refused, those left out, and claims without an end."""

    reads = (
        ClaimFinished, MemberMerging, MemberStopped, logged.LoggedClaimStart, logged.LoggedClaimFinish,
        logged.LoggedClaimRefusal, logged.LoggedStart,
    )  # fmt: skip

    def __init__(self) -> None:
        self._claimants: dict[str, _Claimant] = {}
        self._open: dict[str, InterpretedMessage] = {}

    def add(self, message: InterpretedMessage) -> None:
        member = message.member
        match message.parsed:
            case logged.LoggedClaimStart():
                self._open[member] = message
            case logged.LoggedClaimFinish():
                self._open.pop(member, None)
            case logged.LoggedClaimRefusal(claimant=claimant, reason=reason):
                found = self._claimants.setdefault(str(claimant), _Claimant())
                found.refusers.add(member)
                found.reasons[reason] += 1
                found.messages.append(message)
            case logged.LoggedStart():
                self._give_up(member)
        if message.ends_incarnation:
            self._give_up(member)
        for finished in message.events(ClaimFinished):
            if finished.left_out:
                found = self._claimants.setdefault(member, _Claimant())
                found.left_out |= {str(address) for address in finished.left_out}
                found.messages.append(message)

    def _give_up(self, member: str) -> None:
        began = self._open.pop(member, None)
        if began is not None:
            self._claimants[member] = self._claimants.get(member, _Claimant()).without_end(began)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return for each claimant what became of its claims."""
        still_open = {
            claimant: began for claimant, began in self._open.items() if ends.of(claimant) - began.at >= CLAIMING_US
        }
        for claimant in {**self._claimants, **still_open}:
            found = self._claimants.get(claimant, _Claimant())
            if claimant in still_open:
                found = found.without_end(still_open[claimant])
            parts = []
            if found.refusers:
                parts.append(f"refused by {listed(sorted(found.refusers))}")
            if silent := found.left_out - found.refusers:
                parts.append(f"not answered in time by {listed(sorted(silent))}")
            if found.unfinished:
                waited = f" for {lasted(ends.of(claimant) - still_open[claimant].at)}" if claimant in still_open else ""
                parts.append(f"not finished {times(found.unfinished)}{waited}")
            said = "; ".join(f"“{reason}” {times(count)}" for reason, count in found.reasons.most_common(3))
            yield observation(
                "claim-not-accepted",
                sorted({claimant, *found.refusers, *found.left_out}),
                f"the mastership claim of {claimant} was {listed(parts)}",
                detail=f"Those who refused said: {said}." if said else "No member says why.",
                cause="The claimant and the others do not agree who is alive: the network is broken in parts, or a member that "
                "was removed still takes itself for one.",
                remedy="A member that is left out ends in a cluster of its own and merges later. Look at the network between "
                "the claimant and those who refused or did not answer.",
                evidence=found.messages,
                is_open=claimant in still_open,
            )
