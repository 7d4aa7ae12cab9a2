"""The ledger of losses: each incident of the picture, judged by what the watcher knows, the newest that stands first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from quarterdeck.backend.core.partitions.events import ALL_LOST
from quarterdeck.backend.judgement.absence import has_ended
from quarterdeck.backend.judgement.losses.loss import Doubt, EntriesKnown, Loss
from quarterdeck.backend.judgement.watcher import Watcher
from quarterdeck.backend.picture.fold.loss_incident import FateState, LossIncident, PartitionFate, is_living
from quarterdeck.backend.picture.fold.picture import Picture

SURELY_HIT = 20
"""Keys are spread over partitions by their hash: where so many entries are expected in lost partitions, some were in them."""


def losses_of(picture: Picture, watcher: Watcher, now_us: int) -> tuple[Loss, ...]:
    """Return all losses known at `now_us`: those that stand first, the newest first, then those healed or refuted."""
    if not picture.losses:
        return ()
    ledger = _Ledger(picture, watcher)
    found = [loss for incident in reversed(picture.losses.incidents) for loss in ledger.judge(incident)]
    return tuple(sorted(found, key=lambda loss: (not loss.stands, not loss.is_confirmed, -loss.at_us)))


class _Verdict(NamedTuple):
    """What became of a lost partition."""

    state: FateState
    doubt: Doubt = ""


class _Ledger:
    def __init__(self, picture: Picture, watcher: Watcher) -> None:
        self._picture, self._watcher = picture, watcher
        self._members = picture.members.values()
        self._by_uuid = {belief.uuid: belief for belief in self._members}
        size = watcher.expected_members
        self._is_accepted = size is not None and any(b.leads and len(b.members) >= size for b in self._members)
        """Whether the operator accepts that members which are not on the list do not come back."""

    def judge(self, incident: LossIncident) -> Iterator[Loss]:
        """Yield what became of an incident; where that differs between its partitions, one loss for each state."""
        carriers_of = self._picture.losses.carriers(incident, self._members)
        parts: dict[_Verdict, dict[int, PartitionFate]] = {}
        held_by: dict[_Verdict, dict[str, None]] = {}
        known: dict[tuple[str, ...], _Verdict] = {}
        for partition, fate in incident.fates.items():
            verdict, carriers = _Verdict(fate.state), tuple[str, ...]()
            if fate.is_apart:
                verdict = _Verdict(fate.state, "apart")
            elif fate.state == "feared":
                carriers = tuple(uuid for uuid in carriers_of(partition, fate) if not self._has_ended(uuid))
                if carriers not in known:
                    known[carriers] = self._verdict(incident, carriers)
                verdict = known[carriers]
            parts.setdefault(verdict, {})[partition] = fate
            held_by.setdefault(verdict, {}).update(dict.fromkeys(carriers))
        for verdict, fates in parts.items():
            found, lost = verdict, fates
            if verdict.state == "confirmed":
                found = self._had_entries(incident, fates)
            if found.state == "refuted" and len(parts) > 1:
                continue
            if found.state == "confirmed" and not incident.is_witnessed:
                lost = {partition: fate for partition, fate in fates.items() if fate.entries}
            is_all = len(lost) == len(fates)
            yield self._loss(incident, found, lost, self._labels(held_by[verdict]), is_all=is_all)
        if not incident.fates:
            yield self._loss(incident, self._verdict(incident, ()), {}, ())

    def _has_ended(self, incarnation: str) -> bool:
        """Return whether an incarnation holds nothing any more, by records or by what the watcher sees of its process."""
        if self._is_accepted and not self._is_seen(incarnation):
            return True
        belief = self._by_uuid.get(incarnation)
        if belief is None:
            return False
        missed = self._watcher.missed.get(belief.label) or self._watcher.missed.get(belief.address)
        return has_ended(belief) or (missed is not None and missed.has_ended)

    def _is_seen(self, incarnation: str) -> bool:
        belief = self._by_uuid.get(incarnation)
        missed = self._watcher.missed
        return belief is not None and belief.reached and not {belief.label, belief.address} & missed.keys()

    def _verdict(self, incident: LossIncident, carriers: Collection[str]) -> _Verdict:
        """Judge partitions that only these incarnations may hold."""
        losses = self._picture.losses
        if incident.is_witnessed and not incident.is_reported:
            return _Verdict("feared", "started-empty" if incident.was_closed else "unexplained")
        if not carriers:
            return _Verdict("confirmed")
        bringing = set(losses.bringing(incident))
        if bringing.intersection(carriers):
            return _Verdict("feared", "merging")
        left = [uuid for uuid in carriers if uuid not in losses.returned]
        if not left:
            return _Verdict("feared", "returned")
        return _Verdict("feared", "elsewhere" if any(map(self._is_seen, left)) else "not-reached")

    def _had_entries(self, incident: LossIncident, fates: dict[int, PartitionFate]) -> _Verdict:
        """Judge partitions of which no replica is left: they are lost data if entries were in them."""
        if not incident.is_witnessed:
            surely = any(fate.entries for fate in fates.values())
            return _Verdict("confirmed") if surely else _Verdict("feared", "entries-unknown")
        if (lost := incident.entries_lost()) is not None and (lost[1] or not lost[0]):
            return _Verdict("confirmed" if lost[0] else "refuted")
        maps, before = incident.lost_maps(), incident.before
        if maps is None or before is None:
            return _Verdict("feared", "entries-unknown")
        partitions = max((b.table.partitions for b in self._members if b.table is not None), default=0)
        expected = sum(before.entries[name] for name in maps) * len(fates) / partitions if partitions else 0
        if not maps:
            return _Verdict("refuted")
        return _Verdict("confirmed") if expected >= SURELY_HIT else _Verdict("feared", "entries-unknown")

    def _loss(
        self,
        incident: LossIncident,
        verdict: _Verdict,
        fates: dict[int, PartitionFate],
        held_by: tuple[str, ...],
        *,
        is_all: bool = True,
    ) -> Loss:
        """Make the loss of these partitions. Unless they are all, others may have had entries that were not counted."""
        entries, known = self._entries(incident, verdict, fates)
        if known == "exact" and not is_all:
            known = "last-counted"
        maps = incident.lost_maps()
        side = self._side(incident)
        went = [self._picture.label_of(address) for address in incident.went.values()]
        return Loss(
            side=side,
            state=verdict.state,
            lost=frozenset(fates),
            at_most_backups=None if incident.at_most >= ALL_LOST else incident.at_most,
            maps=tuple(sorted(incident.maps)) if maps is None else maps,
            at_us=incident.at_us,
            entries=entries,
            entries_known=known,
            because_of=tuple(label for label in dict.fromkeys(went) if label != side),
            doubt=verdict.doubt,
            held_by=tuple(label for label in held_by if label != side),
        )

    def _entries(
        self, incident: LossIncident, verdict: _Verdict, fates: dict[int, PartitionFate]
    ) -> tuple[int | None, EntriesKnown]:
        if verdict.state == "refuted":
            return 0, "exact"
        if incident.is_witnessed:
            lost = incident.entries_lost()
            return (None, "unknown") if lost is None else (lost[0], "exact" if lost[1] else "at-most")
        counts = [fate.entries for fate in fates.values()]
        if None in counts or not counts:
            return None, "unknown"
        is_exact = all(fate.is_exact for fate in fates.values())
        return sum(filter(None, counts)), "exact" if is_exact else "last-counted"

    def _labels(self, incarnations: Iterable[str]) -> tuple[str, ...]:
        """Return each label once: of members, of those that went on as another incarnation, or the address of one never met."""
        losses, found = self._picture.losses, dict[str, None]()
        for uuid in incarnations:
            belief = self._by_uuid.get(losses.returned.get(uuid, uuid)) or self._by_uuid.get(uuid)
            if belief is not None:
                found[belief.label] = None
            else:
                found.update(
                    (self._picture.label_of(incident.went[uuid]), None)
                    for incident in losses.incidents if uuid in incident.went
                )  # fmt: skip
        return tuple(sorted(found))

    def _side(self, incident: LossIncident) -> str:
        """Return the label of the master of the side now; where no member of that side is left, of its master then."""
        own = [belief for belief in self._members if is_living(belief) and belief.lineage in incident.lineages]
        if leading := [belief for belief in own if belief.is_master] or own:
            return max(leading, key=lambda belief: belief.version).label
        return self._picture.label_of(incident.master) if incident.master is not None else ""
