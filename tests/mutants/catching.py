"""Who notices a planted fault: the examples that it names, or chance, which knows nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.mutants.mutant import Mutant

EXAMPLES_LIMIT_SECONDS = 900
SOUND, CAUGHT, NOTHING_TO_TRY = 0, 1, 5
"""How pytest ends when all tests passed, when some failed, and when it found none."""

FIRST_FAILURE = """
import sys
from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES, run_seed

for seed in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
    trial = run_seed(seed)
    if trial.verdict in FAILURES:
        print(seed, trial.verdict, trial.invariant, sep="|")
        break
"""


def caught_by_examples(mutant: Mutant, copy: Path) -> str | None:
    """The first of the mutant's examples that fails in the project at `copy`; None when all pass.

    Raises RuntimeError when the examples cannot be run at all.
    """
    run = _python(
        copy, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "long or not long", *mutant.examples
    )
    if run.returncode == SOUND:
        return None
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if run.returncode != CAUGHT or not failed:
        raise RuntimeError(f"{mutant.name}: pytest ended with {run.returncode}\n{run.stdout}\n{run.stderr}")
    return failed[0].split(" - ")[0].partition(" ")[2]


def caught_by_chance(copy: Path, first_seed: int, last_seed: int) -> str | None:
    """The first seed of the swarm that fails in the project at `copy`, with its verdict; None when none does."""
    run = _python(copy, "-c", FIRST_FAILURE, str(first_seed), str(last_seed))
    if run.returncode:
        raise RuntimeError(f"the swarm ended with {run.returncode}\n{run.stderr}")
    if not run.stdout.strip():
        return None
    seed, verdict, invariant = run.stdout.strip().split("|")
    return f"seed {seed}: {invariant or verdict}"


def _python(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python on the project at `copy`, whatever project is installed."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=EXAMPLES_LIMIT_SECONDS,
    )
