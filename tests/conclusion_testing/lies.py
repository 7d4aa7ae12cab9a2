"""Planted lies: each is a judge that breaks one rule. Chance has to notice every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from quarterdeck.backend.boards import cluster_metrics as metrics_module
from quarterdeck.backend.conclusion_testing import comparison
from quarterdeck.backend.judgement.absence import Absence
from quarterdeck.backend.judgement.agreement import HeldList, ListAgreement
from quarterdeck.backend.judgement.health.cluster_health import ClusterHealth
from quarterdeck.backend.judgement.health.refusal import CallRefusal
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.stop_verdict import StopVerdict
from quarterdeck.backend.judgement.watcher import Watcher
from quarterdeck.backend.picture.fold.belief import MemberBelief

Lie = Callable[[Judge], Judge]
Beliefs = tuple[MemberBelief, ...]


def judge_with(judge: Judge, **parts: object) -> Judge:
    """Return a judge of the same moment, of which these parts are already made."""
    liar = Judge(judge.picture, judge.watcher, judge.now_us)
    vars(liar).update(parts)
    return liar


def agreement_lie(name: str, value: Callable[[ListAgreement], object]) -> Lie:
    """Lie about one part of the agreement on lists."""

    def lie(judge: Judge) -> Judge:
        agreement = ListAgreement(judge.picture, judge.watcher, judge.now_us)
        vars(agreement)[name] = value(agreement)
        return judge_with(judge, agreement=agreement)

    return lie


def absence_lie(change: Callable[[Absence], Absence | None]) -> Lie:
    """Lie about each absent member."""

    def lie(judge: Judge) -> Judge:
        return judge_with(judge, absences=tuple(changed for one in judge.absences if (changed := change(one))))

    return lie


def way_lie(said: str, instead: str) -> Lie:
    return absence_lie(lambda absence: replace(absence, way=instead) if absence.way == said else absence)


def health_lie(change: Callable[[ClusterHealth], ClusterHealth]) -> Lie:
    """Lie about the health."""
    return lambda judge: judge_with(judge, health=change(judge.health))


def stop_lie(*kinds: str) -> Lie:
    """Leave out reasons of these kinds against stopping a member; all of them without kinds."""

    def lie(judge: Judge) -> Judge:
        def answer(label: str, minimum: int = 1) -> StopVerdict:
            verdict = judge.may_stop(label, minimum)
            kept = tuple(reason for reason in verdict.reasons if kinds and reason.kind not in kinds)
            return verdict._replace(reasons=kept)

        return judge_with(judge, may_stop=answer)

    return lie


def watcher_lie(change: Callable[[Watcher], Watcher]) -> Lie:
    """Lie about the watcher's own sight."""
    return lambda judge: Judge(judge.picture, change(judge.watcher), judge.now_us)


def beliefs(are_so: Callable[[MemberBelief], object]) -> Callable[[ListAgreement], Beliefs]:
    return lambda agreement: tuple(belief for belief in agreement.picture.members.values() if are_so(belief))


def lists_by(key: Callable[[HeldList], object]) -> Callable[[ListAgreement], tuple[HeldList, ...]]:
    return lambda agreement: tuple({key(held): held for held in reversed(agreement.lists)}.values())


def ended(watcher: Watcher, *, has_ended: bool) -> Watcher:
    return replace(
        watcher, missed={label: missed._replace(has_ended=has_ended) for label, missed in watcher.missed.items()}
    )


ALL_COPIES = 7

