"""The console's interface, path by path, against a member that is alone in its cluster."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette

from quarterdeck.backend.core.commands import Heal, KillMember, PauseMember, ResumeMember
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import LiteChangeRefused, MergeVerdict, NotMerging, SuspicionRaised
from quarterdeck.backend.service.application import console_app, console_routes, openapi_description
from quarterdeck.backend.service.configuration.process_configuration import User
from tests.service.single_member import ADDRESS, OTHER, Client, SingleMemberFace

V1 = "/quarterdeck/v1"


def client_of(face: SingleMemberFace) -> Client:
    return Client(Starlette(routes=console_routes(face)))


@pytest.fixture
def face() -> SingleMemberFace:
    return SingleMemberFace()


@pytest.fixture
def client(face: SingleMemberFace) -> Client:
    return client_of(face)


def believe(face: SingleMemberFace, *events: Any) -> None:
    """Have the member's picture say so."""
    for event in events:
        face.picture.apply(Record("dev", "n1", face.uuid, 10_000, face.now_us(), 0, event))


def test_member_says_who_it_is(client: Client, face: SingleMemberFace) -> None:
    said = client.get(f"{V1}/member").json()
    assert said["label"] == "n1" and said["address"] == ADDRESS and said["uuid"] == face.uuid
    assert said["node_state"] == "ACTIVE" and said["cluster_state"] == "ACTIVE" and said["cluster_name"] == "dev"
    assert said["master"] == ADDRESS and said["is_master"] and said["list_version"] == 1 and said["lineage"]
    assert said["members"] == [{"address": ADDRESS, "uuid": face.uuid, "lite": False, "zone": "", "join_version": 1}]
    assert said["join_list"] == [ADDRESS] and said["remembered"] == [] and said["table_version"] == 0
    assert said["allow_faults"] and not said["read_only"]
    assert said["now_us"] == face.now_us() and said["started_utc"].endswith("Z")


def test_a_member_without_a_list_still_tells_of_itself() -> None:
    client = client_of(SingleMemberFace(joined=False))
    said = client.get(f"{V1}/member").json()
    assert said["master"] is None and said["list_version"] == 0 and said["members"] == []
    for path in ("picture", "members", "suspicions", "table", "migrations", "records", "join-list", "properties"):
        assert client.get(f"{V1}/{path}").status_code == 200, path
    assert "no member list" in client.get(f"{V1}/why-not-merging").json()["sentence"]


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "search"), ("POST", "arrange"), ("GET", "maps/m/size"), ("DELETE", "maps/m/k")]
)
def test_what_only_a_member_can_do_waits_for_the_join(method: str, path: str) -> None:
    answer = client_of(SingleMemberFace(joined=False)).request(method, f"{V1}/{path}")
    assert answer.status_code == 503 and "node_state" in answer.json()["hint"]


def test_picture_and_suspicions(client: Client, face: SingleMemberFace) -> None:
    believe(face, SuspicionRaised(OTHER, "other-life", "silent for 5 s"))
    suspected = client.get(f"{V1}/suspicions").json()["suspicions"]
    assert [(suspicion["suspect"], suspicion["reason"]) for suspicion in suspected] == [(OTHER, "silent for 5 s")]
    assert client.get(f"{V1}/picture").json()["suspicions"] == suspected


def test_why_not_merging(client: Client, face: SingleMemberFace) -> None:
    assert "edit the join list" in client.get(f"{V1}/why-not-merging").json()["sentence"]
    verdict = MergeVerdict(OTHER, "local-merges", "more data members", "3 against 1")
    believe(face, verdict, NotMerging("links to 127.0.0.1:5703 are not proven", OTHER))
    said = client.get(f"{V1}/why-not-merging").json()
    assert "127.0.0.1:5703" in said["sentence"] and said["obstacles"][-1]["remote"] == OTHER
    assert said["verdicts"][0]["decision"] == "local-merges"


def test_a_member_is_asked_to_hold_no_data_or_to_hold_it(client: Client, face: SingleMemberFace) -> None:
    refused = client.post(f"{V1}/promote")
    assert refused.status_code == 409 and "holds data already" in refused.json()["message"]
    assert client.post(f"{V1}/demote").status_code == 202
    _, records = face.records.after(face.uuid, 0)
    events = [stored.record.event for stored in records]
    assert [event.cause for event in events if isinstance(event, LiteChangeRefused)] == ["last-data-member"]


