"""The member list of the join configuration, and changes of the configuration, over HTTP (Split-brain Recovery Improvements, User
Interaction)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from quarterdeck.backend.service.configuration.sources import process_configuration
from tests.service.served_members import Client, ServedMembers, configured, one_member

LIST = "/hazelcast/rest/config/tcp-ip/member-list"
UPDATE = "/hazelcast/rest/config/update"
RELOAD = "/hazelcast/rest/config/reload"


@pytest.fixture(scope="module")
def member() -> Iterator[Client]:
    with one_member(join_list=("127.0.0.1:5701", "127.0.0.1:5702")) as client:
        yield client


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")


@needs_curl
def test_the_curl_line_of_the_document_that_reads_the_list() -> None:
    with one_member(join_list=("127.0.0.1:5701", "127.0.0.1:5702")) as member:
        printed = member.curl("-X", "GET", f"http://ADDRESS{LIST}")
    assert printed == '{"status":"success","member-list":["127.0.0.1:5701","127.0.0.1:5702"]}'


@needs_curl
def test_the_curl_line_of_the_document_that_updates_the_list(member: Client) -> None:
    printed = member.curl(
        *("-X", "POST", "-H", "Content-Type: text/plain", "--data-urlencode", "dev", "--data-urlencode", "password"),
        *("--data-urlencode", "127.0.0.1:5701,127.0.0.1:5702,127.0.0.1:5703", f"http://ADDRESS{LIST}"),
    )
    assert printed == (
        '{"status":"success","message":"The member list of TCP-IP join config is updated at run time. ",'
        '"member-list":["127.0.0.1:5701","127.0.0.1:5702","127.0.0.1:5703"]}'
    )
    assert json.loads(member.curl(f"http://ADDRESS{LIST}"))["member-list"][2] == "127.0.0.1:5703"


def test_two_clusters_that_do_not_know_each_other_merge_after_one_post() -> None:
    """The reported case of Split-brain Recovery Improvements, healed as it says."""
    with ServedMembers() as served:
        athens = served.joined(configured("athens", "127.0.0.1:5701"))
        byzantium = served.joined(configured("byzantium", "127.0.0.1:5702", join_list=("127.0.0.1:5701",)))
        corinth = served.joined(configured("corinth", "127.0.0.1:5703"))
        two = {athens.face.address, byzantium.face.address}
        athens.until(lambda: set(byzantium.face.member.view or ()) == two)
        assert served.look(lambda: corinth.face.member.view) == (corinth.face.address,)
        answer = corinth.post(LIST, "dev&&127.0.0.1%3A5703%2C127.0.0.1%3A5702")
        assert answer.status_code == 200
        corinth.until(lambda: len(corinth.face.member.view or ()) == 3)
        assert len(corinth.get("/hazelcast/rest/cluster").json()["members"]) == 3


def test_an_update_reaches_every_member_of_the_cluster() -> None:
    with ServedMembers() as served:
        athens = served.joined(configured("athens", "127.0.0.1:5701"))
        byzantium = served.joined(configured("byzantium", "127.0.0.1:5702", join_list=("127.0.0.1:5701",)))
        assert byzantium.post(LIST, "dev&&10.0.0.9:5701").status_code == 200
        athens.until(lambda: athens.face.member.join_list == ("10.0.0.9:5701",))
        assert athens.get(LIST).json()["member-list"] == ["10.0.0.9:5701"]


def test_the_list_can_be_given_as_json(member: Client) -> None:
    body = json.dumps({"cluster-name": "dev", "member-list": ["127.0.0.1:5701", "[fe80::1]:5701"]})
    answer = member.post(LIST, body, headers={"Content-Type": "application/json"})
    assert answer.json()["member-list"] == ["127.0.0.1:5701", "[fe80::1]:5701"]


@pytest.mark.parametrize("divided", ["a:1,b:2", "a:1;b:2", " a:1  b:2 ", "a:1%2Cb:2", "a:1+b:2", "a:1, b:2"])
def test_addresses_are_divided_as_in_the_product(member: Client, divided: str) -> None:
    assert member.post(LIST, f"dev&&{divided}").json()["member-list"] == ["a:1", "b:2"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("", "expects at least 3 parameters"),
        ("dev&secret", "expects at least 3 parameters"),
        ("dev&&", "names no address"),
        ("dev&&a:b", "entry 1"),
        ("dev&&a:1,b:99999", "entry 2"),
        ("dev&&a:1&b:2", "'&'"),
        ("dev&&%zz", "begins no escape"),
        (b"dev&&\xff", "not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_told(member: Client, body: str, problem: str) -> None:
    before = member.get(LIST).json()
    answer = member.post(LIST, body)
    assert (answer.status_code, answer.json()["status"]) == (400, "fail")
    assert problem in answer.json()["message"]
    assert member.get(LIST).json() == before


def test_another_name_is_not_this_cluster(member: Client) -> None:
    answer = member.post(LIST, "prod&&a:1")
    assert (answer.status_code, answer.json()["message"]) == (403, "unauthenticated")


def test_names_are_decoded_once() -> None:
    """The product decodes them twice, so a % or a plus in a name fails there unless it is escaped twice."""
    with one_member(cluster_name="50%+more & so on") as member:
        assert member.post(LIST, "50%25%2Bmore%20%26%20so%20on&&a:1").status_code == 200


def test_without_tcp_ip_there_is_no_list() -> None:
    with one_member(tcp_ip_enabled=False) as member:
        answers = [member.get(LIST), member.post(LIST, "dev&&a:1")]
    for answer in answers:
        assert answer.status_code == 400
        assert answer.json()["status"] == "fail"
        assert answer.json()["message"] == "TCP-IP join mechanism is not enabled in the cluster."


DOCUMENT = """
hazelcast:
  cluster-name: dev
  network:
    port: 5701
    join:
      multicast: {enabled: false}
      tcp-ip:
        enabled: true
        member-list: [127.0.0.1:5701, 127.0.0.1:5709]
  map: {default: {backup-count: 2}}
  properties:
    hazelcast.merge.next.run.delay.seconds: 7
    hazelcast.logging.type: slf4j
    hazelcast.partition.count: 17
    hazelcast.max.join.seconds: 60
