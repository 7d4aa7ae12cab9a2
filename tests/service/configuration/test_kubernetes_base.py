"""The base for Kubernetes: its configuration starts a member, its probes ask pages that there are, and kustomize takes it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.service.configuration.configuration_file import MemberFile

FOLDER = Path(__file__).parents[3] / "docs" / "operators" / "kubernetes"


def manifests(name: str) -> list[dict[str, Any]]:
    return list(YAML(typ="safe").load_all((FOLDER / name).read_text()))


def test_the_configuration_is_one() -> None:
    (written,) = manifests("member.yaml")
    read = MemberFile.model_validate(written, context={"base": FOLDER})
    listed = read.hazelcast.network.join.tcp_ip.member_list or ()
    _, members, _ = manifests("members.yaml")
    assert len(listed) == members["spec"]["replicas"]
    named = f"{members['metadata']['name']}-{{}}.{members['spec']['serviceName']}:5701".format
    assert list(listed) == [named(number) for number in range(len(listed))]


def test_a_pod_has_the_time_to_move_its_data() -> None:
    _, members, _ = manifests("members.yaml")
    spec = members["spec"]["template"]["spec"]
    wait_us = Settings.of(preset="production").graceful_shutdown_us
    assert spec["terminationGracePeriodSeconds"] * 1_000_000 > wait_us
    (member,) = spec["containers"]
    paths = {probe: member[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe", "startupProbe")}
    assert set(paths.values()) == {"/hazelcast/health/node-state", "/hazelcast/health/ready"}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on this machine")
def test_kustomize_takes_it() -> None:
    made = subprocess.run(["kubectl", "kustomize", str(FOLDER)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    kinds = [document["kind"] for document in YAML(typ="safe").load_all(made.stdout)]
    assert sorted(kinds) == ["ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "StatefulSet"]