def test_table_comes_in_parts(client: Client) -> None:
    assert client.get(f"{V1}/table").json()["partitions"] == 0
    assert client.post(f"{V1}/arrange").status_code == 202
    said = client.get(f"{V1}/table", params={"from": 10, "to": 19}).json()
    assert (
        said["partitions"] == 271 and [row[0] for row in said["rows"]] == list(range(10, 20)) and said["next"] is None
    )
    assert said["holders"][said["rows"][0][2]]["address"] == ADDRESS
    everything = client.get(f"{V1}/table").json()
    assert len(everything["rows"]) == 271 and everything["next"] is None
    assert client.get(f"{V1}/table", params={"from": 300}).json()["rows"] == []
    member = client.get(f"{V1}/member").json()
    assert member["table_version"] == everything["table_version"] and member["table_digest"] == everything["digest"]
    assert client.get(f"{V1}/members").json()["members"][0]["owned"] == 271


def test_records_can_be_read_on_from_anywhere(client: Client) -> None:
    everything = client.get(f"{V1}/records").json()
    assert everything["complete"] and [record["seq"] for record in everything["records"]][:3] == [1, 2, 3]
    first = client.get(f"{V1}/records", params={"limit": 1}).json()["records"]
    after = {"after_uuid": first[-1]["uuid"], "after_seq": first[-1]["seq"]}
    assert client.get(f"{V1}/records", params=after).json()["records"] == everything["records"][1:]
    assert not client.get(f"{V1}/records", params={"after_uuid": "nobody", "after_seq": 7}).json()["complete"]


def test_join_list_is_edited_and_bad_entries_change_nothing(client: Client) -> None:
    edited = client.put(f"{V1}/join-list", json={"addresses": [ADDRESS, OTHER]})
    assert edited.status_code == 200 and edited.json()["addresses"] == [ADDRESS, OTHER]
    bad = client.put(f"{V1}/join-list", json={"addresses": ["127.0.0.1:http"]})
    assert bad.status_code == 409 and bad.json()["status"] == "fail" and "entry 1" in bad.json()["message"]
    assert client.get(f"{V1}/join-list").json()["addresses"] == [ADDRESS, OTHER]


