"""The judge of one moment: every question about a cluster is answered once, for all that show or print the answer."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.absence import Absence, absences
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.conclusion import Conclusion
from quarterdeck.backend.judgement.health.cluster_health import ClusterHealth, cluster_health
from quarterdeck.backend.judgement.health.copy_counts import CopyCounts
from quarterdeck.backend.judgement.health.refusal import CallRefusal, refusals
from quarterdeck.backend.judgement.health.replica_safety import ReplicaSafety, replica_safety
from quarterdeck.backend.judgement.losses.ledger import losses_of
from quarterdeck.backend.judgement.losses.loss import Loss
from quarterdeck.backend.judgement.table_agreement import is_unsettled
from quarterdeck.backend.judgement.watcher import WATCHES_ALL, Watcher
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture

if TYPE_CHECKING:  # answers that the first picture of a console does not show are imported when they are asked for
    from quarterdeck.backend.judgement.merging.why_not_merging import Pair
    from quarterdeck.backend.judgement.stop_verdict import StopVerdict


class Judge:
    """What is concluded of a cluster at one moment. Each part is made when it is asked for, and kept.

    A judge is of the picture as it is now: after the next record ask a new one.
    """

    def __init__(
        self,
        picture: Picture,
        watcher: Watcher = WATCHES_ALL,
        now_us: int | None = None,
        counts: CopyCounts | None = None,
    ) -> None:
        """Judge `picture` at `now_us`, or at its latest record. `counts` keeps what is counted of tables for the next judge."""
        self.picture, self.watcher = picture, watcher
        self.now_us = picture.at if now_us is None else now_us
        self._counts = counts or CopyCounts()

    @cached_property
    def agreement(self) -> ListAgreement:
        """Return who holds which list."""
        return ListAgreement(self.picture, self.watcher, self.now_us)

    @property
    def masters(self) -> tuple[MemberBelief, ...]:
        """Return the members that lead, the one with the longest list first."""
        return self.agreement.masters

    @cached_property
    def absences(self) -> tuple[Absence, ...]:
        """Return who is absent, and how."""
        return absences(self.agreement)

    @property
    def unreached(self) -> tuple[str, ...]:
        """Return the members on lists that are not reached, and the others that may run and whose list is not known."""
        absent = (absence for absence in self.absences if absence.way != "joining")
        return tuple(absence.label for absence in absent if absence.is_listed or absence.way != "gone")

    @property
    def agreed(self) -> bool | None:
        """Return whether all members hold one list and one table; None where one of them, or its table, is not known."""
        if len(self.agreement.lists) > 1 or len(self.agreement.sides) > 1 or self.agreement.tables_agree is False:
            return False
        unsettled = is_unsettled(self.picture, self.now_us)
        return None if self.unreached or unsettled or not self.agreement.lists else True

    @cached_property
    def replicas(self) -> ReplicaSafety:
        """Return whether every replica is there and in step; the side whose table is worst counts."""
        holders = self.agreement.holders
        now_s = self.now_us // SECOND_US
        gone = self.watcher.gone
        return replica_safety(self.picture, self.masters or holders[:1], holders, self._counts, now_s, gone)

    @cached_property
    def refusals(self) -> tuple[CallRefusal, ...]:
        """Return why calls fail now."""
        return refusals(self.agreement, self.replicas)

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """Return what was lost, the losses that stand first, the newest first."""
        return losses_of(self.picture, self.watcher, self.now_us)

    @cached_property
    def lost_partitions(self) -> dict[str, int]:
        """Return by master how many partitions its side lost last, where that is confirmed."""
        return {loss.side: loss.partitions for loss in reversed(self.losses) if loss.is_confirmed}

    @cached_property
    def health(self) -> ClusterHealth:
        """Return whether the cluster is whole and its data safe, in one sentence."""
        return cluster_health(self.agreement, self.absences, self.replicas, self.refusals, self.losses)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Return why each pair of clusters in sight does not become one."""
        from quarterdeck.backend.judgement.merging.why_not_merging import why_not_merging

        return why_not_merging(self.picture, self.now_us)

    def conclusions(self, stopping: Iterable[str] = ()) -> tuple[Conclusion, ...]:
        """Return the answers to all questions with the statements behind them; whether the members `stopping` may stop, too."""
        from quarterdeck.backend.judgement import conclusions

        agreement = self.agreement
        return (
            *conclusions.conclude_lists(agreement, self.agreed, self.health.whole),
            *conclusions.conclude_absences(agreement, self.absences),
            *conclusions.conclude_data(agreement, self.health, self.refusals),
            *conclusions.conclude_migrations(agreement),
            *conclusions.conclude_apart(agreement, self.pairs),
            *(conclusions.conclude_stop(label, self.may_stop(label), self.now_us) for label in stopping),
        )

    def may_stop(self, label: str, minimum: int = 1) -> StopVerdict:
        """Return whether the member called `label` may be stopped, so that at least `minimum` members are left."""
        from quarterdeck.backend.judgement.stop_verdict import may_stop

        return may_stop(self.picture, self.health, label, self.now_us, minimum)
