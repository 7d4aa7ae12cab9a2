"""Commands for a service of Kubernetes: one clear error when it cannot be reached, and exit codes as for every cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import typer.main

from quarterdeck.backend.core.address import Address
from quarterdeck.cli.configuration.connection import ConnectionTarget
from quarterdeck.cli.configuration.opening import open_cluster
from quarterdeck.cli.exits import CommandFailed, ExitCode
from quarterdeck.cli.main import app
from tests.clusters.hazelcast.fake_cluster import fake_cluster
from tests.clusters.kubernetes.fake_kubectl import FakePods
from tests.clusters.kubernetes.test_pod_route import host_at, move
from tests.hazelcast.wire.fake_member import agree
from tests.waiting import wait_until

PROGRAM = typer.main.get_command(app)
FORBIDDEN = 'Error from server (Forbidden): endpointslices.discovery.k8s.io is forbidden: User "x" cannot list resource'


@pytest.mark.parametrize(
    ("url", "said", "code", "wanted"),
    [
        (
            "k8s://orders",
            "",
            ExitCode.BAD_INPUT,
            "k8s://orders does not name a namespace and a service; write k8s://NAMESPACE/",
        ),
        ("k8s://orders/none", "", ExitCode.BAD_INPUT, 'k8s://orders/none:5701: services "hazelcast" not found'),
        ("k8s://orders/none", FORBIDDEN, ExitCode.REFUSED, "kubectl: endpointslices.discovery.k8s.io is forbidden"),
    ],
)
def test_one_clear_error(
    url: str, said: str, code: ExitCode, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = FakePods(tmp_path)
    monkeypatch.setenv("KUBECTL", str(pods.program))
    pods.fail(said)
    with pytest.raises(CommandFailed) as failed:
        PROGRAM(["cluster", "status", "--connect", url], standalone_mode=False)
    assert failed.value.exit_code == code
    assert wanted in str(failed.value)


def test_a_status_is_that_of_all_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = FakePods(tmp_path)
    monkeypatch.setenv("KUBECTL", str(pods.program))
    with fake_cluster(2) as members:
        for number, member in enumerate(members.members):
            move(member, number)
            pods.run(f"hz-{number}", host_at(number), "uid", member.listens_at)
        members.do(lambda: agree(members.members))
        PROGRAM(["cluster", "status", "--connect", "k8s://orders/hazelcast", "-o", "json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert (found["whole"], found["unreached"]) == (True, [])
    assert sorted(found["reached"]) == ["hz-0:5701", "hz-1:5701"]
    assert not [call for call in pods.calls if " logs " in call]


def test_only_commands_that_go_on_read_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pods = FakePods(tmp_path)
    monkeypatch.setenv("KUBECTL", str(pods.program))
    pods.fail("The connection to the server was refused")
    target = ConnectionTarget(urls=("k8s://orders/hazelcast:5701",))
    for pod_logs in (True, False):
        cluster = open_cluster(target, pod_logs=pod_logs)
        assert cluster._settings.route.follows_logs is pod_logs  # type: ignore[attr-defined]
        cluster.close()


@pytest.mark.long
def test_no_kubectl_goes_on_when_the_program_is_killed(tmp_path: Path) -> None:
    pods = FakePods(tmp_path)
    pods.run("hz-0", host_at(0), "uid", Address("127.0.0.1:9"))
    words = ("record", "--connect", "k8s://orders/hazelcast", "--out", str(tmp_path / "out"))
    surroundings = os.environ | {"KUBECTL": str(pods.program), "PYTHONPATH": str(Path(__file__).parents[3])}
    recording = subprocess.Popen([sys.executable, "-m", "quarterdeck", *words], env=surroundings, cwd=tmp_path)
    wait_until(lambda: (tmp_path / "calls").exists() and any(" logs " in call for call in pods.calls))

    def following() -> list[Path]:
        return [path for path in Path("/proc").glob("[0-9]*/cmdline") if f"{tmp_path}/log-hz-0" in _read(path)]

    wait_until(following)
    recording.kill()
    recording.wait()
    wait_until(lambda: not following())


def _read(file: Path) -> str:
    with suppress(OSError):
        return file.read_text()
    return ""
