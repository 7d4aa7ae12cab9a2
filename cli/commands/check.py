"""`quarterdeck check`: every order of events of a small cluster, within bounds, on the real core."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import replace as replaced

from quarterdeck.cli.commands.run_options import JobsOption, JournalOption, recording, stopping
from quarterdeck.cli.exits import ExitCode, fail_if, failing_as
from quarterdeck.cli.output import Format, FormatOption, argument, flag, option, say, write_document, write_rows

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    from quarterdeck.backend.simulation.model_checking.exploration import Exploration, SearchProgress
    from quarterdeck.backend.simulation.model_checking.model import Model


POLL_SECONDS = 0.2
"""How often it is looked whether Ctrl-C was pressed."""

_stop: Event | None = None
"""In a process that explores one of several models: set when it is to stop."""

COLUMNS = ("model", "states", "exhausted", "depth", "transitions", "ways", "calm", "seconds", "invariant")


def check(
    models: Annotated[
        list[str] | None, argument("Names of shipped models, or files; all shipped ones when none is named.")
    ] = None,
    drops: Annotated[int | None, option("How many messages may get lost.", min=0)] = None,
    duplicates: Annotated[int | None, option("How many messages may arrive twice.", min=0)] = None,
    crashes: Annotated[int | None, option("How many processes may be killed.", min=0)] = None,
    restarts: Annotated[int | None, option("How many killed processes may be started again.", min=0)] = None,
    late: Annotated[int | None, option("How often a clock may advance while messages are in flight.", min=0)] = None,
    ticks: Annotated[int | None, option("How often clocks may wake members.", min=1)] = None,
    steps: Annotated[int | None, option("How many events one run may have.", min=0)] = None,
    members: Annotated[int | None, option("How many members are in the cluster at first.", min=1)] = None,
    jobs: JobsOption = None,
    memory: Annotated[int, option("Keep states in temporary files beyond this much memory.", "MB", min=1)] = 1000,
    state: Annotated[
        Path | None, option("Keep checkpoints in DIR, and continue from one that is there.", "DIR")
    ] = None,
    histories: Annotated[
        bool, flag("Also distinguish states by the records on the way to them.", "--histories")
    ] = False,
    most_states: Annotated[int, option("Give up a model after this many states.", min=1)] = 1_000_000,
    out: Annotated[Path | None, option("Write the schedule of a violation to DIR, also as a scenario.", "DIR")] = None,
    repeat: Annotated[Path | None, option("Run the schedule in such a file again instead.", "FILE")] = None,
    journal: JournalOption = None,
    list_models: Annotated[bool, flag("Print the shipped models instead.", "--list")] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Check every order of deliveries, losses, duplicates, crashes, restarts and clocks, within the bounds of a model.

    Exits with 1 when one of them violates an invariant, or leaves members that do not form one cluster again. A model that
    was given up after too many states is not a failure: `exhausted` says so.
    """
    from quarterdeck.backend.simulation.model_checking.reading import load_model, shipped_models

    if repeat is not None:
        _repeat(repeat, journal, output)
        return
    chosen = [(name, load_model(name, members)) for name in models or shipped_models()]
    if list_models:
        write_rows(({"model": name, "title": model.title} for name, model in chosen), ("model", "title"), output)
        return
    wanted = {"drops": drops, "duplicates": duplicates, "crashes": crashes, "restarts": restarts, "late": late}
    bounds = {name: value for name, value in {**wanted, "ticks": ticks, "steps": steps}.items() if value is not None}
    search = CheckRun(most_states, jobs or os.cpu_count() or 1, memory * 1_000_000, histories, state)
    rows = []
    with failing_as(ExitCode.BAD_INPUT, OSError, about="--state"):
        bounded = [replaced(model, bounds=model.bounds.model_copy(update=bounds)) for _, model in chosen]
        for (name, _), model, exploration in zip(chosen, bounded, _explorations(bounded, search), strict=True):
            rows.append(_row(exploration))
            if exploration.found is not None:
                say(f"{name}: {exploration.found.violation.invariant}: {exploration.found.violation.text}")
                _write_schedule(name, model, exploration, out)
    write_rows(rows, COLUMNS, output)
    fail_if(any(row["invariant"] for row in rows))


