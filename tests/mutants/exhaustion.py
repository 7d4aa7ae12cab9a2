"""Whether exhaustion notices a planted fault: a forked process gets it, and looks at the first states of models."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Sequence

from quarterdeck.backend.simulation.model_checking.exploration import Explorer
from quarterdeck.backend.simulation.model_checking.model import Model
from quarterdeck.backend.simulation.model_checking.reading import load_model
from tests.mutants.catching import NO_END
from tests.mutants.mutant import Mutant
from tests.mutants.planting import CannotPlantHere, plant_here

GRACE_SECONDS = 20
"""So much more CPU time a process gets that looks closer at what it has found; then it has no end."""


NOT_PLANTED = "not planted: "

RAISED = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a fault makes the core raise; whatever it raises is noticed."""


def caught_by_exhaustion(mutant: Mutant | None, models: Sequence[str], most_states: int, seconds: float) -> str | None:
    """The first of the models that is broken, with what is violated; None when none is.

    Each gets its share of `seconds` of CPU time. Raises `CannotPlantHere`.
    """
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(ours)
        try:
            os.write(theirs, _told(mutant, models, most_states, seconds).encode())
        except RAISED as problem:
            os.write(theirs, f"raises {type(problem).__name__}".encode())
        finally:
            os._exit(0)  # nothing that the process was about before it forked goes on here
    os.close(theirs)
    with os.fdopen(ours) as answer:
        told = answer.read()
    _, status = os.waitpid(process, 0)
    if told.startswith(NOT_PLANTED):
        raise CannotPlantHere(told.removeprefix(NOT_PLANTED))
    return NO_END if status else told or None


def _told(mutant: Mutant | None, models: Sequence[str], most_states: int, seconds: float) -> str:
    limit = int(time.process_time() + seconds) + GRACE_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    loaded = [load_model(name) for name in models]
    if mutant is not None:
        try:
            plant_here(mutant)
        except CannotPlantHere as problem:
            return f"{NOT_PLANTED}{problem}"
    for model in loaded:
        if found := _first_broken(model, most_states, seconds / len(loaded)):
            return f"{model.name}: {found}"
    return ""


def _first_broken(model: Model, most_states: int, seconds: float) -> str:
    until = time.process_time() + seconds
    exploration = Explorer(model, most_states=most_states).explore(is_stopped=lambda: time.process_time() > until)
    return exploration.found.violation.invariant if exploration.found is not None else ""
