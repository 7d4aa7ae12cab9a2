"""What `console --replay` and `console --simulate` open, and what they say of bad input."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.cli.commands.console import simulated_cluster
from quarterdeck.cli.commands.recording import RecordingTarget
from quarterdeck.cli.exits import CommandFailed
from tests.clusters.recorded.test_recorded_cluster import read, records_of, write


def test_a_recorded_run_and_the_moment_in_it(tmp_path: Path) -> None:
    write(tmp_path, "r", "one", records_of("r", 50, step_us=1_000_000))
    for at, at_us in ((None, None), ("12.5", 12_500_000), ("n1#7", 6_000_000), ("r-n1#1", 0)):
        cluster, moment_us = RecordingTarget(tmp_path, at).opened()
        assert moment_us == at_us and len(read(cluster)) == 50


@pytest.mark.parametrize(("at", "said"), [("n9#7", "no event n9#7 in the run r"), ("soon", "names no moment")])
def test_moments_that_are_none(tmp_path: Path, at: str, said: str) -> None:
    write(tmp_path, "r", "one", records_of("r", 5))
    with pytest.raises(CommandFailed, match=said):
        RecordingTarget(tmp_path, at).opened()


def test_runs_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"--replay: .*no such file"):
        RecordingTarget(tmp_path / "nothing").opened()
    scenario = tmp_path / "one.yaml"
    scenario.write_text("title: One\nmembers: [n1]\nsteps:\n  - say: It is alone.\n")
    with pytest.raises(CommandFailed, match="--speed: speed 0"):
        simulated_cluster(scenario, 3, 0.0)
    cluster = simulated_cluster(scenario, None, None)
    assert cluster.name == "one" and cluster.speed == 1.0
    cluster.close()
