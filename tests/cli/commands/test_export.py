"""`quarterdeck export`: what is known of a cluster as numbers, nothing for what is not, and hooks that never hold it up."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
import typer.main
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from quarterdeck.backend.boards import cluster_metrics as cluster_metrics_module
from quarterdeck.backend.boards.cluster_metrics import PREFIX, cluster_metrics, maps_of, observed_metrics
from quarterdeck.backend.judgement.health.cluster_health import Condition
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.observations.observation import ObservationKind
from quarterdeck.backend.picture.fold.member_data import Stored
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.cli.commands import exporter as exporter_module
from quarterdeck.cli.commands.exporter import HOOKS_WAITING, ClusterExporter, Hooks
from quarterdeck.cli.configuration.connection import ConnectionTarget
from quarterdeck.cli.configuration.opening import open_cluster
from quarterdeck.cli.exits import CommandFailed
from quarterdeck.cli.main import app
from tests.clusters.hazelcast.fake_cluster import FakeCluster, fake_cluster
from tests.waiting import wait_until

RULES = Path(__file__).parents[3] / "docs" / "operators" / "monitoring" / "cluster-alerts.yaml"
DASHBOARD = RULES.with_name("cluster-grafana.json")
PROGRAM = typer.main.get_command(app)


class HeardHooks(Hooks):
    def __init__(self) -> None:
        super().__init__(None, None)
        self.heard: list[dict[str, object]] = []

    def send(self, change: dict[str, object]) -> None:
        self.heard.append(change)


@contextmanager
def exporter_of(
    members: FakeCluster, state_file: Path | None = None
) -> Iterator[tuple[ClusterExporter, HeardHooks, CollectorRegistry]]:
    target = ConnectionTarget(urls=(f"hazelcast://{members.addresses[0]}",))
    cluster, hooks, registry = open_cluster(target), HeardHooks(), CollectorRegistry(auto_describe=False)
    exporter = ClusterExporter(cluster, hooks, state_file)
    registry.register(exporter)
    try:
        yield exporter, hooks, registry
    finally:
        cluster.close()


def followed(exporter: ClusterExporter, condition: Callable[[], bool]) -> None:
    """Let the exporter follow until the condition holds."""

    def holds() -> bool:
        exporter.follow()
        return condition()

    wait_until(holds)


def samples(registry: CollectorRegistry) -> dict[str, dict[str, float]]:
    """Values by name, then by the values of the labels."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            name = sample.name.removeprefix("quarterdeck_cluster_")
            found.setdefault(name, {})[",".join(sample.labels.values())] = sample.value
    return found


def test_what_is_known_is_a_number_and_what_is_not_is_absent() -> None:
    with fake_cluster(2) as members, exporter_of(members) as (exporter, hooks, registry):
        assert samples(registry).get("masters") is None, "nothing is known yet"
        followed(exporter, lambda: samples(registry)["condition"]["healthy"] == 1)
        known = samples(registry)
        master, _ = members.addresses
        assert known["condition"]["healthy"] == 1
        assert sum(known["condition"].values()) == 1
        assert (known["whole"], known["masters"], known["list_members"]) == ({"": 1}, {"": 1}, {master: 2})
        assert known["connections"] == {"connected": 2}
        assert "data_safe" not in known, "members of Hazelcast report no backups"
        assert "suspected_members" not in known
        assert known["last_record_age_seconds"][""] >= 0
        members.stop(members.members[1])
        followed(exporter, lambda: len(hooks.heard) > 1)
        assert hooks.heard[-1]["before"] is not None
        assert hooks.heard[-1]["whole"] is not True


def test_a_cluster_that_is_not_there_is_a_metric() -> None:
    cluster = open_cluster(ConnectionTarget(urls=("hazelcast://127.0.0.1:9",)))
    try:
        exporter, registry = ClusterExporter(cluster, HeardHooks()), CollectorRegistry(auto_describe=False)
        registry.register(exporter)
        followed(exporter, lambda: samples(registry)["connections"].get("gone") == 1)
        known = samples(registry)
        assert known["condition"]["healthy"] == 0
        assert "whole" not in known
    finally:
        cluster.close()


@pytest.mark.parametrize("listen", ["127.0.0.1", "127.0.0.1:metrics", "127.0.0.1:99999"])
def test_a_bad_address_to_listen_on(listen: str) -> None:
    with pytest.raises(CommandFailed, match="write HOST:PORT"):
        PROGRAM(["export", "--connect", "hazelcast://127.0.0.1:9", "--listen", listen], standalone_mode=False)


