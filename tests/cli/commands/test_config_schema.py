"""`quarterdeck config schema`: what people write fits the schemas of their files, and what is wrong with it is found."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from quarterdeck.cli.commands.settings import FileKind, schema_of
from quarterdeck.cli.main import app

ROOT = Path(__file__).parents[3]
SHIPPED = {
    "scenario": [
        *ROOT.glob("backend/training/scripts/*.yaml"),
        *ROOT.glob("docs/generators/*.yaml"),
        *ROOT.glob("tests/scenarios/*.yaml"),
    ],
    "model": [*ROOT.glob("backend/simulation/model_checking/models/*.yaml")],
    "member": [ROOT / "docs" / "operators" / "kubernetes" / "member.yaml"],
}
MEMBER = """
hazelcast:
  cluster-name: dev
  network: {port: 5701, join: {tcp-ip: {member-list: "10.0.0.1, 10.0.0.2"}}}
quarterdeck: {security: {allowed-hosts: console.example}}
"""
USER = """
clusters: [{label: production, urls: ["hazelcast://10.0.0.1"], read-only: true}]
console: {theme: light, keys: {help: f1}}
"""


@cache
def validator(kind: FileKind) -> Any:
    return jsonschema_rs.validator_for(schema_of(kind))


def problems(kind: FileKind, data: Any) -> list[str]:
    plain = json.loads(json.dumps(data, default=str))
    return [error.message for error in validator(kind).iter_errors(plain)]


def read(text: str) -> Any:
    return YAML(typ="safe").load(text)


@pytest.mark.parametrize("kind", SHIPPED)
def test_what_is_shipped_fits_and_names_its_schema(kind: FileKind) -> None:
    assert SHIPPED[kind]
    bad = {file.name: found for file in SHIPPED[kind] if (found := problems(kind, read(file.read_text())))}
    assert not bad
    named = {file: file.read_text().partition("\n")[0] for file in SHIPPED[kind] if file.parent.name != "scenarios"}
    schemas = {
        (file.parent / line.removeprefix("# yaml-language-server: $schema=")).resolve() for file, line in named.items()
    }
    assert schemas == {ROOT / "backend" / "documents" / "schemas" / f"{kind}.schema.json"}


def test_configurations_fit() -> None:
    assert problems("member", read(MEMBER)) == []
    assert problems("user", read(USER)) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("scenario", "{title: T, members: 3, steps: [{expect: {wihtin: 3s, safe: true}}]}"),
        ("scenario", "{title: T, members: 3, steps: [{expect: {within: 3 seconds, safe: true}}]}"),
        ("scenario", "{title: T, members: 3, steps: [{do: {delay: {from: n1, to: n2}}}]}"),
        ("model", "{title: T, bounds: {crashes: -1}}"),
        ("member", "{hazelcast: {network: {jion: {}}}}"),
        ("user", "{console: {clock: moon}}"),
    ],
)
def test_mistakes_are_marked(kind: FileKind, text: str) -> None:
    assert problems(kind, read(text))


def test_it_is_printed() -> None:
    printed = CliRunner().invoke(app, ["config", "schema", "member"])
    assert json.loads(printed.stdout) == schema_of("member")