LIES: Mapping[str, Lie] = {
    # Who leads, and which lists there are
    "only the greatest side is seen": agreement_lie("masters", lambda agreement: agreement.masters[:1]),
    "only the smallest side is seen": agreement_lie("masters", lambda agreement: agreement.masters[-1:]),
    "a claimant leads": agreement_lie("masters", beliefs(lambda belief: belief.is_master and belief.running)),
    "a frozen master leads": agreement_lie(
        "masters", beliefs(lambda belief: belief.leads and belief.status in ("member", "paused"))
    ),
    "a killed master leads": agreement_lie("masters", beliefs(lambda belief: belief.leads)),
    "no member leads": agreement_lie("masters", lambda _: ()),
    "every holder leads": agreement_lie("masters", lambda agreement: agreement.holders),
    "a killed member holds its list": agreement_lie("holders", beliefs(lambda belief: belief.version)),
    "a frozen member holds its list": agreement_lie(
        "holders", beliefs(lambda belief: belief.version and belief.status in ("member", "paused"))
    ),
    "the last member is overlooked": agreement_lie("holders", lambda agreement: agreement.holders[:-1]),
    "the first member is overlooked": agreement_lie("holders", lambda agreement: agreement.holders[1:]),
    "only masters have a say": agreement_lie("holders", beliefs(lambda belief: belief.running and belief.is_master)),
    "only the list of most counts": agreement_lie("lists", lambda agreement: agreement.lists[:1]),
    "a version names a list": agreement_lie("lists", lists_by(lambda held: held.version)),
    "a lineage names a list": agreement_lie("lists", lists_by(lambda held: held.lineage)),
    "a size names a list": agreement_lie("lists", lists_by(lambda held: len(held.members))),
    "each member has a list of its own": agreement_lie(
        "lists",
        lambda agreement: tuple(replace(held, held_by=(label,)) for held in agreement.lists for label in held.held_by),
    ),
    # Who is absent
    "no member is absent": lambda judge: judge_with(judge, absences=()),
    "frozen is gone": way_lie("frozen", "gone"),
    "gone is frozen": way_lie("gone", "frozen"),
    "joining is gone": way_lie("joining", "gone"),
    "gone is joining": way_lie("gone", "joining"),
    "frozen is joining": way_lie("frozen", "joining"),
    "joining is frozen": way_lie("joining", "frozen"),
    "out of reach is gone": way_lie("not reached", "gone"),
    "a member that is gone is not missed": absence_lie(lambda absence: None if absence.way == "gone" else absence),
    "a frozen member is not missed": absence_lie(lambda absence: None if absence.way == "frozen" else absence),
    "silent is ended": watcher_lie(lambda watcher: ended(watcher, has_ended=True)),
    "all are reached": watcher_lie(lambda watcher: replace(watcher, missed={})),
    # Whether it is whole
    "it is always whole": health_lie(lambda health: replace(health, whole=True)),
    "it is never whole": health_lie(lambda health: replace(health, whole=False)),
    "not known is whole": health_lie(lambda health: replace(health, whole=health.whole is not False)),
    "not known is not whole": health_lie(lambda health: replace(health, whole=health.whole is True)),
    "it is always healthy": health_lie(lambda health: replace(health, condition="healthy")),
    "it is always split": health_lie(lambda health: replace(health, condition="split")),
    "without a master it is down": lambda judge: judge_with(
        judge, health=judge.health if judge.masters else replace(judge.health, condition="down")
    ),
    "what changes is healthy": health_lie(
        lambda health: replace(health, condition="healthy") if health.condition == "changing" else health
    ),
    # Data
    "there is always one copy more": health_lie(
        lambda health: replace(
            health, replicas=health.replicas._replace(safe=True, copies=(health.replicas.copies or 0) + 1)
        )
    ),
    "all data is safe": health_lie(
        lambda health: replace(
            health, condition="degraded", replicas=health.replicas._replace(safe=True, copies=ALL_COPIES)
        )
    ),
    "no loss is said": lambda judge: judge_with(judge, losses=()),
    # What is refused
    "no call is refused": lambda judge: judge_with(judge, refusals=()),
    "the state refuses calls": lambda judge: judge_with(judge, refusals=(CallRefusal("state", "PASSIVE"),)),
    "partitions have no owner": lambda judge: judge_with(judge, refusals=(CallRefusal("no-owner", "no owner"),)),
    # May the next member be stopped
    "every member may be stopped": stop_lie(),
    "a divided cluster may be stopped": stop_lie("whole", "data-lost", "tables", "migrations", "backups", "links"),
    "the last member may be stopped": stop_lie("size", "backups", "tables"),
    "a frozen cluster may be stopped": stop_lie("state", "backups", "whole", "refused"),
}
"""By name, the judges that lie."""


def _metric_lie(name: str, change: Callable[[float], float]) -> Callable[..., Iterator[metrics_module.ClusterMetric]]:
    def metrics(*arguments: Any) -> Iterator[metrics_module.ClusterMetric]:
        for metric in metrics_module.cluster_metrics(*arguments):
            if metric.name.endswith(name):
                samples = {labels: change(value) for labels, value in metric.samples.items()}
                yield metric._replace(samples=samples)
            else:
                yield metric

    return metrics


METRIC_LIES: Mapping[str, Callable[..., Iterator[metrics_module.ClusterMetric]]] = {
    "one master more": _metric_lie("masters", lambda value: value + 1),
    "one lineage": _metric_lie("lineages", lambda _: 1),
    "tables always agree": _metric_lie("tables_agree", lambda _: 1),
    "tables never agree": _metric_lie("tables_agree", lambda _: 0),
    "lists always agree": _metric_lie("lists_agree", lambda _: 1),
    "entries count twice": _metric_lie("map_entries", lambda value: 2 * value),
    "half of the entries": _metric_lie("map_entries", lambda value: value // 2),
}
"""By name, metrics that lie."""


@contextmanager
def lying_metrics(name: str) -> Iterator[None]:
    """Let the comparison read metrics that lie."""
    with patch.object(comparison, "cluster_metrics", METRIC_LIES[name]):
        yield
