"""`quarterdeck member start` with what it cannot start with."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Quarterdeck


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bind=0.0.0.0"], "--bind: quarterdeck.bind: 0.0.0.0 is beyond this machine, and nothing says"),
        (["--property=hazelcast.max.no.heartbeat.secons=3"], "did you mean hazelcast.max.no.heartbeat.seconds?"),
        (["--property=x"], "--property x: write it as NAME=VALUE"),
        (["--config=none.yaml"], "none.yaml:1: cannot be read"),
        (["--log-level=loud"], "--log-level: quarterdeck.log.level: 'LOUD' is not known here"),
        (["--ready-file=/proc/none/ready"], "--ready-file /proc/none/ready"),
        (["--journal=/proc/none"], "the journal cannot be written"),
    ],
)
def test_a_bad_configuration_is_one_line(quarterdeck: Quarterdeck, arguments: list[str], message: str) -> None:
    done = quarterdeck("member", "start", "--name=n1", *arguments)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
