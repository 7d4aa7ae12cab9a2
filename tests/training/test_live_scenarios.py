"""The acceptance scenarios once more, on real members: what holds in simulated time holds on sockets and under real kills.

A scenario takes part when its first line is one of `MARKS`. Those that take a quarter of a minute or more have none.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.backend.clusters.local import LiveCluster, LocalCluster, ProcessCluster
from quarterdeck.backend.scenarios.format.reading import load_scenario
from quarterdeck.backend.training.runner import run_live
from tests.ports import take_ports

MARKS: dict[str, tuple[type[LiveCluster], ...]] = {
    "# live": (LocalCluster,),
    "# live, in processes too": (LocalCluster, ProcessCluster),
}
FOUND = Path(__file__).parents[1] / "simulation" / "swarm_testing" / "regressions" / "seed-467.yaml"
SCENARIOS = Path(__file__).parents[1] / "scenarios"
BASE_PORT = take_ports(40)


def mark_of(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0]


SOON = {"killed-process", "master-crash", "p-graceful-member"}
"""What is played in `make test` already; the others wait for `make test-long`."""

LIVE = [
    pytest.param(
        path, kind, id=f"{path.stem}-{kind.__name__}", marks=[pytest.mark.long] if path.stem not in SOON else []
    )
    for path in sorted(SCENARIOS.glob("*.yaml"))
    for kind in MARKS.get(mark_of(path), ())
]


@pytest.mark.parametrize(("path", "kind"), LIVE)
def test_a_scenario_comes_true_on_real_members(path: Path, kind: type[LiveCluster]) -> None:
    lines: list[str] = []
    outcome = run_live(load_scenario(path), lines.append, base_port=BASE_PORT, kind=kind)
    assert outcome.passed, "\n".join(lines)


@pytest.mark.long
def test_a_shrunk_scenario_is_one_that_runs_live_too() -> None:
    """What the swarm wrote is played on real members; latencies and clocks are then those of the machine."""
    scenario = load_scenario(FOUND)
    outcome = run_live(scenario, lambda line: None, base_port=BASE_PORT)
    assert outcome.violations == ()
    assert outcome.members


def test_every_mark_is_one_that_is_known() -> None:
    first_lines = {path.name: mark_of(path) for path in sorted(SCENARIOS.glob("*.yaml"))}
    assert {name: line for name, line in first_lines.items() if "live" in line.lower() and line[0] == "#"} == {
        name: line for name, line in first_lines.items() if line in MARKS
    }
    assert {"master-crash.yaml", "killed-process.yaml"} <= {name for name, line in first_lines.items() if line in MARKS}