def test_hooks_get_the_change_and_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_module, "HOOK_TRIES", 2)
    posted: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(500 if len(posted) == 1 else 204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hooks = Hooks(f"cat >> {tmp_path / 'changes'}", f"http://127.0.0.1:{server.server_port}/hook")
    try:
        hooks.send({"sentence": "SPLIT"})
        wait_until(lambda: len(posted) == 2)
        assert [json.loads(body) for body in posted] == [{"sentence": "SPLIT"}] * 2
        assert json.loads((tmp_path / "changes").read_text()) == {"sentence": "SPLIT"}
        assert hooks.failed == 0
    finally:
        hooks.close()
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool on this machine")
def test_promtool_accepts_the_rules_and_they_fire() -> None:
    unit_tests = Path(__file__).with_name("cluster_alerts_test.yaml")
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(unit_tests)]):
        found = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False, timeout=60)
        assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("asking", [RULES, DASHBOARD], ids=["rules", "dashboard"])
def test_rules_and_dashboard_ask_for_metrics_that_there_are(asking: Path) -> None:
    asked = {name.removesuffix("_total") for name in re.findall(rf"{PREFIX}\w+", asking.read_text())}
    known = [*cluster_metrics(Judge(Picture()), {}), *observed_metrics([])]
    of_exporter = {"lost_partitions", "last_record_age_seconds", "hooks_failed"}
    assert asked <= {PREFIX + name for name in of_exporter.union(metric.name for metric in known)}


def test_every_condition_and_observation_has_a_section_of_the_runbooks() -> None:
    text = (RULES.parents[1] / "runbooks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (\S+)$", text, re.MULTILINE)) == {*get_args(Condition), *get_args(ObservationKind)}


def test_a_hook_that_hangs_holds_nothing_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    hooks = Hooks(f"while [ ! -e {gate} ]; do sleep 0.05; done", None)
    try:
        for number in range(HOOKS_WAITING + 5):
            hooks.send({"number": number})
        assert hooks.failed >= 3
        assert "the oldest is left out" in capsys.readouterr().err
        failed = hooks.failed
        with monkeypatch.context() as unwaited:
            unwaited.setattr(hooks._thread, "join", lambda _: None)
            hooks.close()
        assert hooks.failed == failed, "the end is no change for which another one is left out"
    finally:
        gate.touch()
        hooks.close()


def test_a_hook_that_hangs_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_module, "HOOK_TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr(exporter_module, "HOOK_TRIES", 1)
    child = tmp_path / "child"
    hooks = Hooks(f"sleep 60 & echo $! > {child}; wait", None)
    try:
        hooks.send({"number": 1})
        wait_until(lambda: hooks.failed == 1)
        wait_until(lambda: not _runs(int(child.read_text())))
    finally:
        hooks.close()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_webhook_that_fails_is_reported_without_its_url(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter_module, "HOOK_TRIES", 1)

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(403)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for url in (f"http://ann:swordfish@127.0.0.1:{server.server_port}/?token=sesame", "http://ann:swordfish@[x/sesame"):
        hooks = Hooks(None, url)
        hooks.send({"number": 1})
        wait_until(lambda hooks=hooks: hooks.failed == 1)
        hooks.close()
    server.shutdown()
    server.server_close()
    said = capsys.readouterr().err
    assert "it answered 403 Forbidden" in said and "swordfish" not in said and "sesame" not in said


def test_a_restart_tells_only_what_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with fake_cluster(2) as members:
        with exporter_of(members, file) as (exporter, hooks, registry):
            followed(exporter, lambda: samples(registry).get("condition", {}).get("healthy") == 1 and bool(hooks.heard))
            assert hooks.heard[0]["before"] is None
        with exporter_of(members, file) as (exporter, hooks, registry):
            followed(exporter, lambda: samples(registry).get("condition", {}).get("healthy") == 1)
            assert all(change["before"] is not None for change in hooks.heard)
        file.write_text("no state")
        with exporter_of(members, file) as (exporter, hooks, _):
            followed(exporter, lambda: bool(hooks.heard))
            assert hooks.heard[0]["before"] is None


def test_maps_beyond_a_bound_are_summed_as_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_metrics_module, "MOST_MAPS", 2)
    held = {name: Stored(entries, 0, 0, 0, 0, 0) for name, entries in (("a", 5), ("b", 9), ("c", 7), ("d", 1))}
    data = SimpleNamespace(maps=held)
    sizes = {name: sum(held.entries for held in parts) for name, parts in maps_of([cast("Any", data)]).items()}
    assert sizes == {"b": 9, "c": 7, "other": 6}