def _repeat(file: Path, journal: Path | None, output: Format) -> None:
    from quarterdeck.backend.scenarios.format.scenario import ScheduleDoesNotFit
    from quarterdeck.backend.simulation.model_checking.reading import load_model
    from quarterdeck.backend.simulation.model_checking.schedule import Schedule, repeated

    with failing_as(ExitCode.BAD_INPUT, OSError, msgspec.MsgspecError, about=str(file)):
        schedule = msgspec.json.decode(file.read_bytes(), type=Schedule)
    model = load_model(schedule.model)
    with failing_as(ExitCode.BAD_INPUT, ScheduleDoesNotFit, about=str(file)):
        repetition = repeated(model, schedule.steps)
    with recording(journal, model.name, wanted=journal is not None) as writer:
        if writer is not None:
            for record in repetition.records:
                writer.append(record)
    violation = repetition.violation
    write_document(
        {
            **{"model": model.name, "steps": len(schedule.steps), "records": len(repetition.records)},
            "invariant": violation.invariant if violation else "",
            "text": violation.text if violation else "",
            "witnesses": violation.witnesses if violation else (),
        },
        output,
    )
    fail_if(violation)


@dataclass(frozen=True)
class CheckRun:
    """How models are searched."""

    most_states: int
    jobs: int
    memory_bytes: int
    by_history: bool
    state: Path | None


def _explorations(models: list[Model], search: CheckRun) -> Iterator[Exploration]:
    """In their order: one model by all processes, several by one each. Raises KeyboardInterrupt when all have stopped."""
    stop = threading.Event()
    with stopping(stop):
        if len(models) == 1 or search.jobs == 1:
            for model in models:
                exploration = _explored(model, search, search.jobs, stop.is_set)
                if exploration.interrupted:
                    raise KeyboardInterrupt
                yield exploration
        else:
            yield from _beside_one_another(models, search, stop)


def _beside_one_another(models: list[Model], search: CheckRun, pressed: threading.Event) -> Iterator[Exploration]:
    from concurrent.futures import ProcessPoolExecutor, wait
    from multiprocessing import get_context

    context = get_context("spawn")
    stop = context.Event()
    jobs = min(search.jobs, len(models))
    each = replace(search, memory_bytes=search.memory_bytes // jobs)
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_process, initargs=(stop,)) as processes:
        futures = [processes.submit(_explored_in_a_process, model, each) for model in models]
        try:
            for future in futures:
                while not future.done():
                    wait([future], timeout=POLL_SECONDS)
                    if pressed.is_set():
                        stop.set()
                exploration = future.result()
                if exploration.interrupted:
                    raise KeyboardInterrupt
                yield exploration
        finally:
            stop.set()
            processes.shutdown(cancel_futures=True)


def _begin_process(stop: Event) -> None:
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _explored_in_a_process(model: Model, search: CheckRun) -> Exploration:
    assert _stop is not None
    return _explored(model, search, 1, _stop.is_set)


def _explored(model: Model, search: CheckRun, processes: int, is_stopped: Callable[[], bool]) -> Exploration:
    from quarterdeck.backend.simulation.model_checking.exploration import Explorer

    explorer = Explorer(
        model,
        most_states=search.most_states,
        processes=processes,
        memory_bytes=search.memory_bytes,
        by_history=search.by_history,
        folder=search.state / model.name if search.state is not None else None,
    )
    return explorer.explore(_report(model), is_stopped)


def _report(model: Model) -> Callable[[SearchProgress], None]:
    def report(progress: SearchProgress) -> None:
        say(
            f"{model.name}: {progress.states} states, {progress.states_per_second:.0f} a second, depth {progress.depth}, "
            f"{progress.frontier} to be looked at"
        )

    return report


def _row(exploration: Exploration) -> dict[str, object]:
    progress, found = exploration.progress, exploration.found
    return {
        "model": exploration.model,
        "states": progress.states,
        "exhausted": exploration.exhausted,
        "depth": progress.depth,
        "transitions": progress.transitions,
        "ways": exploration.histories,
        "calm": exploration.converged,
        "seconds": round(progress.seconds, 1),
        "events": exploration.seen,
        "invariant": found.violation.invariant if found else "",
        "text": found.violation.text if found else "",
        "steps": found.steps if found else (),
    }


def _write_schedule(name: str, model: Model, exploration: Exploration, out: Path | None) -> None:
    from quarterdeck.backend.scenarios.format.writing import scenario_text
    from quarterdeck.backend.simulation.model_checking.schedule import Schedule, as_scenario

    found = exploration.found
    if out is None or found is None:
        return
    schedule = Schedule(name, found.violation.invariant, found.violation.text, found.steps)
    with failing_as(ExitCode.BAD_INPUT, OSError, about="--out"):
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{model.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(schedule)))
        scenario = out / f"{model.name}.yaml"
        scenario.write_text(scenario_text(as_scenario(model, schedule)))
    say(f"repeat it with: quarterdeck simulate {scenario} --seed 0 --journal DIR")
