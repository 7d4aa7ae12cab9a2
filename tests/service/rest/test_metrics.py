"""The metrics, as Prometheus reads them."""

from __future__ import annotations

import asyncio
import re
from typing import get_args

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from quarterdeck.backend.core.causes import RefusalCause
from quarterdeck.backend.core.commands import ArrangePartitions
from quarterdeck.backend.core.events import EVENT_KINDS, ProcessPaused, Record
from quarterdeck.backend.core.membership.events import SuspicionRaised
from quarterdeck.backend.journal.writer import JournalCondition
from quarterdeck.backend.service.application import application
from quarterdeck.backend.service.configuration.process_configuration import User
from quarterdeck.backend.service.http.face import Caller
from quarterdeck.backend.service.http.responses import failure
from quarterdeck.backend.service.rest.metrics import LOST, metrics_route
from tests.service.single_member import OTHER, Client, SingleMemberFace


async def _denied(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    return failure(problem)


def client_of(face: SingleMemberFace) -> Client:
    return Client(Starlette(routes=[metrics_route(face)], exception_handlers={HTTPException: _denied}))


def read(client: Client) -> dict[tuple[str, str], float]:
    """Every sample by its name and the value of its only label, if it has one."""
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            if family.name.startswith("quarterdeck_build") or family.type == "histogram":
                continue
            assert len(sample.labels) <= 1
            found[sample.name, "".join(sample.labels.values())] = sample.value
    return found


async def _arrange(face: SingleMemberFace) -> None:
    await face.do(ArrangePartitions("n1"), Caller("test", "write"))


def test_what_a_member_believes_as_numbers() -> None:
    face = SingleMemberFace()
    asyncio.run(_arrange(face))
    face.picture.apply(Record("dev", "n1", face.uuid, 999, 0, 0, SuspicionRaised(OTHER, "life", "silent")))
    found = read(client_of(face))
    assert found["quarterdeck_members", ""] == found["quarterdeck_member_list_version", ""] == 1
    assert found["quarterdeck_is_master", ""] == 1 and found["quarterdeck_suspicions", ""] == 1
    assert found["quarterdeck_partitions_owned", ""] == 271 and found["quarterdeck_partitions_backed_up", ""] == 0
    assert found["quarterdeck_cluster_state", "ACTIVE"] == 1 and found["quarterdeck_cluster_state", "FROZEN"] == 0
    assert found["quarterdeck_node_state", "ACTIVE"] == 1
    assert found["quarterdeck_migrations", "running"] == found["quarterdeck_migrations_ended_total", "failed"] == 0
    assert found["quarterdeck_events_total", "list-installed"] == 1


def test_a_member_that_has_not_joined_has_metrics_too() -> None:
    found = read(client_of(SingleMemberFace(joined=False)))
    assert found["quarterdeck_members", ""] == 0 and found["quarterdeck_node_state", "STARTING"] == 1


def test_events_are_counted_once_however_often_they_are_asked_for() -> None:
    face = SingleMemberFace(joined=False, buffer_records=10)
    client = client_of(face)
    for _ in range(3):
        face.note(ProcessPaused("n1"))
    for _ in range(2):
        assert read(client)["quarterdeck_events_total", "process-paused"] == 3
    face.note(ProcessPaused("n1"))
    assert read(client)["quarterdeck_events_total", "process-paused"] == 4
    for _ in range(25):
        face.note(ProcessPaused("n1"))
    found = read(client)
    assert found["quarterdeck_events_total", "process-paused"] == 14 and found["quarterdeck_events_total", LOST] == 15


def test_names_keep_to_the_conventions_and_labels_to_fixed_lists() -> None:
    face = SingleMemberFace()
    text = client_of(face).get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}).text
    allowed = {*EVENT_KINDS, LOST, "ACTIVE", "STARTING", "PASSIVE", "SHUT_DOWN", "FROZEN", "NO_MIGRATION"}
    allowed |= {"queued", "running", "done", "failed", "dial", "bulk", *get_args(RefusalCause)}
    for family in openmetrics(text):
        assert family.documentation and family.name.startswith(("quarterdeck_", "process_"))
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            if family.name != "quarterdeck_build":
                assert set(sample.labels.values()) <= allowed
    assert face.uuid not in text and face.address not in text


def test_metrics_of_two_members_do_not_mix() -> None:
    one, other = SingleMemberFace(), SingleMemberFace(joined=False)
    assert read(client_of(one))["quarterdeck_members", ""] == 1
    assert read(client_of(other))["quarterdeck_members", ""] == 0


def test_metrics_need_the_role_read() -> None:
    client = client_of(SingleMemberFace(users=[User("scraper", "read", token="t0ken")]))
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer t0ken"}).status_code == 200
    assert client.request("HEAD", "/metrics", headers={"Authorization": "Bearer t0ken"}).status_code == 200


def test_requests_and_operations_are_timed_by_what_they_are_about() -> None:
    face = SingleMemberFace()
    face.meters.calls["put", "done"].add(0.003)
    face.meters.calls["put", "done"].add(99)
    client = Client(application(face))
    for path in ("/hazelcast/health", "/hazelcast/health", "/nowhere", "/quarterdeck/v1/member"):
        client.get(path)
    text = client.get("/metrics").text
    requests = "quarterdeck_http_request_duration_seconds"
    for labels, count in (
        ('code="2xx",room="health"', 2),
        ('code="4xx",room="other"', 1),
        ('code="2xx",room="console"', 1),
    ):
        assert f"{requests}_count{{{labels}}} {count}.0" in text
        assert (
            f"{requests}_bucket{{{labels.replace(',', ',le=' + chr(34) + '+Inf' + chr(34) + ',')}}} {count}.0" in text
        )
    calls = "quarterdeck_map_operation_duration_seconds"
    buckets = dict(re.findall(rf'{calls}_bucket{{le="([^"]+)",operation="put",outcome="done"}} (\S+)', text))
    assert (buckets["0.0025"], buckets["0.005"], buckets["30.0"], buckets["+Inf"]) == ("0.0", "1.0", "1.0", "2.0")


def test_refusals_and_silence_have_labels_of_their_own() -> None:
    face = SingleMemberFace()
    face.meters.refusals["secret"] += 2
    found = read(client_of(face))
    assert found["quarterdeck_refused_connections_total", "secret"] == 2
    assert found["quarterdeck_refused_connections_total", "certificate"] == 0


def test_the_journal_is_told() -> None:
    face = SingleMemberFace()
    assert read(client_of(face))["quarterdeck_journal_failing", ""] == 0
    face.journal_condition = JournalCondition("No space left on device", 12, 3)
    found = read(client_of(face))
    assert found["quarterdeck_journal_failing", ""] == 1 and found["quarterdeck_journal_waiting_records", ""] == 12
    assert found["quarterdeck_journal_lost_records_total", ""] == 3