def test_state_changes(client: Client, face: SingleMemberFace) -> None:
    assert client.post(f"{V1}/state", json={"state": "FROZEN"}).status_code == 202
    face.pass_seconds(5)
    assert client.get(f"{V1}/state").json() == {"state": "FROZEN"}
    bad = client.post(f"{V1}/state", json={"state": "frozen"})
    assert bad.status_code == 400 and "state" in bad.json()["message"] and "'FROZEN'" in bad.json()["message"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "no JSON"),
        (b"", "no body"),
        (b"[]", "no JSON object"),
        (b'{"state": "FROZEN", "force": true}', "force"),
        (b"[" * 100_000, ""),
    ],
)
def test_bad_bodies_name_what_is_wrong(client: Client, body: bytes, said: str) -> None:
    answer = client.post(f"{V1}/state", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400 and said in answer.json()["message"]


def test_properties(client: Client) -> None:
    name = "hazelcast.merge.next.run.delay.seconds"
    changed = client.patch(f"{V1}/properties", json={"properties": {name: 30}}).json()
    assert changed["properties"][name] == 30 == client.get(f"{V1}/properties").json()["properties"][name]
    for wrong, status, said in (
        ({"hazelcast.merge.next.run.delay.second": 30}, 400, "did you mean"),
        ({"hazelcast.partition.count": 7}, 400, "start the member anew"),
        ({name: "1e308"}, 409, "too great"),
        ({name: 10**400}, 409, "too great"),
    ):
        answer = client.patch(f"{V1}/properties", json={"properties": wrong})
        assert (answer.status_code, said in answer.json()["message"]) == (status, True), wrong


def test_maps(client: Client) -> None:
    path = f"{V1}/maps/cities/a%2Fb%0Ac"
    assert client.get(path).status_code == 404
    assert client.put(path, json={"value": "Byzantium"}).json() == {
        **{"key": "a/b\nc", "found": False},
        **{"value": None, "value_base64": None},
    }
    assert client.get(path).json()["value"] == "Byzantium"
    assert client.put(f"{V1}/maps/cities/bytes", json={"value_base64": "/w=="}).status_code == 200
    assert client.get(f"{V1}/maps/cities/bytes").json()["value_base64"] == "/w=="
    assert client.get(f"{V1}/maps/cities/size").json() == {"size": 2}
    assert client.get(f"{V1}/maps/cities/keys").json() == {"keys": ["a/b\nc", "bytes"]}
    many = {"entries": [{"key": "x", "value": "1"}, {"key": "y", "value_base64": "/w=="}]}
    assert client.post(f"{V1}/maps/many/entries", json=many).json() == {"stored": 2}
    assert client.get(f"{V1}/maps/many/y").json()["value_base64"] == "/w=="
    assert client.post(f"{V1}/maps/many/entries", json={"entries": [{"key": "", "value": "1"}]}).status_code == 400
    assert client.delete(path).json()["value"] == "Byzantium"
    assert client.put(path, json={}).status_code == 400
    assert client.put(path, json={"value_base64": "?"}).status_code == 400


def test_faults_are_link_commands(client: Client, face: SingleMemberFace) -> None:
    cut = {"do": "cut", "sources": [ADDRESS], "targets": [OTHER], "one_way": True}
    conditions = client.post(f"{V1}/faults", json=cut).json()["faults"]
    assert [(condition["source"], condition["target"], condition["blocked"]) for condition in conditions] == [
        (ADDRESS, OTHER, "blackhole")
    ]
    assert client.get(f"{V1}/faults").json()["faults"] == conditions
    assert client.delete(f"{V1}/faults").json() == {"faults": []}
    assert face.asked[-1] == Heal()
    for fault in ("pause", "resume", "kill"):
        assert client.post(f"{V1}/faults/{fault}").status_code == 202
    assert face.asked[-3:] == [PauseMember("n1"), ResumeMember("n1"), KillMember("n1")]


@pytest.mark.parametrize("body", [b"", b"{}", b'{"do": "start", "member": "n2"}', b"\xff", b"[" * 100_000])
def test_what_is_no_link_command_is_refused(client: Client, face: SingleMemberFace, body: bytes) -> None:
    assert client.post(f"{V1}/faults", content=body).status_code == 400
    assert not face.asked


def test_without_allow_faults_nobody_does_harm() -> None:
    client = client_of(SingleMemberFace(allow_faults=False))
    answer = client.post(f"{V1}/faults/kill")
    assert answer.status_code == 403 and "--allow-faults" in answer.json()["hint"]


def test_stop(client: Client, face: SingleMemberFace) -> None:
    assert client.post(f"{V1}/stop").status_code == 202
    assert face.stopped == [False]


def test_roles(face: SingleMemberFace) -> None:
    users = (User("reader", "read", password="r"), User("writer", "write", password="w"))
    guarded = SingleMemberFace(users=users)
    client = client_of(guarded)
    reader, writer = ("reader", "r"), ("writer", "w")
    assert client.get(f"{V1}/member").status_code == 401
    assert client.get(f"{V1}/member", auth=reader).status_code == 200
    assert client.post(f"{V1}/arrange", auth=reader).status_code == 403
    assert client.post(f"{V1}/arrange", auth=writer).status_code == 202
    assert client.delete(f"{V1}/faults", auth=writer).status_code == 403
    assert client.post(f"{V1}/state", content=b"{").status_code == 401  # before anything of the body is looked at


def test_a_path_that_is_none_and_a_failure_of_the_member_are_told_like_everything_else(
    client: Client, face: SingleMemberFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, hint in (("membres", f"did you mean {V1}/members?"), ("nothing", f"see {V1}/openapi.json")):
        answer = client.get(f"{V1}/{path}")
        assert answer.status_code == 404 and answer.json()["hint"] == hint
    monkeypatch.setattr(face.records, "after", None)
    with pytest.raises(TypeError):  # for the server's log
        client.get(f"{V1}/records")
    forgiving = Client(Starlette(routes=console_routes(face)), raises=False)
    answer = forgiving.get(f"{V1}/records")
    assert answer.status_code == 500 and answer.json()["message"] == "something went wrong in this member"


def test_a_snapshot_takes_somebody_who_may_see_the_data_too() -> None:
    users = (
        User("cora", "write", password="c", groups=("CONSOLE",)),
        User("dora", "write", password="d", groups=("CONSOLE", "DATA")),
    )
    client = client_of(SingleMemberFace(users=users))
    refused = client.get(f"{V1}/snapshot", auth=("cora", "c"))
    assert (refused.status_code, "values of maps" in refused.json()["message"]) == (403, True)
    assert client.get(f"{V1}/snapshot", auth=("dora", "d")).status_code == 200


def test_every_path_needs_a_role() -> None:
    users = (User("reader", "read", password="r"),)
    client = client_of(SingleMemberFace(users=users))
    for path, operations in openapi_description(console_app(SingleMemberFace()))["paths"].items():
        for method in operations:
            plain = path.replace("{map}", "m").replace("{key}", "k")
            assert client.request(method.upper(), f"{V1}{plain}").status_code == 401, (method, path)


def test_the_description_has_schemas_of_its_own_and_of_the_core(client: Client) -> None:
    description = client.get(f"{V1}/openapi.json").json()
    schemas = description["components"]["schemas"]
    assert {"Record", "LinkCommand", "ThisMember", "ListInstalled", "CutLink"} <= set(schemas)
    assert "HTTPValidationError" not in str(description)
    assert description["servers"] == [{"url": V1}]
