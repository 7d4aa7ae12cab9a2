"""`quarterdeck campaign`: simulations by the hundred thousand on Spark, judged, ranked and compared."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from quarterdeck.cli.commands.spark.engine_options import ConfOption, MasterOption, RemoteOption, chosen_engine
from quarterdeck.cli.commands.swarm import seed_range, size_bounds
from quarterdeck.cli.exits import BadUsage, CommandFailed, ExitCode, fail_if, failing_as
from quarterdeck.cli.output import Format, FormatOption, flag, narrate, option, say, write_document, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.core.properties import PropertyValue
    from quarterdeck.backend.pipeline.campaign.driver import CampaignProgress, CampaignSummary
    from quarterdeck.backend.pipeline.campaign.plan import Campaign
    from quarterdeck.backend.pipeline.spark.engine import Engine

PROGRESS_INTERVAL_SECONDS = 5.0
FAILURES_PRINTED = 20
"""Failing seeds that are printed as they are found. The ranking at the end has them all."""

FAILURE_COLUMNS = ("signature", "runs", "seeds", "reproduce")
COMPARISON_COLUMNS = (
    "settings", "measure", "runs", "mean", "mean_95", "p50", "p95", "p99", "minus_first", "minus_first_95",
)  # fmt: skip

group = typer.Typer(help="Run simulations by the hundred thousand on Spark.", rich_markup_mode=None)


@group.command("run")
def run(
    seeds: Annotated[str, option("The seeds to run; both ends are run. N alone is 1:N.", "FIRST:LAST")],
    out: Annotated[Path, option("Keep verdicts, journals and failures here.", "DIR")],
    scenario: Annotated[Path | None, option("Run this scenario under every seed.", "FILE")] = None,
    swarm: Annotated[bool, flag("Draw a scenario from every seed, as `quarterdeck swarm`.", "--swarm")] = False,
    guided: Annotated[
        bool, flag("With --swarm: vary what each seed draws, towards states that are rare.", "--guided")
    ] = False,
    reached: Annotated[
        bool, flag("Say how often each rule and branch was reached, and which never was.", "--reached")
    ] = False,
    members: Annotated[
        str | None, option("With --swarm: how many members a run may have; 3-20.", "FEWEST-MOST")
    ] = None,
    sweep: Annotated[
        list[str] | None, option("Compare these values on the same seeds; repeat for combinations.", "SETTING=A,B,C")
    ] = None,
    resume: Annotated[bool, flag("Continue the campaign in DIR; there may be more seeds now.", "--resume")] = False,
    shrink: Annotated[bool, option("Make one scenario of each way of failing as small as possible.")] = True,
    budget: Annotated[
        float, option("CPU time that one run may take before it is given up.", "SECONDS", min=0.1)
    ] = 240.0,
    master: MasterOption = "",
    remote: RemoteOption = "",
    conf: ConfOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Run every seed, keep a verdict of each, and look into what failed.

    A run that raises, ends its process or never ends is a verdict like any other. Exits with 1 when a run failed.
    """
    engine = chosen_engine("spark", master, remote, conf)
    from quarterdeck.backend.core.properties import BadProperty
    from quarterdeck.backend.pipeline.campaign.plan import Campaign, variants_of
    from quarterdeck.backend.scenarios.format.reading import load_scenario

    numbers = seed_range(seeds, alone_from=1)
    if (scenario is None) == (not swarm):
        raise BadUsage("--scenario: say what to run: either --scenario FILE or --swarm")
    if scenario is not None and members is not None:
        raise BadUsage("--members: a scenario names its members; use --swarm")
    if guided and (scenario is not None or sweep):
        raise BadUsage("--guided: varies what seeds draw; use --swarm, without --sweep")
    with failing_as(ExitCode.BAD_INPUT, BadProperty, about="--sweep"):
        variants = variants_of(_sweep(sweep or []))
    text, sizes = "", size_bounds(members or "3-20", "--members")
    if scenario is not None:
        load_scenario(scenario)
        text = scenario.read_text(encoding="utf-8")
    campaign = Campaign(text, sizes=sizes, variants=variants, cpu_seconds=budget, guided=guided, counts_reached=reached)
    if "://" in str(out):
        raise BadUsage(f"--out: {out} is an address; name a folder of this machine")
    with failing_as(ExitCode.BAD_INPUT, OSError, about="--out"):
        out.mkdir(parents=True, exist_ok=True)
    summary = _on_spark(
        campaign, numbers, out, engine, resume=resume, scenario_file=str(scenario or ""), shrinks=shrink
    )
    _print(summary, output)
    fail_if(summary.failed)


