"""States, shutdowns and the level of the log over HTTP (Hazelcast: REST access and REST status codes)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import product

import pytest

from quarterdeck.backend.core.commands import ChangeState
from quarterdeck.backend.service.member_log import LEVEL_LOGGER
from quarterdeck.backend.service.rest import management
from tests.service.served_members import ALL_GROUPS, Client, ServedMembers, configured, one_member

AT = "/hazelcast/rest/management/cluster/"
LEVEL = "/hazelcast/rest/log-level"


@pytest.fixture(scope="module")
def member() -> Iterator[Client]:
    with one_member() as client:
        yield client


def test_the_state_is_there_for_get_and_for_post(member: Client) -> None:
    for answer in (member.get(AT + "state"), member.post(AT + "state", "dev&")):
        assert (answer.status_code, answer.json()) == (200, {"status": "success", "state": "active"})


def test_the_state_changes_everywhere_and_the_answer_waits_for_it() -> None:
    with ServedMembers() as served:
        athens = served.joined(configured())
        corinth = served.joined(configured("corinth", "127.0.0.1:5702", join_list=("127.0.0.1:5701",)))
        athens.until(lambda: len(athens.face.member.view or ()) == 2)
        for wanted, asked in product(("frozen", "passive", "no_migration", "active"), (athens, corinth)):
            answer = asked.post(AT + "changeState", f"dev&&{wanted}")
            assert (answer.status_code, answer.json()) == (200, {"status": "success", "state": wanted})
            assert served.look(lambda asked=asked: asked.face.member.cluster_state) == wanted.upper()


def test_a_state_that_holds_already_is_no_failure(member: Client) -> None:
    """The product answers 200 with status fail."""
    answer = member.post(AT + "changeState", "dev&&Active")
    assert answer.json() == {"status": "success", "state": "active"}


@pytest.mark.parametrize("state", ["", "in_transition", "melted", "x" * 1000, "%00"])
def test_what_is_no_state(member: Client, state: str) -> None:
    answer = member.post(AT + "changeState", f"dev&&{state}")
    assert answer.status_code == 400
    assert "FROZEN" in answer.json()["hint"]
    assert len(answer.text) < 300


def test_a_change_that_the_cluster_refuses_is_told() -> None:
    with ServedMembers() as served:
        athens = served.joined(configured())
        served.joined(configured("corinth", "127.0.0.1:5702", join_list=("127.0.0.1:5701",)))
        athens.until(lambda: len(athens.face.member.view or ()) == 2)
        served.stop_time()
        served.look(lambda: athens.face.step(ChangeState("athens", "PASSIVE")))
        answer = athens.post(AT + "changeState", "dev&&frozen")
    assert answer.status_code == 409
    assert answer.json()["message"] == "the state stays ACTIVE: it is being changed to PASSIVE already"


def test_a_member_that_has_not_joined_has_no_state() -> None:
    with ServedMembers() as served:
        served.stop_time()
        member = served.member(configured(join_list=("127.0.0.1:5709",)))
        for answer in (
            member.get(AT + "state"),
            member.post(AT + "changeState", "dev&&frozen"),
            member.get(AT + "nodes"),
        ):
            assert answer.status_code == 503
        conflict = member.post(AT + "clusterShutdown")
        assert (conflict.status_code, conflict.json()["message"]) == (409, "Member has not yet joined cluster!")
        assert member.face.shutdowns == []
        assert member.post(AT + "memberShutdown").status_code == 200
        member.until(lambda: member.face.shutdowns)


def test_nodes_are_three_lines(member: Client) -> None:
    for answer in (member.get(AT + "nodes"), member.post(AT + "nodes")):
        members, build, runtime = answer.json()["response"].split("\n")
        assert members == f"[Member [127.0.0.1]:5701 - {member.face.uuid} this]"
        assert build and runtime.startswith("3.")


def test_the_version_is_what_it_is(member: Client) -> None:
    assert member.get(AT + "version").json() == {"status": "success", "version": management.CLUSTER_VERSION}
    assert member.post(AT + "version", "dev&&" + management.CLUSTER_VERSION).status_code == 200
    assert member.post(AT + "version", "dev&&5.3").status_code == 409


@pytest.mark.parametrize(("path", "whole"), [("memberShutdown", False), ("clusterShutdown", True)])
def test_a_shutdown_begins_when_the_answer_is_sent(path: str, whole: bool) -> None:
    with one_member() as member:
        assert member.post(AT + path, "other&").status_code == 403
        assert member.post(AT + path).json() == {"status": "success"}
        member.until(lambda: member.face.shutdowns)
        [(caller, whole_cluster)] = member.face.shutdowns
        assert (caller.role, whole_cluster) == ("write", whole)


def test_the_level_of_the_log(member: Client, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger(LEVEL_LOGGER)
    before = logger.level
    try:
        assert member.post(LEVEL, "dev&&trace").json() == {"status": "success", "message": "log level is changed"}
        assert member.get(LEVEL).json() == {"logLevel": "TRACE"}
        member.post(LEVEL, "dev&&fine")
        assert member.get(LEVEL).json() == {"logLevel": "FINE"}
        assert logger.level == logging.DEBUG
        answer = member.post(LEVEL, "dev&&loud")
        assert (answer.status_code, "'LOUD' is not a level" in answer.json()["message"]) == (400, True)
        assert member.post(LEVEL + "/reset").json() == {"status": "success", "message": "log level is reset"}
        assert member.get(LEVEL).json() == {"logLevel": None}
        assert "the log has the level DEBUG now" in caplog.text
        assert [(line.outcome, line.detail) for line in member.face.audit[-3:]] == [
            ("done", "level DEBUG"),
            ("refused", ""),
            ("done", "level INFO"),
        ]
    finally:
        logger.setLevel(before)


@pytest.mark.parametrize("group", sorted(ALL_GROUPS))
def test_a_group_that_is_off_answers_and_says_so(group: str) -> None:
    """The product closes the socket, which looks like a wrong port."""
    asked = {
        "CLUSTER_READ": ("GET", "/hazelcast/rest/cluster"),
        "CLUSTER_WRITE": ("POST", AT + "changeState"),
        "HEALTH_CHECK": ("GET", "/hazelcast/health"),
        "DATA": ("GET", "/hazelcast/rest/maps/m/k"),
    }
    with one_member(endpoint_groups={**ALL_GROUPS, group: False}) as member:
        for one, (method, path) in asked.items():
            answer = member.ask(method, path, "dev&&active" if method == "POST" else None)
            assert (answer.status_code == 403) == (one == group), (one, answer.text)
            if one == group:
                assert answer.json()["group"] == group
                assert f"endpoint-groups.{group}.enabled" in answer.json()["hint"]


def test_what_is_not_here_is_told() -> None:
    with one_member() as member:
        answers = {
            path: member.get("/hazelcast/rest/" + path) for path in ("queues/q", "wan/sync", "license", "clustr")
        }
        assert {answer.status_code for answer in answers.values()} == {404}
        assert "queues" in answers["queues/q"].json()["message"]
        assert answers["clustr"].json()["hint"] == "did you mean /hazelcast/rest/cluster?"
        assert member.get("/").status_code == 404
        wrong = member.ask("PATCH", AT + "state")
        assert (wrong.status_code, wrong.headers["Allow"]) == (405, "GET, HEAD, OPTIONS, POST")
        assert wrong.json()["status"] == "fail"


def test_a_slash_too_many_does_no_harm(member: Client) -> None:
    assert member.get("/hazelcast/rest/cluster/").status_code == 200


def test_a_member_whose_rest_api_is_off_says_so() -> None:
    with one_member(rest_enabled=False) as member:
        for path in ("/hazelcast/health", "/hazelcast/rest/cluster", "/anything"):
            answer = member.get(path)
            assert (answer.status_code, "rest-api.enabled" in answer.json()["hint"]) == (403, True)