quarterdeck:
  journal: /var/lib/quarterdeck
"""


def test_an_update_applies_what_can_change_and_says_why_the_rest_is_ignored() -> None:
    with one_member() as member:
        answer = member.ask("POST", UPDATE, b"dev&&" + DOCUMENT.replace("%", "%25").encode())
        assert answer.status_code == 200, answer.text
        said = answer.json()
        assert said["message"] == "Configuration Update successfully finished."
        assert said["result"]["addedConfigs"] == [
            {"sectionName": "tcp-ip", "configName": "member-list"},
            {"sectionName": "properties", "configName": "hazelcast.merge.next.run.delay.seconds"},
        ]
        ignored = {
            (ignored["sectionName"], ignored["configName"]): ignored["reason"]
            for ignored in said["result"]["ignoredConfigs"]
        }
        assert set(ignored) == {
            ("hazelcast", "cluster-name"),
            ("network", "port"),
            ("join", "multicast"),
            ("tcp-ip", "enabled"),
            ("hazelcast", "map"),
            ("properties", "hazelcast.logging.type"),
            ("properties", "hazelcast.partition.count"),
            ("properties", "hazelcast.max.join.seconds"),
            ("quarterdeck", "journal"),
        }
        assert "nothing of the kind" in ignored["hazelcast", "map"]
        assert "while the member runs" in ignored["properties", "hazelcast.partition.count"]
        assert ignored["properties", "hazelcast.max.join.seconds"] == "is in force already"
        assert member.face.member.settings.merge_next_run_delay_us == 7_000_000
        assert member.get(LIST).json()["member-list"] == ["127.0.0.1:5701", "127.0.0.1:5709"]

        again = member.ask("POST", UPDATE, b"dev&&" + DOCUMENT.encode()).json()["result"]
        assert again["addedConfigs"] == []
        assert len(again["ignoredConfigs"]) == len(ignored) + 2


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("hazelcast: [", "line 1"),
        ("<hazelcast/>", "XML"),
        ("- a", "is no configuration"),
        ("hazelcast: {network: {join: [a]}}", "hazelcast.network.join: ['a'] does not fit here; write fields"),
        ("hazelcast: {network: {jion: {}}}", "hazelcast.network.jion: there is no such field; did you mean join?"),
        (
            "hazelcast:\n  network: {join: {tcp-ip: {member-lst: []}}}",
            ":2: hazelcast.network.join.tcp-ip.member-lst: there",
        ),
        ("hazelcast: {properties: {hazelcast.max.join.secnds: 7}}", "did you mean hazelcast.max.join.seconds?"),
        ("hazlecast: {}", "did you mean hazelcast?"),
        ("hazelcast: {network: {join: {tcp-ip: {member-list: {a: b}}}}}", "member-list"),
        ("hazelcast: {network: {join: {tcp-ip: {member-list: ['a:b']}}}}", "entry 1"),
        ("hazelcast: {properties: {hazelcast.max.join.seconds: soon}}", "'soon' is not a number"),
        ("hazelcast: {properties: {hazelcast.max.join.seconds: [1]}}", "neither text nor a number"),
        ("hazelcast: {properties: {hazelcast.max.no.master.confirmation.seconds: 1}}", "not longer than"),
        ("- " * 5_000, "nested too deep"),
        ("a: 1\na: 2", "line 2"),
    ],
)
def test_a_bad_document_changes_nothing(member: Client, document: str, problem: str) -> None:
    before = member.face.member.settings, member.get(LIST).json()
    body = json.dumps({"cluster-name": "dev", "password": "", "configuration": document})
    answer = member.post(UPDATE, body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert problem in answer.json()["message"]
    assert (member.face.member.settings, member.get(LIST).json()) == before


@pytest.mark.parametrize("line", ["a{0}: &a{0} [*a{1}, *a{1}]\n", "a{0}: &a{0} {{<<: [*a{1}, *a{1}]}}\n"])
def test_a_few_lines_cannot_stand_for_billions(member: Client, line: str) -> None:
    document = "a0: &a0 {b: 1}\n" + "".join(line.format(number, number - 1) for number in range(1, 60))
    body = json.dumps({"cluster-name": "dev", "configuration": document})
    answer = member.post(UPDATE, body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["message"] == "line 2: is an alias, which is not read here"


def test_a_document_can_be_json_in_json(member: Client) -> None:
    document = {"hazelcast": {"properties": {"hazelcast.max.join.seconds": 61}}}
    body = json.dumps({"cluster-name": "dev", "configuration": document})
    answer = member.post(UPDATE, body, headers={"Content-Type": "application/json"})
    assert answer.json()["result"]["addedConfigs"][0]["configName"] == "hazelcast.max.join.seconds"


def test_a_reload_reads_the_file_that_the_member_was_started_with(tmp_path: Path) -> None:
    file = tmp_path / "member.yaml"
    file.write_text(DOCUMENT)
    with one_member(source=file) as member:
        assert len(member.post(RELOAD).json()["result"]["addedConfigs"]) == 2
        assert member.post(RELOAD).json()["result"]["addedConfigs"] == []
        file.write_bytes(b"\xff")
        assert member.post(RELOAD).status_code == 409
        file.unlink()
        answer = member.post(RELOAD)
        assert (answer.status_code, "No such file" in answer.json()["message"]) == (409, True)
        file.write_text("hazelcast:\n  netwrk: {}\n  properties: {hazelcast.max.join.seconds: 62}\n")
        answer = member.post(RELOAD)
        assert answer.status_code == 409
        assert f"{file}:2: hazelcast.netwrk: there is no such field; did you mean network?" in answer.json()["message"]
        assert answer.json()["field"] == "hazelcast.netwrk"
        file.write_text("#" * 5_000_000)
        assert "has 5000000 bytes" in member.post(RELOAD).json()["message"]
        file.write_text("hazelcast:\n  map: {default: {}}\n  properties: {hazelcast.max.join.seconds: 62}\n")
        assert member.post(RELOAD).json()["result"]["addedConfigs"][0]["configName"] == "hazelcast.max.join.seconds"


SECURITY = (
    "quarterdeck: {journal: here, security: {secret-file: s, users: [%s], tokens: [%s], allowed-hosts: [athens]}}"
)
ANN, BOB = "{name: ann, password-file: ann, role: write}", "{name: bob, password-file: bob, role: read}"
ROBOT = "{name: robot, file: robot, role: write}"


def result_of(answer: httpx.Response) -> tuple[set[str], dict[str, str]]:
    """Return what a reload has applied, and why it ignores the rest of what is not Hazelcast's."""
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    return (
        {entry["configName"] for entry in result["addedConfigs"]},
        {entry["configName"]: entry["reason"] for entry in result["ignoredConfigs"]},
    )


