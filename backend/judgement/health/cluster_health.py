"""Whether a cluster is whole and its data safe, and one sentence that says both, the alarm first.

It is judged from the picture alone, for every kind of cluster. What is not known is neither well nor ill: a member that is silent
is not dead, and one that is on no list that is seen may be on one that is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.absence import Absence, has_ended
from quarterdeck.backend.judgement.agreement import SETTLING_US, ListAgreement
from quarterdeck.backend.judgement.health.refusal import CallRefusal
from quarterdeck.backend.judgement.health.replica_safety import SEARCHED_TABLE, ReplicaSafety
from quarterdeck.backend.judgement.losses.loss import Doubt, Loss
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, one_line

RUNBOOKS = "docs/operators/runbooks.md"
LONGEST = 100
"""Letters of a sentence."""
ALARM_US = 600 * SECOND_US
"""A loss is the first thing said for so long; after that it stands behind what is so now."""
ALARMING: frozenset[Doubt] = frozenset(("elsewhere", "not-reached", "entries-unknown", "started-empty"))
"""Doubts about a loss that do not pass by themselves."""
NAMES = (4, 3, 2)
"""How many members of one kind are named, as far as the sentence has room."""

Condition = Literal["healthy", "changing", "degraded", "split", "data-lost", "down", "unknown"]

SHOWN: dict[Condition, tuple[str, Tone]] = {
    "healthy": ("healthy", "good"),
    "changing": ("changing", "warning"),
    "degraded": ("degraded", "warning"),
    "split": ("SPLIT", "bad"),
    "data-lost": ("DATA LOST", "bad"),
    "down": ("down", "bad"),
    "unknown": ("unknown", "warning"),
}
"""The word that a sentence begins with, and its tone."""


class ClusterHealth(Struct, frozen=True):
    """The answers to an operator's two questions, and the sentence that says them."""

    condition: Condition
    whole: bool | None
    """Whether there is one list with one master, and every member on it is reached; None where it is not known."""
    replicas: ReplicaSafety
    losses: tuple[Loss, ...]
    sentence: str
    is_loss_feared: bool = False
    """Whether data that was lost lately on this side may be gone, by a doubt that does not pass by itself."""

    @property
    def data_safe(self) -> bool | None:
        """Whether every replica that should be there is there and in step; None where it is not known."""
        split = self.condition == "split" and self.replicas.safe is not None
        return False if split else self.replicas.safe

    @property
    def data_lost(self) -> Loss | None:
        """The newest loss that is confirmed, else the newest that is feared."""
        return next((loss for loss in self.losses if loss.stands), None)

    @property
    def _more_losses(self) -> int:
        return sum(loss.stands for loss in self.losses) - 1

    @property
    def runbook(self) -> str:
        """The section of the documents on what to do about it; empty where all is well."""
        return "" if self.condition == "healthy" else f"{RUNBOOKS}#{self.condition}"

    @property
    def narrated(self) -> str:
        """The sentence with its runbook, for logs."""
        return f"{self.sentence} ({self.runbook})" if self.runbook else self.sentence

    @property
    def tone(self) -> Tone:
        return "bad" if self.replicas.ownerless else SHOWN[self.condition][1]

    def as_fields(self, now_us: int) -> dict[str, object]:
        loss = self.data_lost
        return {
            "sentence": self.sentence,
            "runbook": self.runbook or None,
            "whole": self.whole,
            "data_safe": self.data_safe,
            "copies": self.replicas.copies,
            "data_lost": None if loss is None else {**loss.as_fields(now_us), "more": self._more_losses},
        }


def cluster_health(
    agreement: ListAgreement,
    absences: Sequence[Absence],
    replicas: ReplicaSafety,
    refusals: Sequence[CallRefusal],
    losses: Sequence[Loss],
) -> ClusterHealth:
    """Judge a cluster by its lists, by who is absent, by its replicas, by what is refused now and by what was lost."""
    return _Judgement(agreement, absences, replicas, refusals, losses).health()


