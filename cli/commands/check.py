"""`quarterdeck check`: every order of events of a small cluster, within bounds, on the real core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.commands.run_options import JournalOption, recording
from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, say, write_document, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.simulation.model_checking.exploration import Exploration, Progress
    from quarterdeck.backend.simulation.model_checking.model import Model

COLUMNS = ("model", "states", "exhausted", "depth", "transitions", "ways", "calm", "seconds", "invariant")


def check(
    models: Annotated[
        list[str] | None, typer.Argument(help="Names of shipped models, or files; all shipped ones when none is named.")
    ] = None,
    drops: Annotated[int | None, typer.Option(min=0, help="So many messages may get lost.")] = None,
    duplicates: Annotated[int | None, typer.Option(min=0, help="So many messages may arrive twice.")] = None,
    crashes: Annotated[int | None, typer.Option(min=0, help="So many processes may be killed.")] = None,
    restarts: Annotated[int | None, typer.Option(min=0, help="So many of those may be started again.")] = None,
    late: Annotated[
        int | None, typer.Option(min=0, help="So often a clock may go on while messages are on their way.")
    ] = None,
    ticks: Annotated[int | None, typer.Option(min=1, help="So often members may be woken by their clocks.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes, for several models; as many as processors when not given.")
    ] = None,
    most_states: Annotated[int, typer.Option(min=1, help="Give a model up after so many states.")] = 1_000_000,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the schedule of a violation there, to be repeated.")
    ] = None,
    repeat: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Carry out the schedule in such a file again instead.")
    ] = None,
    journal: JournalOption = None,
    list_models: Annotated[bool, typer.Option("--list", help="Print the shipped models instead.")] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Look at every order of deliveries, losses, duplicates, crashes, restarts and clocks, within the bounds of a model.

    Exits with 1 when one of them violates an invariant, or leaves a cluster that does not become one again. A model that was
    given up after too many states is no failure: `exhausted` says so.
    """
    from quarterdeck.backend.simulation.model_checking.reading import BadModel, load_model, shipped_models

    if repeat is not None:
        _repeat(repeat, journal, output)
        return
    with failing_as(ExitCode.BAD_INPUT, BadModel):
        chosen = [(name, load_model(name)) for name in models or shipped_models()]
    if list_models:
        write_rows(({"model": name, "title": model.title} for name, model in chosen), ("model", "title"), output)
        return
    bounds = {
        name: value
        for name, value in {
            **{"drops": drops, "duplicates": duplicates, "crashes": crashes},
            **{"restarts": restarts, "late": late, "ticks": ticks},
        }.items()
        if value is not None
    }
    rows = []
    explorations = _explorations([model for _, model in chosen], bounds, most_states, jobs or os.cpu_count() or 1)
    for (name, _), exploration in zip(chosen, explorations, strict=True):
        rows.append(_row(exploration))
        if exploration.found is not None:
            say(f"{name}: {exploration.found.violation.invariant}: {exploration.found.violation.text}")
            _write_schedule(name, exploration, out)
    write_rows(rows, COLUMNS, output)
    if any(row["invariant"] for row in rows):
        raise typer.Exit(ExitCode.CHECK_FAILED)


def register(app: typer.Typer) -> None:
    app.command()(check)


def _repeat(file: Path, journal: Path | None, output: Format) -> None:
    import msgspec

    from quarterdeck.backend.simulation.model_checking.reading import BadModel, load_model
    from quarterdeck.backend.simulation.model_checking.schedule import Schedule, ScheduleDoesNotFit, repeated

    with failing_as(ExitCode.BAD_INPUT, OSError, msgspec.MsgspecError, about=str(file)):
        schedule = msgspec.json.decode(file.read_bytes(), type=Schedule)
    with failing_as(ExitCode.BAD_INPUT, BadModel):
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
    if violation:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _explorations(models: list[Model], bounds: dict[str, int], most_states: int, jobs: int) -> Iterator[Exploration]:
    """One after the other, whichever is ready first."""
    from concurrent.futures import ProcessPoolExecutor
    from functools import partial
    from multiprocessing import get_context

    attempt = partial(_explored, bounds=bounds, most_states=most_states)
    if len(models) == 1 or jobs == 1:
        yield from map(attempt, models)
        return
    with ProcessPoolExecutor(min(jobs, len(models)), mp_context=get_context("spawn")) as processes:
        try:
            yield from processes.map(attempt, models)
        finally:
            processes.shutdown(wait=False, cancel_futures=True)


def _explored(model: Model, bounds: dict[str, int], most_states: int) -> Exploration:
    import msgspec

    from quarterdeck.backend.simulation.model_checking.exploration import Explorer

    changed = msgspec.structs.replace(model, bounds=msgspec.structs.replace(model.bounds, **bounds))

    def tell(progress: Progress) -> None:
        rate = progress.states / max(progress.seconds, 1e-9)
        say(
            f"{model.name}: {progress.states} states, {rate:.0f} a second, depth {progress.depth}, "
            f"{progress.frontier} to be looked at"
        )

    return Explorer(changed, most_states=most_states).explore(tell)


def _row(exploration: Exploration) -> dict[str, object]:
    progress, found = exploration.progress, exploration.found
    return {
        "model": exploration.model,
        "states": progress.states,
        "exhausted": exploration.exhausted,
        "depth": progress.depth,
        "transitions": progress.transitions,
        "ways": exploration.ends,
        "calm": exploration.converged,
        "seconds": round(progress.seconds, 1),
        "events": exploration.seen,
        "invariant": found.violation.invariant if found else "",
        "text": found.violation.text if found else "",
        "steps": found.steps if found else (),
    }


def _write_schedule(name: str, exploration: Exploration, out: Path | None) -> None:
    import msgspec

    from quarterdeck.backend.simulation.model_checking.schedule import Schedule

    found = exploration.found
    if out is None or found is None:
        return
    schedule = Schedule(name, found.violation.invariant, found.violation.text, found.steps)
    file = out / f"{exploration.model}.json"
    with failing_as(ExitCode.BAD_INPUT, OSError, about="--out"):
        out.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.format(msgspec.json.encode(schedule)))
    say(f"repeat it with: quarterdeck check --repeat {file} --journal DIR")