def _sweep(texts: list[str]) -> dict[str, list[PropertyValue]]:
    sweep: dict[str, list[PropertyValue]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        given = [value.strip() for value in values.split(",")]
        if not equals or not all(given):
            raise BadUsage(f"--sweep: {text!r} is not a setting with values; write SETTING=A,B,C without gaps")
        if name in sweep:
            raise BadUsage(f"--sweep: {name} is given twice; write all its values behind one")
        if len(set(given)) != len(given):
            raise BadUsage(f"--sweep: {name} has a value twice")
        sweep[name] = [_value(value) for value in given]
    return sweep


def _value(text: str) -> PropertyValue:
    """As a scenario file would be read."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d*\.\d+", text):
        return float(text)
    return {"true": True, "false": False}.get(text, text)


# Running it


def _on_spark(campaign: Campaign, seeds: range, out: Path, engine: Engine, **how: Any) -> CampaignSummary:
    from quarterdeck.backend.pipeline.spark.requirements import SparkFailed, needing_packages

    with needing_packages():
        from quarterdeck.backend.pipeline.campaign.driver import run_campaign
        from quarterdeck.backend.pipeline.spark.engine import engine_session
    with failing_as(ExitCode.BAD_INPUT, OSError):
        try:
            with engine_session(engine, "campaign") as spark, _progress() as print_progress:
                return run_campaign(spark, campaign, seeds, out, on_progress=print_progress, on_warning=say, **how)
        except KeyboardInterrupt:
            say(f"interrupted; go on with --resume: {out}")
            raise
        except SparkFailed as problem:
            hint = f"what came back is kept; go on with --resume: {out}"
            raise CommandFailed(ExitCode.UNREACHABLE, f"{problem}; {hint}") from problem


@contextmanager
def _progress() -> Iterator[Callable[[CampaignProgress], None]]:
    """Yield a printer of progress on stderr: a bar on a terminal, a line every few seconds elsewhere."""
    printed = 0

    def print_failures(progress: CampaignProgress, print_line: Callable[[str], None]) -> None:
        nonlocal printed
        for row in progress.new_failures:
            printed += 1
            if printed <= FAILURES_PRINTED:
                print_line(f"seed {row.seed}: {row.signature}")

    if not sys.stderr.isatty():
        said_at = 0.0

        def print_plainly(progress: CampaignProgress) -> None:
            nonlocal said_at
            print_failures(progress, narrate)
            if progress.seconds - said_at >= PROGRESS_INTERVAL_SECONDS or progress.runs == progress.of_runs:
                said_at = progress.seconds
                say(_line(progress))

        yield print_plainly
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[line]}", markup=False))
    with Bar(*columns, console=Console(stderr=True, highlight=False)) as bar:
        task = bar.add_task("", total=1.0, line="starting")

        def draw(progress: CampaignProgress) -> None:
            print_failures(progress, lambda text: bar.console.print(text, markup=False))
            bar.update(task, completed=progress.share, line=_line(progress))

        yield draw


def _line(progress: CampaignProgress) -> str:
    left = f", {_duration(progress.left_seconds)} left" if progress.left_seconds else ""
    failed = f", {progress.failed} failed" if progress.failed else ""
    return f"{progress.runs} of {progress.of_runs} runs, {progress.rate:.1f} a second{left}{failed}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


# What is printed


def _print(summary: CampaignSummary, output: Format) -> None:
    took = summary.took
    document: dict[str, Any] = msgspec.to_builtins(summary)
    if not output.is_flat:
        write_document(document, output)
    else:
        structured = ("failures", "settings", "reached", "took")
        write_document({name: value for name, value in document.items() if name not in structured}, output)
        if summary.failures:
            write_rows(document["failures"], FAILURE_COLUMNS, output)
        if summary.settings:
            write_rows(_comparison_rows(summary), COMPARISON_COLUMNS, output)
    if summary.reached is not None:
        say(summary.reached.text)
    for failure in summary.failures:
        say(f"{failure.runs} x {failure.signature}")
        if failure.reproduce:
            say(f"  reproduce: {failure.reproduce}")
        if failure.scenario:
            say(f"  scenario: quarterdeck simulate {failure.scenario} --seed {failure.seeds[0]}")
    if summary.failures_left_out:
        say(f"and {summary.failures_left_out} more ways of failing, in the verdicts only")
    say(f"{took.runs} runs in {_duration(took.wall_seconds)}, {took.runs_per_second} a second; {summary.folder}")


def _comparison_rows(summary: CampaignSummary) -> Iterator[dict[str, object]]:
    """One row for each measure of each variant, and one for each verdict that occurs anywhere."""
    verdicts = [verdict for verdict in summary.verdicts if summary.verdicts[verdict]]
    for variant in summary.settings:
        settings = ", ".join(f"{name}={value}" for name, value in variant.settings.items())
        for verdict in verdicts:
            share = variant.verdicts[verdict]
            yield {
                "settings": settings,
                "measure": f"share {verdict}",
                "runs": share.runs,
                "mean": share.share,
                "mean_95": _interval(share.interval),
            }
        for name, measure in variant.measures.items():
            row: dict[str, object] = {"settings": settings, "measure": name.replace("_", " "), "runs": measure.runs}
            if measure.mean is not None:
                row |= {"mean": f"{measure.mean.value:.3f}", "mean_95": _interval(measure.mean.interval)}
            row |= {name: f"{estimate.value:.3f}" for name, estimate in measure.percentiles.items()}
            if measure.minus_first is not None:
                row["minus_first"] = f"{measure.minus_first.value:+.3f}"
                row["minus_first_95"] = _interval(measure.minus_first.interval)
            yield row


def _interval(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.3f} to {interval[1]:.3f}"
