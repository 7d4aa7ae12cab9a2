"""Plant every fault, one after the other, and see who notices: run ``python -m tests.mutants``.

Prints a line for each mutant and writes the table as JSON. Exits with 1 when a mutant survives everything that was tried.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from quarterdeck.backend.simulation.model_checking.reading import shipped_models
from tests.mutants.catching import caught_by_chance, caught_by_scenarios, caught_by_unit_tests
from tests.mutants.exhaustion import caught_by_exhaustion
from tests.mutants.mutant import ROOT, Mutant, all_mutants, plant
from tests.mutants.planting import CannotPlantHere

Row = dict[str, str | float | None]

WAYS = ("unit test", "scenario", "seed", "model")
"""The columns that tell who noticed."""


def main() -> int:
    options = _options()
    mutants = {mutant.name: mutant for mutant in all_mutants()}
    if unknown := set(options.names) - mutants.keys():
        print(f"no such mutant: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [mutants[name] for name in options.names or mutants]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("fork")) as pool:
        rows: list[Row] = []
        for row in pool.map(partial(_try, options=options), chosen):
            rows.append(row)
            print(_line(row), flush=True)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(rows, indent=1) + "\n")
    survivors = [str(row["name"]) for row in rows if not any(row[way] for way in WAYS)]
    counts = ", ".join(f"{sum(row[way] is not None for row in rows)} caught by a {way}" for way in WAYS)
    print(f"{len(rows)} mutants: {counts}; survivors: {', '.join(survivors) or 'none'}")
    return 1 if survivors else 0


def _try(mutant: Mutant, options: argparse.Namespace) -> Row:
    began = time.monotonic()
    unit_test = scenario = seed = model = None
    try:
        if options.models is not None:
            models = options.models or shipped_models()
            model = caught_by_exhaustion(mutant, models, options.most_states, options.model_seconds)
        if not options.models_only:
            unit_test, scenario, seed = _try_a_copy(mutant, options)
    except (ValueError, RuntimeError, CannotPlantHere) as problem:
        print(f"{mutant.name} cannot be tried: {problem}", file=sys.stderr)
    return {
        **{"name": mutant.name, "file": mutant.file, "breaks": mutant.breaks},
        **dict(zip(WAYS, (unit_test, scenario, seed, model), strict=True)),
        "seconds": round(time.monotonic() - began, 1),
    }


def _try_a_copy(mutant: Mutant, options: argparse.Namespace) -> tuple[str | None, str | None, str | None]:
    """The unit test, the scenario and the seed that notice."""
    unit_test = scenario = seed = None
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder, "project")
        plant(mutant, copy)
        if not options.chance_only:
            unit_test = caught_by_unit_tests(mutant, copy)
            scenario = caught_by_scenarios(mutant, copy)
        if not options.examples_only:
            seed = caught_by_chance(copy, options.first_seed, options.last_seed, options.seconds)
    return unit_test, scenario, seed


def _line(row: Row) -> str:
    caught = "; ".join(f"{way} {row[way]}" for way in WAYS if row[way])
    return f"{row['name']}: {caught or 'SURVIVES'} ({row['seconds']} s)"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to try; all of them when none is given")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--last-seed", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=300, help="CPU time that chance has for each mutant")
    parser.add_argument("--examples-only", action="store_true")
    parser.add_argument("--chance-only", action="store_true")
    parser.add_argument(
        "--models", nargs="*", help="models that are looked at as well; all shipped ones when none is named"
    )
    parser.add_argument("--most-states", type=int, default=100_000, help="so many states of each model")
    parser.add_argument("--model-seconds", type=float, default=20, help="CPU time that all models have for each mutant")
    parser.add_argument("--models-only", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants.json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
