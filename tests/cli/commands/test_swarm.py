"""`quarterdeck swarm` as people run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Quarterdeck

FEW = ("--seeds", "1:2", "--sizes", "3:4")


def test_equal_seeds_give_equal_summaries_however_many_processes_run_them(quarterdeck: Quarterdeck) -> None:
    runs = [quarterdeck("swarm", *FEW, "--jobs", jobs) for jobs in (1, 2)]
    assert [run.returncode for run in runs] in ([0, 0], [1, 1])
    summary = json.loads(runs[0].stdout)
    assert summary == json.loads(runs[1].stdout)
    assert summary["seeds"] == "1:2"
    assert summary["runs"] == 2 == sum(summary["verdicts"].values())
    assert list(summary["verdicts"]) == ["ok", "violation", "no-convergence", "crash", "unknown"]
    assert summary["judged_runs"] == 2 and 0 < summary["writes"]["survived"] < summary["writes"]["acknowledged"]
    assert summary["events"] > 1000 and summary["virtual_seconds"] > 60
    assert runs[0].stderr.splitlines()[-1].startswith("2 seeds, ")


def test_guided_runs_are_the_same_in_one_process_and_in_two_and_can_be_repeated(
    quarterdeck: Quarterdeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quarterdeck.backend.simulation.swarm_testing.guided import GuidedSearch

    monkeypatch.setattr(
        GuidedSearch.__init__, "__defaults__", (None, 3)
    )  # small generations, so that few runs have several
    arguments = ("swarm", "--seeds", "1:5", "--sizes", "3:3", "--guided", "--reached")
    runs = [quarterdeck(*arguments, "--jobs", jobs) for jobs in (1, 2)]
    summary = json.loads(runs[0].stdout)
    assert summary == json.loads(runs[1].stdout)
    assert summary["runs"] == 5 and 0 < summary["guided"]["varied"] < 5 < summary["guided"]["states"]
    times, never = summary["reached"]["times"], summary["reached"]["never"]
    assert times["heartbeat while leading"] > 0 and never == [name for name, count in times.items() if not count]
    assert f"never: {', '.join(never)}" in runs[0].stderr
    printed = quarterdeck("swarm", "--seeds", "1+17", "--sizes", "3:3", "--print")
    assert printed.stdout.startswith("title: Swarm run 1+17\n")


def test_a_drawn_scenario_is_printed_and_can_be_simulated(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    printed = quarterdeck("swarm", "--seeds", "2", "--sizes", "3:4", "--print")
    assert printed.returncode == 0
    assert printed.stdout.startswith("title: Swarm run 2\n")
    file = tmp_path / "two.yaml"
    file.write_text(printed.stdout)
    simulated = quarterdeck("simulate", file, "--seed", "2")
    assert json.loads(simulated.stdout)["source"] == "simulated"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--seeds", "one"), "--seeds: 'one' is not a range; write two numbers, as in 1:2000"),
        (("--seeds", "5:2"), "--seeds: 5:2 ends before it begins"),
        (("--sizes", "1:4"), "--sizes: 1:4 does not lie between 3 and 1000"),
        (("--seeds", "1:2", "--print"), "--print: 1:2 is more than one seed"),
        (("--seeds", "1+2", "--guided"), "--guided: 1+2 is one run; write a range of seeds, as in 1:2000"),
    ],
)
def test_bad_input_is_one_line(quarterdeck: Quarterdeck, arguments: tuple[str, ...], problem: str) -> None:
    run = quarterdeck("swarm", *arguments)
    assert run.returncode == 2
    assert problem in run.stderr
    assert run.stderr.count("\n") == 1


def test_failures_exit_with_1_and_are_shrunk_to_files_that_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, with an invariant that nothing satisfies: nobody may ever be killed."""
    from typer.testing import CliRunner

    import quarterdeck.backend.simulation.swarm_testing.trial as trial
    from quarterdeck.backend.invariants import Violation
    from quarterdeck.cli.main import app

    original_trial = trial._TrialRun.trial

    def harsh(trial_run: trial._TrialRun, seed: int) -> trial.Trial:
        killed = [member for member in trial_run._run_state.picture.members.values() if member.status == "killed"]
        if killed and not trial_run._run_state.invariant_checker.violations:
            trial_run._run_state.invariant_checker.violations.append(
                Violation("nobody dies", f"{killed[0].label} was killed", ())
            )
        return original_trial(trial_run, seed)

    monkeypatch.setattr(trial._TrialRun, "trial", harsh)
    result = CliRunner().invoke(
        app, ["swarm", "--seeds", "37:37", "--sizes", "3:3", "--jobs", "1", "--shrink", str(tmp_path)]
    )
    assert result.exit_code == 1
    summary = json.loads(result.stdout)
    first = next(failure for failure in summary["failures"] if failure["invariant"] == "nobody dies")
    assert first["reproduce"] == f"quarterdeck swarm --seeds {first['seed']}:{first['seed']} --sizes 3:3"
    text = (tmp_path / f"seed-{first['seed']}.yaml").read_text()
    assert "violation nobody dies" in text.splitlines()[0]
    assert text.count("- do:") <= 3 and "kill" in text
