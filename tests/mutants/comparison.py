"""Compare the ways of finding faults without knowing them: run ``python -m tests.mutants.comparison``.

Each planted fault is looked for by fresh seeds, by guided ones and by the models, each for as much CPU time, in forked processes.
Prints a line for each mutant, and at the end how many each way caught in a minute of CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from quarterdeck.backend.simulation.model_checking import exploration
from quarterdeck.backend.simulation.model_checking.reading import load_model, shipped_models
from quarterdeck.backend.simulation.swarm_testing.guided import GuidedSearch
from quarterdeck.backend.simulation.swarm_testing.parallel_trials import guided_runs
from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES, run_seed
from tests.mutants.catching import NO_END
from tests.mutants.exhaustion import GRACE_SECONDS, RAISED
from tests.mutants.mutant import ROOT, Mutant, all_mutants
from tests.mutants.planting import CannotPlantHere, plant_here

SIZES = (3, 20)
MOST_SEEDS = 1_000_000
MOST_STATES = 10_000_000
STATES_AT_A_TIME = 100
"""So often a model is asked whether its time is over: there are many models, and little time for each."""

Row = dict[str, str | float | None]


def main() -> int:
    options = _options()
    chosen = [mutant for mutant in all_mutants() if not options.names or mutant.name in options.names]
    if options.sample:
        chosen = random.Random(options.first_seed).sample(chosen, min(options.sample, len(chosen)))
    rows: list[Row] = []
    for mutant in chosen:
        row: Row = {"name": mutant.name}
        for way, search in WAYS.items():
            seconds = options.model_seconds if search is by_exhaustion else options.seconds
            row[way], row[f"{way} seconds"] = tried(mutant, partial(search, options.first_seed), seconds)
        if all(str(row[way]).startswith("cannot") for way in WAYS):
            print(f"{mutant.name} cannot be tried")
            continue
        rows.append(row)
        print(", ".join(f"{name}: {value}" for name, value in row.items()), flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    for way in WAYS:
        caught, minutes = (
            sum(row[way] is not None for row in rows),
            sum(float(row[f"{way} seconds"] or 0) for row in rows) / 60,
        )
        print(
            f"{way}: {caught} of {len(rows)} in {minutes:.1f} minutes of CPU, {caught / max(minutes, 1e-9):.2f} a minute"
        )
    return 0


def tried(mutant: Mutant, search: Callable[[float], str], seconds: float) -> tuple[str | None, float]:
    """What of the mutant is noticed, None for nothing; and the CPU time that it took."""
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(ours)
        began = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (limit := int(began + seconds) + GRACE_SECONDS, limit))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        try:
            plant_here(mutant)
            os.write(theirs, search(began + seconds).encode())
        except CannotPlantHere as problem:
            os.write(theirs, f"cannot be planted: {problem}".encode())
        except RAISED as problem:
            os.write(theirs, f"raises {type(problem).__name__}".encode())
        finally:
            os._exit(0)  # nothing that the process was about before it forked goes on here
    os.close(theirs)
    with os.fdopen(ours) as answer:
        noticed = answer.read()
    _, status, usage = os.wait4(process, 0)
    return (NO_END if status else noticed or None), round(usage.ru_utime + usage.ru_stime, 1)


def by_fresh(first_seed: int, until: float) -> str:
    for seed in range(first_seed, first_seed + MOST_SEEDS):
        trial = run_seed(seed, SIZES)
        if trial.verdict in FAILURES:
            return f"{seed}: {trial.invariant or trial.verdict}"
        if time.process_time() > until:
            break
    return ""


def by_guided(first_seed: int, until: float) -> str:
    seeds = range(first_seed, first_seed + MOST_SEEDS)
    for run in guided_runs(GuidedSearch(seeds), SIZES, 1):
        if run.trial.verdict in FAILURES:
            return f"{run.origin.text}: {run.trial.invariant or run.trial.verdict}"
        if time.process_time() > until:
            break
    return ""


def by_exhaustion(first_seed: int, until: float) -> str:
    exploration.LOOK = STATES_AT_A_TIME
    models = [load_model(name) for name in shipped_models()]
    for place, model in enumerate(models):
        now = time.process_time()
        ends = now + (until - now) / (len(models) - place)
        found = exploration.Explorer(model, most_states=MOST_STATES).explore(is_stopped=partial(_is_over, ends)).found
        if found is not None:
            return f"{model.name}: {found.violation.invariant}"
    return ""


def _is_over(ends: float) -> bool:
    return time.process_time() > ends


WAYS: dict[str, Callable[[int, float], str]] = {
    "fresh": by_fresh,
    "guided": by_guided,
    "exhaustion": by_exhaustion,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.comparison", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to try; all of them when none is given")
    parser.add_argument("--sample", type=int, default=0, help="so many of them, drawn from the first seed")
    parser.add_argument("--seconds", type=float, default=20, help="CPU time that seeds have for each mutant")
    parser.add_argument("--model-seconds", type=float, default=20, help="the same for the models, all together")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "comparison.json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
