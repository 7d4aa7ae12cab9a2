"""What a report shows of a run of members' logs beyond its events: observations, verdicts on merging, rounds of migrations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from quarterdeck.backend.hazelcast.logs.observations.observation import Observation
from quarterdeck.backend.hazelcast.logs.observations.partitions import MigrationRound
from quarterdeck.backend.hazelcast.logs.observations.separation import VerdictCount
from quarterdeck.backend.pipeline.audit_result import AuditResult
from quarterdeck.backend.pipeline.report.limits import ReportLimits
from quarterdeck.backend.pipeline.report.model import Cut, MergeVerdict, Observed, Round

_Item = TypeVar("_Item", Observed, MergeVerdict, Round)


class LogSections:
    """What `result` tells of one run, bounded by `limits`."""

    def __init__(self, run: str, result: AuditResult, limits: ReportLimits) -> None:
        observations = [_observed(one, limits) for one in result.observations if one.run == run]
        verdicts = [_verdict(one) for one in result.merge_verdicts if one.run == run]
        rounds = [_round(one) for one in result.migration_rounds if one.run == run]
        self.observations, self.observations_cut = _first(observations, limits.findings)
        self.verdicts, self.verdicts_cut = _first(verdicts, limits.rows)
        self.rounds, self.rounds_cut = _first(rounds, limits.rows)


def _first(items: Sequence[_Item], most: int) -> tuple[tuple[_Item, ...], Cut]:
    return tuple(items[:most]), Cut(min(len(items), most), len(items))


def _observed(one: Observation, limits: ReportLimits) -> Observed:
    return Observed(
        one.kind,
        one.start_us,
        one.end_us,
        one.is_open,
        one.members[: limits.names],
        one.headline,
        one.detail[: limits.letters],
        one.cause,
        one.remedy,
        tuple(_place(line.file, line.line) for line in one.evidence[: limits.witnesses]),
    )


def _verdict(one: VerdictCount) -> MergeVerdict:
    place = _place(one.file, one.line)
    return MergeVerdict(
        one.member, one.remote, one.decision, one.rule, one.times, one.first_us, one.last_us, one.why, place
    )


def _round(one: MigrationRound) -> Round:
    return Round(one.master, one.start_us, one.end_us, one.planned, one.completed, _place(one.file, one.line))


def _place(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"
