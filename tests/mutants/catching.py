"""Who notices a planted fault in a copy of the project.

Unit tests and scenarios, which it names; chance, which knows nothing of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.mutants.mutant import Mutant

LIMIT_SECONDS = 240
"""What needs so much more CPU time than it was given has no end: that is noticed, too."""

SOUND, CAUGHT = 0, 1
"""How pytest ends when all tests passed, and when some failed."""

NO_END = "it has no end"

PLUGINS = ("-p", "pytest_timeout", "-p", "no:cacheprovider")
"""Tests of the core need no others, which take longer to load than most of these tests take."""

ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

SCENARIO_SEEDS = 3
"""Under so many seeds a scenario is tried."""

FIRST_UNMET = """
import sys
from pathlib import Path
from quarterdeck.backend.scenarios.format.reading import load_scenario
from quarterdeck.backend.simulation.simulated_driver import simulate

for path in map(Path, sys.argv[2:]):
    for seed in range(int(sys.argv[1])):
        if not simulate(load_scenario(path), seed).passed:
            sys.exit(f"{path.name}, seed {seed}")
"""

FIRST_FAILURE = """
import sys
from time import process_time
from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES, run_seed

for seed in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
    trial = run_seed(seed)
    if trial.verdict in FAILURES:
        sys.exit(f"{seed}: {trial.invariant or trial.verdict}")
    if process_time() > float(sys.argv[3]):
        break
"""


def caught_by_unit_tests(mutant: Mutant, copy: Path) -> str | None:
    """The first test of the mutant's examples that fails in the project at `copy`; None when all pass.

    Raises RuntimeError when they cannot be run at all.
    """
    if not mutant.unit_tests:
        return None
    run = _python(copy, "-m", "pytest", "-q", "-x", "-rfE", *PLUGINS, "-m", "long or not long", *mutant.unit_tests)
    if run.returncode == SOUND:
        return None
    if run.returncode < 0:
        return NO_END
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if run.returncode != CAUGHT or not failed:
        raise RuntimeError(f"{mutant.name}: pytest ended with {run.returncode}\n{run.stdout}\n{run.stderr}")
    return failed[0].split(" - ")[0].partition(" ")[2]


def caught_by_scenarios(mutant: Mutant, copy: Path) -> str | None:
    """The first scenario of the mutant's examples that does not pass any more, with its seed; None when all pass."""
    return _last_word(_python(copy, "-c", FIRST_UNMET, str(SCENARIO_SEEDS), *mutant.scenarios))


def caught_by_chance(copy: Path, first_seed: int, last_seed: int, most_seconds: float) -> str | None:
    """The first seed of the swarm that fails in the project at `copy`, with what it violates; None when none does.

    No more seeds are begun when so much CPU time is used up.
    """
    limits = (str(first_seed), str(last_seed), str(most_seconds))
    return _last_word(_python(copy, "-c", FIRST_FAILURE, *limits, seconds=most_seconds))


def _last_word(run: subprocess.CompletedProcess[str]) -> str | None:
    """What a run said when it failed; one that was ended from outside said nothing."""
    return None if run.returncode == SOUND else (run.stderr.strip() or NO_END).splitlines()[-1]


def _python(copy: Path, *arguments: str, seconds: float = 0) -> subprocess.CompletedProcess[str]:
    """Run Python on the project at `copy`, whatever project is installed, for `seconds` of CPU time and some more."""
    limited = f'ulimit -t {round(seconds) + LIMIT_SECONDS}; exec "$@"'
    return subprocess.run(
        ["sh", "-c", limited, "sh", sys.executable, *arguments],
        cwd=copy,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
