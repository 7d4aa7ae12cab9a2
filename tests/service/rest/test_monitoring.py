"""The dashboard and the alert rules name metrics that there are, and every metric is documented."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from quarterdeck.backend.live.security.tls import WireSecurity
from quarterdeck.backend.service.application import application
from quarterdeck.backend.service.configuration.process_configuration import Security
from tests.live.security.certificates import Authority
from tests.service.single_member import Client, SingleMemberFace

DOCS = Path(__file__).parents[3] / "docs"
RULES = DOCS / "operators" / "monitoring" / "alerts.yaml"
DASHBOARD = DOCS / "operators" / "monitoring" / "grafana.json"
NAME = re.compile(r"\b(?:quarterdeck|process)_\w+")
OF_PROMETHEUS = {"up"}


def metric_names(tmp_path: Path) -> set[str]:
    """Every name that a sample of a member can have, of a member with TLS of whom everything was asked once."""
    face = SingleMemberFace()
    files = Authority(tmp_path).files()
    security = Security(wire=WireSecurity(tls=files))
    object.__setattr__(face.configuration, "security", security)
    face.meters.calls["put", "done"].add(0.01)
    client = Client(application(face))
    client.get("/hazelcast/health")
    names: set[str] = set()
    for family in text_string_to_metric_families(client.get("/metrics").text):
        names |= {sample.name for sample in family.samples}
        names |= {f"{family.name}_total"} if family.type == "counter" else {family.name}
    return names


def expressions() -> list[str]:
    rules = [rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    board = json.loads(DASHBOARD.read_text())
    return rules + [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def test_every_metric_in_the_dashboard_and_the_rules_exists(tmp_path: Path) -> None:
    named = {name for expression in expressions() for name in NAME.findall(expression)}
    assert named and not named - metric_names(tmp_path)


def test_every_metric_is_documented(tmp_path: Path) -> None:
    page = (DOCS / "reference" / "http-api.md").read_text()
    told = set(NAME.findall(page))
    suffix = re.compile(r"_(bucket|count|sum|created)$")
    names = {suffix.sub("", name) for name in metric_names(tmp_path) if name.startswith("quarterdeck_")}
    assert not names - told - {name for name in names if f"{name}_total" in told or f"{name}_info" in told}


def test_every_rule_is_explained_and_says_what_it_is_about() -> None:
    page = (DOCS / "operators" / "monitoring.md").read_text()
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            assert f"`{rule['alert']}`" in page
            assert rule["labels"]["severity"] in ("warning", "critical") and rule["annotations"]["summary"]


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in json.loads(DASHBOARD.read_text())["panels"]]
    cells = [(place["x"], place["y"]) for place in places]
    assert len(set(cells)) == len(cells) and all(place["x"] + place["w"] <= 24 for place in places)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool on this machine")
def test_promtool_accepts_the_rules_and_they_fire(tmp_path: Path) -> None:
    unit_tests = Path(__file__).with_name("alerts_test.yaml")
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(unit_tests)]):
        found = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False, timeout=60)
        assert found.returncode == 0, found.stdout + found.stderr
