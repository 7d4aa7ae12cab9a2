"""Judges everything that an audit was given: files in groups that hold whole runs, and what is said of all groups together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from quarterdeck.backend.hazelcast.logs.observations.story import LogStory
from quarterdeck.backend.journal.files import RUN_PREFIX, run_of_file
from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.audit_result import QuarantinedLine
from quarterdeck.backend.pipeline.judging.group_judge import GroupVerdict, JournalFile
from quarterdeck.backend.pipeline.judging.run_judge import RunVerdict
from quarterdeck.backend.pipeline.judging.set_aside import MAX_QUARANTINED

Group = tuple[JournalFile, ...]

JudgeGroups = Callable[[Sequence[Group]], Iterable[tuple[int, GroupVerdict]]]
"""Judges groups, here or elsewhere, and gives the place of each with what is said of it, in any order."""


class WholeVerdict(Struct, frozen=True):
    """What is said of all runs."""

    runs: tuple[RunVerdict, ...]
    counts: dict[str, int]
    problems: tuple[QuarantinedLine, ...]
    stories: tuple[LogStory, ...] = ()
    """Of members' logs, what is observed in each run."""


def groups_of(found: AuditInput) -> list[Group]:
    """The files of each run, as far as one can tell without reading them."""
    groups: dict[str, list[JournalFile]] = defaultdict(list)
    for file in found.files:
        directory = file.listed.parent.name
        if directory.startswith(RUN_PREFIX):
            run = directory.removeprefix(RUN_PREFIX)
        else:
            run = run_of_file(file.read) or ""
        groups[run].append(JournalFile(str(file.read), str(file.listed), file.stamp[0]))
    return [tuple(files) for files in groups.values()]


def judge_whole(groups: Sequence[Group], judge: JudgeGroups) -> WholeVerdict:
    """Judge `groups`. Those that turn out to hold parts of one run are judged once more, as one group."""
    verdicts: list[GroupVerdict] = []
    while groups:
        told = dict(judge(groups))
        joined = _joined(len(groups), [{run.run for run in told[place].runs} for place in range(len(groups))])
        verdicts += [told[places[0]] for places in joined if len(places) == 1]
        groups = [tuple(file for place in places for file in groups[place]) for places in joined if len(places) > 1]
    return _whole(verdicts)


def _joined(count: int, runs: Sequence[set[str]]) -> list[list[int]]:
    """The places from 0 to `count`, those together that have a run in common."""
    parent = list(range(count))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = place = parent[parent[place]]
        return place

    first: dict[str, int] = {}
    for place, names in enumerate(runs):
        for name in names:
            parent[root(place)] = root(first.setdefault(name, place))
    joined: dict[int, list[int]] = defaultdict(list)
    for place in range(count):
        joined[root(place)].append(place)
    return list(joined.values())


def _whole(verdicts: Sequence[GroupVerdict]) -> WholeVerdict:
    counts = {
        name: sum(getattr(one, name) for one in verdicts)
        for name in ("lines", "duplicates", "quarantined", "contradicting")
    }
    runs = [run for verdict in verdicts for run in verdict.runs]
    return together(runs, counts, [one for verdict in verdicts for one in verdict.problems])


def together(
    runs: Sequence[RunVerdict], counts: Mapping[str, int], problems: Sequence[QuarantinedLine]
) -> WholeVerdict:
    """What is said of all `runs`. `counts`: of their lines, and of those that were not judged."""
    every = {
        "lines": counts["lines"],
        "records": sum(one.records for one in runs),
        "runs": len(runs),
        "lives": sum(one.lives for one in runs),
        **counts,
        "views": sum(one.views for one in runs),
        "suspicions": sum(one.suspicions for one in runs),
    }
    first = sorted(problems, key=lambda one: (one.file, one.number))[:MAX_QUARANTINED]
    return WholeVerdict(tuple(sorted(runs, key=lambda one: one.run)), every, tuple(first))
