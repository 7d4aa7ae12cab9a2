"""`quarterdeck campaign run`: what is refused before Spark is started. What it does is tested with the pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Quarterdeck

SEEDS = ("--seeds", "1:3")
HEARTBEAT = "hazelcast.max.no.heartbeat.seconds"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--swarm", "--seeds", "one"), "--seeds: 'one' is not a range; write two numbers, as in 1:2000"),
        (("--swarm", "--seeds", "5:2"), "--seeds: 5:2 ends before it begins"),
        (("--swarm", "--seeds", "0"), "--seeds: 1:0 ends before it begins"),
        (SEEDS, "--scenario: say what to run: either --scenario FILE or --swarm"),
        ((*SEEDS, "--swarm", "--scenario", "x.yaml"), "--scenario: say what to run"),
        ((*SEEDS, "--scenario", "x.yaml", "--members", "3-4"), "--members: a scenario names its members"),
        ((*SEEDS, "--scenario", "x.yaml"), "x.yaml"),
        ((*SEEDS, "--swarm", "--members", "many"), "--members: 'many' is not a range; write two numbers, as in 3:20"),
        ((*SEEDS, "--swarm", "--members", "1-4"), "--members: 1-4 does not lie between 3 and 1000"),
        ((*SEEDS, "--swarm", "--guided", "--sweep", f"{HEARTBEAT}=4,5"), "--guided: varies what seeds draw"),
        ((*SEEDS, "--swarm", "--sweep", "x"), "--sweep: 'x' is not a setting with values; write SETTING=A,B,C"),
        ((*SEEDS, "--swarm", "--sweep", f"{HEARTBEAT}=4,,5"), "write SETTING=A,B,C without gaps"),
        ((*SEEDS, "--swarm", "--sweep", f"{HEARTBEAT}=4,4"), f"--sweep: {HEARTBEAT} has a value twice"),
        ((*SEEDS, "--swarm", "--sweep", f"{HEARTBEAT}=soon"), "'soon' is not a number of seconds"),
        ((*SEEDS, "--swarm", "--sweep", "hazelcast.heartbeat=1"), "there is no such property"),
        ((*SEEDS, "--swarm", "--master", "local", "--remote", "sc://a"), "--master and --remote exclude each other"),
    ],
)
def test_bad_input_is_one_line(
    quarterdeck: Quarterdeck, tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    out = tmp_path / "out"
    run = quarterdeck("campaign", "run", *arguments, "--out", out)
    assert run.returncode == 2
    assert problem in run.stderr
    assert run.stderr.count("\n") == 1
    assert run.stdout == ""
    assert not out.exists()


def test_a_file_is_no_folder(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    run = quarterdeck("campaign", "run", "--swarm", *SEEDS, "--out", tmp_path / "out")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "--out: " in run.stderr
