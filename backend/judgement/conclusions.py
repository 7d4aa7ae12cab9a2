"""All questions about a cluster, each answered with the statements of members, and of the watcher, on which the answer rests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from quarterdeck.backend.judgement.absence import Absence
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.conclusion import Answer, Conclusion, Standing, Statement
from quarterdeck.backend.judgement.health.cluster_health import ClusterHealth
from quarterdeck.backend.judgement.health.refusal import CallRefusal
from quarterdeck.backend.judgement.losses.loss import Loss
from quarterdeck.backend.judgement.merging.merge_blockers import PairState
from quarterdeck.backend.judgement.merging.why_not_merging import Pair
from quarterdeck.backend.judgement.stop_verdict import StopVerdict
from quarterdeck.backend.judgement.stuck_migrations import migration_progress
from quarterdeck.backend.picture.fold.belief import MemberBelief

KEPT_APART: dict[PairState, Answer] = {"merging": "no", "due": "no", "waits": "unknown", "blocked": "yes"}
LOST: dict[str, tuple[Answer, Standing]] = {
    "confirmed": ("yes", "stands"), "feared": ("unknown", "stands"), "healed": ("no", "healed"), "refuted": ("no", "refuted"),
}  # fmt: skip


def conclude_lists(agreement: ListAgreement, agreed: bool | None, whole: bool | None) -> Iterator[Conclusion]:
    """Yield the holders of each list, whether the members are one cluster, and the masters."""
    held = tuple(
        Statement(belief.label, f"holds list v{belief.version} of lineage {belief.lineage}", belief.list_since_us)
        for belief in agreement.holders
    )
    sides = agreement.sides
    unheard = tuple(
        Statement("", f"{side.master} led {side.size} when it was heard last", side.unheard_since_us)
        for side in sides if side.unheard_since_us is not None
    )  # fmt: skip
    leading = {master.label for master in agreement.masters}
    led = tuple(statement for statement in held if statement.source in leading)
    since_us = agreement.list_since_us if held else None
    lists = [
        {"version": held_list.version, "lineage": held_list.lineage, "held_by": list(held_list.held_by)}
        for held_list in agreement.lists
    ]
    yield Conclusion("lists-agree", _answer(agreed), value=lists, since_us=since_us, evidence=held)
    answer: Answer = "no" if len(sides) > 1 else _answer(whole or None)
    sizes = {side.master: side.size for side in sides}
    yield Conclusion("one-cluster", answer, value=sizes, since_us=since_us, evidence=(*held, *unheard))
    masters = [side.master for side in sides]
    yield Conclusion(
        "master", "yes" if sides else "unknown", value=masters, since_us=since_us, evidence=(*led, *unheard)
    )
    yield _conclude_tables(agreement)


def _conclude_tables(agreement: ListAgreement) -> Conclusion:
    reported = [(belief, belief.table) for belief in agreement.holders if belief.table is not None]
    evidence = tuple(
        Statement(belief.label, f"has partition table {table.digest}", table.since_us) for belief, table in reported
    )
    since_us = max((table.since_us for _, table in reported), default=None)
    return Conclusion(
        "tables-agree", _answer(agreement.tables_agree), value=agreement.tables, since_us=since_us, evidence=evidence
    )


def conclude_absences(agreement: ListAgreement, absences: Sequence[Absence]) -> Iterator[Conclusion]:
    """Yield each absent member and its way of absence; a single conclusion where no member is missed."""
    picture, missed = agreement.picture, agreement.watcher.missed
    for absence in absences:
        evidence = []
        if absence.left_us is not None:
            lists = [held for held in agreement.lists if absence.address not in held.listed]
            remover = picture.label_of(lists[0].master) if lists and lists[0].master is not None else ""
            evidence.append(Statement(remover, f"has a list without {absence.label}", absence.left_us))
        if (known := missed.get(absence.label) or missed.get(absence.address)) is not None:
            evidence.append(Statement("", known.reason or "not reached", known.since_us))
        belief = picture.members.get(absence.label)
        if belief is not None and (absence.sign or absence.way == "frozen"):
            evidence.append(Statement(absence.label, absence.sign or absence.way, belief.at))
        answer: Answer = "unknown" if absence.way in ("silent", "not reached") else "yes"
        yield Conclusion("absent", answer, absence.label, absence.way, absence.left_us, tuple(evidence))
    if not absences and agreement.holders:
        held = (Statement(it.label, "is reached and on the list", it.list_since_us) for it in agreement.holders)
        yield Conclusion("absent", "no", evidence=tuple(held))


def conclude_data(
    agreement: ListAgreement, health: ClusterHealth, refused: Sequence[CallRefusal]
) -> Iterator[Conclusion]:
    """Yield whether every replica is there, which data was lost, and which calls fail."""
    tables = tuple(
        Statement(master.label, f"has table version {master.table.version}", master.table.since_us)
        for master in agreement.masters if master.table is not None
    )  # fmt: skip
    safe = health.data_safe
    yield Conclusion("data-safe", _answer(safe), value=health.replicas.text, evidence=tables)
    yield from (_conclude_loss(agreement, loss) for loss in health.losses)
    unknown = agreement.picture.without("losses")
    if not health.losses:
        yield Conclusion("data-lost", "unknown" if unknown is not None or not agreement.holders else "no")
    for refusal in refused:
        answer: Answer = "unknown" if refusal.kind == "cp" else "yes"
        yield Conclusion("refused", answer, value=refusal.text, since_us=refusal.since_us, evidence=refusal.evidence)
    if not refused:
        states = [master for master in agreement.masters if master.shows("cluster-state") and master.shows("owners")]
        is_known = bool(states) and len(states) == len(agreement.sides) and not health.replicas.is_outdated
        said = (Statement(it.label, f"is {it.cluster_state}", it.cluster_state_since_us) for it in states)
        yield Conclusion("refused", "no" if is_known else "unknown", evidence=tuple(said))


def _conclude_loss(agreement: ListAgreement, loss: Loss) -> Conclusion:
    answer, standing = LOST[loss.state]
    reported = [known for known in agreement.picture.history.lost if known.partition in loss.lost]
    reporters: dict[str, list[int]] = {}
    for known in reported:
        reporters.setdefault(known.leader, []).append(known.at_us)
    evidence = [
        Statement(label, f"{len(at_us)} of these partitions have no replica left", min(at_us))
        for label, at_us in reporters.items()
    ]
    evidence += (_end_of(agreement, label, loss.at_us) for label in loss.because_of)
    return Conclusion(
        "data-lost", answer, loss.side, loss.as_fields(agreement.now_us), loss.at_us, tuple(evidence), standing
    )


def _end_of(agreement: ListAgreement, label: str, at_us: int) -> Statement:
    belief, missed = agreement.picture.members.get(label), agreement.watcher.missed.get(label)
    if belief is not None and belief.status in ("stopped", "killed"):
        return Statement(label, belief.status, belief.at)
    return Statement("", f"{label}: {missed.reason or 'not reached' if missed else 'off the list'}", at_us)


def conclude_migrations(agreement: ListAgreement) -> Iterator[Conclusion]:
    """Yield for each master whether the migrations that it leads hang."""
    for found in migration_progress(agreement):
        at_us = agreement.now_us if found.since_us is None else found.since_us
        evidence = (Statement(found.master, found.text, at_us),)
        yield Conclusion("migration-hangs", found.stands_still, found.master, found.text, found.since_us, evidence)


def conclude_apart(agreement: ListAgreement, pairs: Iterable[Pair]) -> Iterator[Conclusion]:
    """Yield the obstacle that keeps each pair of clusters apart, and the remedy."""
    leading = {master.label: master for master in agreement.masters}
    for pair in pairs:
        sides = [leading[label] for label in (pair.smaller, pair.greater) if label in leading]
        value = {
            "smaller": pair.smaller, "greater": pair.greater, "state": pair.state, "rule": pair.rule, "why": pair.sentence,
            "helps": pair.unblock.text if pair.unblock is not None else None,
        }  # fmt: skip
        evidence = tuple(statement for side in sides for statement in _of_merging(agreement, side))
        since_us = max((side.lineage_since_us or side.list_since_us for side in sides), default=None)
        yield Conclusion("apart", KEPT_APART[pair.state], pair.smaller, value, since_us, evidence)
    if len(leading) == 1 and len(agreement.sides) == 1:
        yield Conclusion("apart", "no")


def _of_merging(agreement: ListAgreement, side: MemberBelief) -> Iterator[Statement]:
    yield Statement(side.label, f"leads list v{side.version} of lineage {side.lineage}", side.list_since_us)
    for verdict in side.verdicts.values():
        met = agreement.picture.label_of(verdict.remote)
        yield Statement(side.label, f"met {met}: {verdict.why}", verdict.since_us)
    if side.not_merging:
        yield Statement(side.label, side.not_merging, side.at)


def conclude_stop(label: str, verdict: StopVerdict, now_us: int) -> Conclusion:
    """Return whether a member may be stopped."""
    since_us = max((reason.since_us for reason in verdict.reasons if reason.since_us is not None), default=None)
    evidence = tuple(Statement("", reason.text, reason.since_us or now_us) for reason in verdict.reasons)
    return Conclusion("may-stop", verdict.answer, label, since_us=since_us, evidence=evidence)


def _answer(known: bool | None) -> Answer:
    return "unknown" if known is None else "yes" if known else "no"
