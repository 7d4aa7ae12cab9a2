"""The path on which the secret of the cluster turns: who may, and which steps would shut members out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from quarterdeck.backend.live.security.cluster_secret import ClusterKeyring, ClusterSecret
from quarterdeck.backend.service.application import console_routes
from quarterdeck.backend.service.configuration.process_configuration import User
from tests.service.single_member import Client, SingleMemberFace

PATH = "/quarterdeck/v1/secret"
USERS = (User("wanda", "write", password="do"), User("rhea", "read", password="see"))
OLD, NEW = ClusterSecret("old", "dev"), ClusterSecret("new", "dev")


class Turning:
    """A member with a secret, and the client of a user that may let it turn."""

    def __init__(self, users: tuple[User, ...] = USERS) -> None:
        self.face = SingleMemberFace(users=users)
        self.face.keyring = ClusterKeyring(OLD)
        self.client = Client(Starlette(routes=console_routes(self.face)))

    def turn(self, do: str, secret: str, user: str = "wanda:do") -> httpx.Response:
        return self.client.post(PATH, json={"do": do, "secret": secret}, auth=tuple(user.split(":")))


@pytest.fixture
def turning() -> Turning:
    return Turning()


def test_it_turns_in_three_steps_that_may_be_repeated(turning: Turning) -> None:
    for do, secret, used, accepted in (
        ("add", "new", OLD, [OLD, NEW]),
        ("add", "new", OLD, [OLD, NEW]),
        ("use", "new", NEW, [NEW, OLD]),
        ("use", "new", NEW, [NEW, OLD]),
        ("remove", "old", NEW, [NEW]),
        ("remove", "old", NEW, [NEW]),
    ):
        answer = turning.turn(do, secret)
        assert answer.status_code == 200, answer.text
        said = {"used": used.fingerprint, "accepted": [secret.fingerprint for secret in accepted]}
        assert answer.json() == said == turning.client.get(PATH, auth=("wanda", "do")).json()
    assert turning.face.given_up == [OLD]


@pytest.mark.parametrize(
    ("before", "do", "secret", "problem"),
    [
        ((), "use", "new", "add it at every member first"),
        ((), "remove", "old", "is used"),
        (("other",), "add", "new", "two secrets"),
    ],
)
def test_a_step_that_would_shut_members_out_changes_nothing(
    turning: Turning, before: tuple[str, ...], do: str, secret: str, problem: str
) -> None:
    assert turning.face.keyring is not None
    for other in before:
        turning.turn("add", other)
    accepted = turning.face.keyring.accepted
    answer = turning.turn(do, secret)
    assert answer.status_code == 409 and problem in answer.json()["message"]
    assert turning.face.keyring.accepted == accepted


def test_a_secret_is_not_given_up_while_the_file_of_the_next_start_has_it(turning: Turning, tmp_path: Path) -> None:
    file = tmp_path / "cluster.secret"
    file.write_text("old\n")
    configured = turning.face.configuration
    turning.face.configuration = replace(configured, security=replace(configured.security, secret_file=file))
    turning.turn("add", "new")
    turning.turn("use", "new")
    answer = turning.turn("remove", "old")
    assert answer.status_code == 409 and str(file) in answer.json()["message"] and not turning.face.given_up
    file.write_text("new\n")
    assert turning.turn("remove", "old").status_code == 200


def test_it_takes_a_user_that_may_write(turning: Turning) -> None:
    assert turning.client.post(PATH, json={"do": "add", "secret": "new"}).status_code == 401
    assert turning.turn("add", "new", "rhea:see").status_code == 403
    assert turning.client.get(PATH, auth=("rhea", "see")).status_code == 403
    open_to_all = Turning(users=())
    refused = open_to_all.client.post(PATH, json={"do": "add", "secret": "new"})
    assert refused.status_code == 403 and "takes a user" in refused.json()["message"]


def test_a_member_without_a_secret_has_none_that_turns(turning: Turning) -> None:
    turning.face.keyring = None
    assert turning.turn("add", "new").status_code == 409


@pytest.mark.parametrize("body", [{}, {"do": "forget", "secret": "x"}, {"do": "add", "secret": ""}])
def test_what_is_no_step_is_bad_input(turning: Turning, body: dict[str, str]) -> None:
    answer = turning.client.post(PATH, json=body, auth=("wanda", "do"))
    assert answer.status_code == 400