class _Judgement:
    def __init__(
        self,
        agreement: ListAgreement,
        absences: Sequence[Absence],
        replicas: ReplicaSafety,
        refusals: Sequence[CallRefusal],
        losses: Sequence[Loss],
    ) -> None:
        self._agreement, self._absences, self._replicas = agreement, absences, replicas
        self._refusals, self._losses = refusals, tuple(losses)
        self._picture, self._now_us = agreement.picture, agreement.now_us
        self._running, self._masters, self._lists = agreement.holders, agreement.masters, agreement.lists
        self._lost = [loss for loss in self._losses if loss.stands]

    def health(self) -> ClusterHealth:
        if not self._running:
            return self._without_members()
        if len(self._agreement.sides) > 1:
            return self._split()
        troubles, unknown = self._troubles()
        missing = [absence for absence in self._absences if absence.left_us is not None]
        alarming = [absence for absence in missing if absence.is_alarm(self._now_us)]
        noted = [absence for absence in missing if absence not in alarming]
        unseen = [
            absence.label
            for absence in self._absences
            if absence.way == "not reached" and not absence.is_listed and absence not in missing
        ]
        settled = self._agreement.is_settled
        changing = not settled and self._now_us - self._agreement.list_since_us < SETTLING_US
        joins = list(unknown) == ["joining"] and not unseen
        whole: bool | None = not troubles
        if whole and (changing or unknown or unseen or any(absence.way != "gone" for absence in missing)):
            whole = None
        elif not settled or self._agreement.tables_agree is False:
            whole = False
        condition: Condition = "healthy"
        if whole is None and changing:
            condition = "changing"
        elif whole is False or self._replicas.safe is False or alarming or self._refusals:
            condition = "degraded"
        elif joins:
            condition = "changing"
        elif unknown or unseen or self._replicas.is_outdated:
            condition = "unknown"
        elif self._replicas is SEARCHED_TABLE:
            condition = "changing"
        loss = next((loss for loss in self._lost if loss.is_confirmed), None)
        # What fails now stands before what was lost a while ago.
        fresh = loss is not None and self._now_us - loss.at_us < ALARM_US and not self._refusals
        is_feared = any(loss.doubt in ALARMING and self._now_us - loss.at_us < ALARM_US for loss in self._lost)
        if fresh:
            condition = "data-lost"
        elif condition == "healthy" and is_feared:
            condition = "degraded"
        ownerless = any(refusal.kind == "no-owner" for refusal in self._refusals)
        variants = (
            [
                *([loss.text(self._now_us)] if loss is not None and fresh else []),
                *(refusal.text for refusal in self._refusals),
                *_named(troubles, names),
                *self._disagreement(names),
                *([] if troubles and not fresh and not missing else [self._agreed(len(missing))]),
                *self._missing(alarming, names),
                *_named(unknown, names),
                *([f"not seen: {_names(unseen, names)}"] if unseen else []),
                *([self._replicas.text] if self._replicas.safe is not True or not troubles else [])[: not ownerless],
                *self._missing(noted, names),
            ]
            for names in NAMES
        )
        sentence = _sentence(condition, variants, () if fresh else self._lost_texts(self._lost))
        return ClusterHealth(condition, whole, self._replicas, self._losses, sentence, is_loss_feared=is_feared)

    # Conditions

    def _lost_texts(self, losses: Sequence[Loss]) -> list[str]:
        """Return what is said of the first of `losses`, shorter and shorter, and how many more there are."""
        if not losses:
            return []
        loss, more = losses[0], f" and {len(losses) - 1} more" if len(losses) > 1 else ""
        is_behind = loss.is_confirmed and self._now_us - loss.at_us < ALARM_US  # behind calls that fail now
        verb = "DATA LOST" if is_behind else loss.verb
        return [f"{verb} {text}{more}" for text in loss.shorter_texts(self._now_us)]

    def _without_members(self) -> ClusterHealth:
        """Nothing runs as far as is seen: all are known to be gone, or begin, or nothing is known."""
        members, gone = self._picture.members, self._agreement.watcher.gone
        joining = [absence for absence in self._absences if absence.way == "joining" and not absence.is_listed]
        ended = [label for label, belief in members.items() if label in gone or has_ended(belief)]
        whole: bool | None = False
        condition: Condition
        if joining:
            condition, said = "changing", f"{counted(len(joining), 'member')} joining, no member list yet"
        elif members and len(ended) == len(members):
            condition, said = "down", f"no member runs: {counted(len(ended), 'member')} ended"
        else:
            condition, said, whole = "unknown", "no member is reached", None
        lost = [loss for loss in self._lost if loss.doubt != "entries-unknown"]
        sentence = _sentence(condition, [[said]], self._lost_texts(lost))
        return ClusterHealth(condition, whole, self._replicas, self._losses, sentence)

    def _split(self) -> ClusterHealth:
        masters, sides, unheard = self._masters, self._agreement.sides, self._agreement.unheard
        began = [master.lineage_since_us for master in masters]
        known = sorted(since_us for since_us in began if since_us is not None)
        # The lineage that is older went on; the split began with the next.
        since = f" since {age_text(self._now_us - known[1])}" if 1 < len(known) == len(masters) else ""
        sizes = " + ".join(str(side.size) for side in sides[: NAMES[0]])
        sizes += " + …" if len(sides) > NAMES[0] else ""
        heard_us = [self._now_us - side.unheard_since_us for side in unheard if side.unheard_since_us is not None]
        last_heard = f", not heard for {age_text(max(heard_us))}" if heard_us else ""
        variants = (
            [
                f"{sizes}, masters {_names([side.master for side in sides], names)}",
                *([f"{_names([side.master for side in unheard], names)}{last_heard}"] if unheard else []),
                self._writes(),
            ]
            for names in NAMES
        )
        texts: list[str] = []
        if self._lost:
            first, more = self._lost[0], f" and {len(self._lost) - 1} more" if len(self._lost) > 1 else ""
            texts = [f"{one_line(first.side)} {first.verb} {first.least}{more}", f"{first.verb} {first.least}"]
        sentence = _sentence("split", variants, texts, since)
        return ClusterHealth("split", False, self._replicas, self._losses, sentence)

    def _writes(self) -> str:
        serving = [master for master in self._masters if master.operating]
        if any(master.witnessed_by for master in self._masters):
            return "writes may go to both" if len(self._agreement.sides) == 2 else "writes may go to all"
        if len(serving) == len(self._agreement.sides):
            return "writes go to both" if len(serving) == 2 else "writes go to all"
        return f"writes go to {one_line(serving[0].label)} only" if len(serving) == 1 else "no writes"

    # What is said of members

    def _troubles(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return the members on lists that are known to be in trouble, by what that is, and those that are not heard."""
        listed, label_of = self._agreement.incarnations, self._picture.label_of
        suspects = self._agreement.suspicions.by_suspect
        ways = {absence.address: absence.way for absence in self._absences if absence.is_listed}
        troubles: dict[str, list[str]] = {}
        unknown: dict[str, list[str]] = {}
        for address in listed:
            way = ways.get(address)
            if address in suspects:
                by = f"suspected by {len(suspects[address])}"
                troubles.setdefault(f"frozen, {by}" if way == "frozen" else by, []).append(label_of(address))
            elif way is not None:
                kind = unknown if way in ("silent", "not ready", "joining") else troubles
                kind.setdefault(way, []).append(label_of(address))
        for absence in self._absences:
            if absence.way == "joining" and not absence.is_listed:
                unknown.setdefault("joining", []).append(absence.label)
        claiming = [belief.label for belief in self._running if belief.claiming]
        if claiming:
            troubles[f"{'claims' if len(claiming) == 1 else 'claim'} the mastership"] = claiming
        return troubles, unknown

    def _agreed(self, missing: int) -> str:
        most = self._lists[0]
        size, holders = len(most.members), len(most.held_by)
        if missing:
            return f"{size} of {len(self._agreement.incarnations) + missing}"
        if holders == size:
            return f"{size} members agree" if size > 1 else "1 member"
        return f"{holders} of {size} members agree"

    def _missing(self, absences: Sequence[Absence], names: int) -> Iterator[str]:
        """Yield who left the list without a goodbye, how, and when; the one that left last before the others."""
        by_text: dict[str, list[str]] = {}
        for absence in sorted(absences, key=lambda absence: -(absence.left_us or 0)):
            by_text.setdefault(absence.text(self._now_us), []).append(absence.label)
        yield from _named(by_text, names)

    def _disagreement(self, names: int) -> Iterator[str]:
        if not self._masters and not any(belief.claiming for belief in self._running):
            yield "no master is seen"
        if len(self._lists) > 1:
            others_text = _names([label for held in self._lists[1:] for label in held.held_by], names)
            yield f"{len(self._lists)} member lists, another one at {others_text}"
        elif self._agreement.tables_agree is False:
            _, *others = sorted(self._agreement.tables.values(), key=len, reverse=True)
            yield f"another partition table at {_names([label for held in others for label in held], names)}"


def _named(members: Mapping[str, Sequence[str]], names: int) -> Iterator[str]:
    for trouble, labels in members.items():
        yield f"{_names(labels, names)} {trouble}"


def _names(labels: Sequence[str], names: int) -> str:
    return one_line(listed(labels, names))


def _sentence(
    condition: Condition, variants: Iterable[Sequence[str]], lost: Sequence[str] = (), since: str = ""
) -> str:
    """Return the first of `variants` that fits, shorter and shorter, with the first that fits of what is said to be `lost`.

    Where none does, parts of the last one are left out from the end, and its first one is cut, but never that data was lost.
    """
    head = SHOWN[condition][0] + since
    parts: Sequence[str] = ()
    for parts in variants:
        for text in lost or [""]:
            sentence = " · ".join(filter(None, (head, *parts, text)))
            if len(sentence) <= LONGEST:
                return sentence
    first, kept = parts[0], [*lost[-1:], *parts[1:]]
    while len(kept) > len(lost[-1:]) and len(" · ".join((head, first, *kept))) > LONGEST:
        kept.pop()
    room = LONGEST - len(" · ".join((head, "", *kept)))
    return " · ".join((head, first if len(first) <= room else f"{first[: room - 1]}…", *kept))
