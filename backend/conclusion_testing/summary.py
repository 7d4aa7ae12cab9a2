"""Many judged runs, over several processes, and the table of what was said: true, false and unknown by watcher and question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

from quarterdeck.backend.conclusion_testing.conclusion_trial import ConclusionTrial, FalseStatement, judge_seed
from quarterdeck.backend.conclusion_testing.floors import below_floors
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.simulation.swarm_testing.parallel_trials import CHUNK, trial_processes

EXAMPLES = 5
"""So many false statements of one kind are named."""


def judged_runs(seeds: Iterable[int], sizes: tuple[int, int], jobs: int) -> Iterator[ConclusionTrial]:
    """Judge the run of each seed in `jobs` processes, in the order of `seeds`."""
    judge = partial(judge_seed, sizes=sizes)
    with trial_processes(jobs) as processes:
        yield from processes.map(judge, seeds, chunksize=CHUNK) if processes else map(judge, seeds)


class ConclusionSummary:
    """What the watchers of many runs concluded."""

    def __init__(self, sizes: tuple[int, int]) -> None:
        self._sizes = sizes
        self._runs = 0
        self._moments = 0
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._crashed: list[int] = []
        self._false: dict[tuple[str, str, str], list[FalseStatement]] = {}

    @property
    def has_failed(self) -> bool:
        """Return whether a conclusion was false, too few were known, or a run ended with an error."""
        return bool(self._false or self._crashed) or any(below_floors(self._counts))

    def add(self, trial: ConclusionTrial) -> None:
        """Count the conclusions of one run."""
        self._runs += 1
        self._moments += trial.moments
        if trial.crash:
            self._crashed.append(trial.seed)
        self._counts.update(trial.counts)
        for false in trial.false:
            self._false.setdefault(false.kind, []).append(false)

    def kinds(self) -> list[FalseStatement]:
        """Return the first false statement of each kind."""
        return [found[0] for found in self._false.values()]

    def as_fields(self) -> dict[str, object]:
        """Return the table, and examples of each kind of false statement, the most frequent kind first."""
        questions = sorted({(watcher, question) for watcher, question, _ in self._counts})
        kinds = sorted(self._false.values(), key=lambda found: -len(found))
        return {
            "runs": self._runs,
            "moments": self._moments,
            "crashed": self._crashed,
            "conclusions": [
                {"watcher": watcher, "question": question}
                | {verdict: self._counts[watcher, question, verdict] for verdict in ("true", "false", "unknown")}
                for watcher, question in questions
            ],
            "below_floor": [
                {"watcher": watcher, "question": question, "known": round(share, 3)}
                for watcher, question, share in below_floors(self._counts)
            ],
            "false": [
                {
                    "watcher": found[0].watcher,
                    "question": found[0].statement.question,
                    "said": found[0].statement.said,
                    "episodes": len(found),
                    "examples": [self._example(false) for false in found[:EXAMPLES]],
                }
                for found in kinds
            ],
        }

    def _example(self, false: FalseStatement) -> dict[str, object]:
        fewest, most = self._sizes
        return {
            "seed": false.seed,
            "at_seconds": round(false.at_us / SECOND_US, 3),
            "subject": false.statement.subject,
            "true": false.statement.true,
            "reproduce": f"quarterdeck swarm --conclusions --seeds {false.seed}:{false.seed} --sizes {fewest}:{most}",
        }
