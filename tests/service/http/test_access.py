"""Who may use a member's HTTP face."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from quarterdeck.backend.live.security.file_watch import LOOK_SECONDS
from quarterdeck.backend.service.configuration.process_configuration import Security, User
from quarterdeck.backend.service.http.access import (
    FREE_GUESSES,
    GUESSES_APART_US,
    KEYS_KEPT,
    AccessPolicy,
    Credentials,
    GuessLimit,
    _user_of,
    require,
)
from quarterdeck.backend.service.http.responses import Denied
from tests.service.served_members import Client, ServedMembers, configured, one_member
from tests.service.single_member import SingleMemberFace

STATE = "/hazelcast/rest/management/cluster/state"
LEVEL = "/hazelcast/rest/log-level"
LIST = "/hazelcast/rest/config/tcp-ip/member-list"
RESET = "/hazelcast/rest/log-level/reset"

USERS = (
    User("rhea", "read", password="see"),
    User("wanda", "write", password="do"),
    User("robot", "write", token="0123456789abcdef"),
)
SECURED: dict[str, Any] = {"security": Security(users=USERS)}


@pytest.fixture
def secured() -> Iterator[Client]:
    with one_member(**SECURED) as client:
        yield client


def test_without_users_whoever_reaches_the_member_may_change_what_operators_change() -> None:
    with one_member() as member:
        assert member.get(LIST).status_code == 200
        assert member.post(RESET).status_code == 200
        assert member.post(RESET, "dev&whatever").status_code == 200


def test_reading_takes_somebody_once_there_are_users(secured: Client) -> None:
    answer = secured.get(LIST)
    assert answer.status_code == 401
    assert "Basic" in answer.headers["WWW-Authenticate"]
    assert answer.json()["status"] == "fail"
    assert secured.get(LIST, auth=("rhea", "see")).status_code == 200
    assert secured.get(LIST, headers={"Authorization": "Bearer 0123456789abcdef"}).status_code == 200


def test_health_asks_nobody(secured: Client) -> None:
    assert secured.get("/hazelcast/health").status_code == 200
    assert secured.get("/hazelcast/health", auth=("rhea", "wrong")).status_code == 200


@pytest.mark.parametrize(
    "header",
    ["Basic", "Basic !", "Basic cmhlYQ==", "Bearer", "Bearer x", "Bearer see", "Digest x", "", "Basic " + "A" * 20_000],
)
def test_what_is_no_credential(secured: Client, header: str) -> None:
    answer = secured.get(LIST, headers={"Authorization": header})
    assert (answer.status_code, answer.json()["message"]) == (401, "unauthenticated")


def test_an_empty_password_or_token_is_nobodys(secured: Client) -> None:
    """Users that have a token have no password, and the other way round: neither is an empty one."""
    assert secured.get(LIST, auth=("robot", "")).status_code == 401
    assert _user_of("Bearer ", USERS) is None
    assert secured.post(RESET, "dev&").status_code == 403


def test_the_password_in_the_body_says_who_asks(secured: Client) -> None:
    assert secured.post(RESET, "dev&do").status_code == 200
    answer = secured.post(RESET, "dev&wrong")
    assert (answer.status_code, answer.json()["message"]) == (403, "unauthenticated")
    assert secured.post("/hazelcast/rest/management/cluster/state", "dev&see").status_code == 200


def test_a_reader_changes_nothing(secured: Client) -> None:
    by_body, by_header = secured.post(RESET, "dev&see"), secured.post(RESET, "dev&", auth=("rhea", "see"))
    for answer in (by_body, by_header):
        assert answer.status_code == 403
        assert "takes the role write" in answer.json()["message"]
    assert secured.post(RESET, "dev&", auth=("wanda", "do")).status_code == 200
    entry = secured.face.audit[0]
    assert (entry.what, entry.user, entry.role, entry.outcome) == ("POST " + RESET, "rhea", "read", "refused")
    assert entry.address.startswith("127.0.0.1:")
    assert "role write" in entry.reason


def test_the_clusters_name_has_to_be_right_even_so(secured: Client) -> None:
    answer = secured.post(RESET, "other&", auth=("wanda", "do"))
    assert (answer.status_code, answer.json()["message"]) == (403, "unauthenticated")


def test_who_guesses_is_bounded_and_right_credentials_pass_all_the_same() -> None:
    with one_member(**SECURED) as member:
        assert member.get(LIST, auth=("rhea", "see")).status_code == 200, "known from here"
        wrong = [member.get(LIST, auth=("rhea", f"guess {number}")).status_code for number in range(50)]
        assert wrong[:FREE_GUESSES] == [401] * FREE_GUESSES and 429 in wrong
        assert member.get(LIST, auth=("rhea", "see")).status_code == 200, "what was right from here is not bounded"
        assert member.get(LIST, auth=("wanda", "do")).status_code == 200, "nor are other names"
        assert member.get(LIST, headers={"Authorization": "Bearer 0123456789abcdef"}).status_code == 200
        assert member.get(LIST).status_code == 401, "who shows nothing guesses nothing"
        assert member.get("/hazelcast/health").status_code == 200


def test_only_wrong_guesses_that_were_checked_count() -> None:
    limit = GuessLimit(free=2, apart_us=10)
    assert limit.wait_us("a", 100) == 0
    limit.wrong("a", 100)
    assert limit.wait_us("a", 100) == 0
    limit.wrong("a", 100)
    assert [limit.wait_us("a", 100) for _ in range(1_000)] == [10] * 1_000
    assert (limit.wait_us("a", 109), limit.wait_us("a", 110), limit.wait_us("b", 100)) == (1, 0, 0)
    limit.wrong("a", 110)
    assert limit.wait_us("a", 110) == 10


def test_names_are_forgotten_when_their_guesses_are_made_up_for() -> None:
    limit = GuessLimit(free=2, apart_us=10)
    for now_us in range(0, 10_000, 5):
        limit.wrong(f"name {now_us}", now_us)
    assert len(limit._free_again_us) == 2
    for _ in range(100):
        limit.wrong("busy", 10_000)
    for number in range(KEYS_KEPT + 10):
        limit.wrong(number, 10_000)
    assert len(limit._free_again_us) == KEYS_KEPT


def test_a_burst_of_guesses_shuts_no_later_user_out() -> None:
    face = SingleMemberFace(users=USERS)
    policy = AccessPolicy(face)

    def ask(header: str) -> int:
        client = {"client": ("192.0.2.1", 1), "headers": [(b"authorization", header.encode())]}
        try:
            policy.identified(HTTPConnection({"type": "http", "method": "GET", "path": "/", **client}))
        except Denied as denied:
            return denied.status_code
        return 200

    def basic(name: str, password: str) -> str:
        return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()

    answers = [ask(basic("rhea", f"guess {number}")) for number in range(1_000)]
    assert answers == [401] * FREE_GUESSES + [429] * (1_000 - FREE_GUESSES)
    assert ask(basic("rhea", "see")) == 429, "it is not looked at: that it is right is not reported"
    assert ask("Bearer 0123456789abcdef") == 200
    face.pass_seconds(GUESSES_APART_US / 1_000_000)
    assert ask(basic("rhea", "see")) == 200, "one is made up for"
    for number in range(1_000):
        ask(basic(f"name {number}", "guess"))
    assert (ask(basic("wanda", "do")), ask(basic("rhea", "see")), ask("Bearer 0123456789abcdef")) == (429, 200, 200)
    face.pass_seconds(1)
    assert ask(basic("wanda", "do")) == 200


def test_long_tokens_may_be_guessed_at_any_rate_and_short_ones_may_not() -> None:
    with one_member(**SECURED) as member:
        long, short = ({"Authorization": f"Bearer {'x' * letters}"} for letters in (16, 15))
        assert {member.get(LIST, headers=long).status_code for _ in range(50)} == {401}
        assert {member.get(LIST, headers=short).status_code for _ in range(50)} == {401, 429}


def test_no_secret_is_told(secured: Client) -> None:
    secured.get(LIST, auth=("rhea", "hush-hush"))
    secured.post(RESET, "dev&hush-hush")
    secured.post(LEVEL, "dev&do&nonsense")
    assert secured.face.audit
    told = str(secured.face.audit) + repr(secured.face.configuration)
    assert "hush" not in told
    assert "'do'" not in told
    assert "0123456789abcdef" not in told


def test_a_read_only_member_is_changed_by_nobody() -> None:
    with one_member(read_only=True, **SECURED) as member:
        answer = member.post(RESET, "dev&do")
        assert answer.status_code == 403
        assert "read-only" in answer.json()["message"]
        assert member.ask("PUT", "/hazelcast/rest/maps/m/k", "v", auth=("wanda", "do")).status_code == 403
        assert member.post(STATE, "dev&do").status_code == 200, "it only looks like a change"
        assert member.get("/hazelcast/rest/maps/m/k", auth=("rhea", "see")).status_code == 204


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"Origin": "http://evil.example"}, "browser"),
        ({"Origin": "null"}, "browser"),
        ({"Host": "evil.example:5701"}, "Host"),
        ({"Host": "127.0.0.1.evil.example"}, "Host"),
        ({"Host": "[half"}, "Host"),
    ],
)
def test_a_page_in_a_browser_commands_no_member_that_asks_nobody(headers: dict[str, str], problem: str) -> None:
    with one_member() as member:
        answers = [member.post(RESET, headers=headers), member.get(LIST, headers=headers)]
        assert member.post(RESET, headers={"Host": "localhost:1"}).status_code == 200
    for answer in answers:
        assert answer.status_code == 403
        assert problem in answer.json()["message"]


def test_who_is_open_to_all_may_be_called_anything() -> None:
    with one_member(security=Security(open_to_all=True)) as member:
        assert member.get(LIST, headers={"Host": "hz-0.namespace.svc:5701"}).status_code == 200
        assert member.get(LIST, headers={"Origin": "http://evil.example"}).status_code == 403


def test_right_credentials_do_not_open_a_member_to_pages_of_anybody(secured: Client) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
        answer = secured.get(LIST, headers=headers, auth=("rhea", "see"))
        assert answer.status_code == 403
        assert "quarterdeck.security.allowed-" in answer.json()["hint"]
        assert secured.post(RESET, headers=headers, auth=("wanda", "do")).status_code == 403


def test_pages_of_a_configured_origin_may_use_a_member() -> None:
    origin = "https://dashboard.example"
    security = Security(users=USERS, allowed_origins=(origin,), allowed_hosts=("member.example",))
    with one_member(security=security) as member:
        headers = {"Origin": origin, "Host": "Member.Example:5701"}
        answer = member.get(LIST, headers=headers, auth=("rhea", "see"))
        assert answer.status_code == 200
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        assert member.get(LIST, headers=headers).status_code == 401
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        assert member.ask("OPTIONS", RESET, headers=headers | asked).status_code == 200
        evil = member.get(LIST, headers=headers | {"Origin": "http://evil.example"}, auth=("rhea", "see"))
        assert evil.status_code == 403 and evil.json()["status"] == "fail"
        assert "Access-Control-Allow-Origin" not in evil.headers


def test_a_browser_is_told_each_way_to_log_in_by_a_header_of_its_own(secured: Client) -> None:
    challenges = [value for name, value in secured.get(LIST).headers.raw if name.lower() == b"www-authenticate"]
    assert [value.split(b" ")[0] for value in challenges] == [b"Basic", b"Bearer"]


def test_a_user_may_be_limited_to_groups_of_endpoints() -> None:
    users = (
        User("probe", "read", token="probe" * 5, groups=("METRICS",)),
        User("cora", "write", password="console", groups=("CONSOLE",)),
        User("dora", "write", password="data", groups=("DATA", "CLUSTER_READ")),
    )
    probe = {"Authorization": "Bearer " + "probe" * 5}
    with one_member(security=Security(users=users)) as member:
        allowed = {
            "/metrics": {"probe"},
            "/quarterdeck/v1/member": {"cora"},
            "/quarterdeck/v1/maps/m/size": {"dora"},
            "/hazelcast/rest/maps/m/k": {"dora"},
            LIST: {"dora"},
        }
        for path, may in allowed.items():
            found = {
                "probe": member.get(path, headers=probe),
                "cora": member.get(path, auth=("cora", "console")),
                "dora": member.get(path, auth=("dora", "data")),
            }
            assert {name for name, answer in found.items() if answer.status_code != 403} == may
        refused = member.post(RESET, "dev&data")
        assert refused.status_code == 403
        assert "CLUSTER_WRITE" in refused.json()["message"] and "DATA, CLUSTER_READ" in refused.json()["message"]


def test_passwords_and_tokens_change_with_their_files(tmp_path: Path) -> None:
    password, token = tmp_path / "password", tmp_path / "token"
    password.write_text("see\n")
    token.write_text("0123456789abcdef\n")
    users = (
        User("rhea", "read", password="see", secret_file=password),
        User("robot", "read", token="0123456789abcdef", secret_file=token, by_token=True),
    )
    now = 0.0
    credentials = Credentials(users, lambda: now)

    def whose(header: str) -> str:
        nonlocal now
        now += LOOK_SECONDS
        found = _user_of(header, credentials.users)
        return found.name if found else ""

    def basic(secret: str) -> str:
        return "Basic " + base64.b64encode(f"rhea:{secret}".encode()).decode()

    assert (whose(basic("see")), whose("Bearer 0123456789abcdef")) == ("rhea", "robot")
    password.write_text("new\n")
    token.write_text("fedcba9876543210")
    assert (whose(basic("see")), whose("Bearer 0123456789abcdef")) == ("", "")
    assert (whose(basic("new")), whose("Bearer fedcba9876543210")) == ("rhea", "robot")
    password.write_text("")
    assert whose(basic("new")) == "rhea", "somebody is writing it"
    password.unlink()
    assert (whose(basic("new")), whose(basic(""))) == ("", "")


def test_faults_take_a_member_that_allows_them() -> None:
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "client": ("10.0.0.1", 5)}
    with ServedMembers() as served:
        plain = served.joined(configured("athens", "127.0.0.1:5701"))
        allowing = served.joined(configured("corinth", "127.0.0.1:5703", allow_faults=True))
        with pytest.raises(Denied) as refused:
            require(plain.face, HTTPConnection(scope), "fault", "CONSOLE")
        assert refused.value.status_code == 403
        assert require(allowing.face, HTTPConnection(scope), "fault", "CONSOLE").remote == "10.0.0.1:5"


def test_a_user_for_faults_gets_none_from_a_member_that_takes_none() -> None:
    users = (User("fiona", "fault", password="harm"),)
    headers = [(b"authorization", b"Basic " + base64.b64encode(b"fiona:harm"))]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "client": ("10.0.0.1", 5)}
    with ServedMembers() as served:
        plain = served.joined(configured(security=Security(users=users)))
        assert require(plain.face, HTTPConnection(scope), "write", "CONSOLE").name == "fiona"
        with pytest.raises(Denied, match="no faults"):
            require(plain.face, HTTPConnection(scope), "fault", "CONSOLE")