def test_a_reload_changes_users_and_tokens_and_says_what_it_does_not(tmp_path: Path) -> None:
    file = tmp_path / "member.yaml"
    for name in ("ann", "bob", "robot", "s"):
        (tmp_path / name).write_text(f"secret of {name}")
    file.write_text(SECURITY % (ANN, ""))
    with one_member(source=file, security=process_configuration(file, {}).security) as member:
        ann, bob, robot = ((name, f"secret of {name}") for name in ("ann", "bob", "robot"))
        assert member.get(LIST, auth=ann).status_code == 200 and member.get(LIST, auth=bob).status_code == 401
        file.write_text(SECURITY % (f"{ANN}, {BOB}", ROBOT))
        applied, ignored = result_of(member.post(RELOAD, auth=ann))
        assert applied == {"users", "tokens"} and set(ignored) == {"journal", "secret-file"}
        assert "quarterdeck member secret" in ignored["secret-file"] and "started" in ignored["journal"]
        assert member.get(LIST, auth=bob).status_code == 200
        assert member.get(LIST, headers={"Authorization": f"Bearer {robot[1]}"}).status_code == 200
        file.write_text(SECURITY.replace("athens", "delphi") % (BOB, ROBOT))
        applied, ignored = result_of(member.post(RELOAD, auth=ann))
        assert applied == {"users", "allowed-hosts"} and "tokens" not in ignored
        assert member.get(LIST, auth=ann).status_code == 401 and member.get(LIST, auth=bob).status_code == 200
        assert member.get(LIST, auth=bob, headers={"Host": "delphi"}).status_code == 200
        file.write_text("hazelcast: {}")
        applied, ignored = result_of(member.post(RELOAD, headers={"Authorization": f"Bearer {robot[1]}"}))
        assert not applied and "any client" in ignored["users"] and "any client" in ignored["tokens"]
        assert member.get(LIST, auth=bob).status_code == 200 and member.get(LIST).status_code == 401


def test_a_reload_lists_only_what_changed_since_the_start(tmp_path: Path) -> None:
    file, text = tmp_path / "member.yaml", "hazelcast: {map: {m: {}}}\nquarterdeck: {journal: here, read-only: false}\n"
    file.write_text(text)
    with one_member(source=file, document=process_configuration(file, {}).document) as member:
        assert member.post(RELOAD).json()["result"] == {"addedConfigs": [], "ignoredConfigs": []}
        file.write_text(text.replace("here", "there").replace("m:", "n:"))
        assert set(result_of(member.post(RELOAD))[1]) == {"map", "journal"}


def test_an_update_from_outside_names_no_users(member: Client, tmp_path: Path) -> None:
    (tmp_path / "ann").write_text("secret")
    body = json.dumps({"cluster-name": "dev", "configuration": SECURITY % (ANN, "")})
    _, ignored = result_of(member.post(UPDATE, body, headers={"Content-Type": "application/json"}))
    assert "reloaded" in ignored["users"] and member.get(LIST).status_code == 200


def test_without_a_file_there_is_nothing_to_reload(member: Client) -> None:
    assert member.post(RELOAD).status_code == 409
