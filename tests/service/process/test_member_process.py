"""`quarterdeck member start`: a process that joins, serves, records, leaves, and says by its exit code how it went.

Each process costs most of a second, so the tests share them: each goes through what one set of members can show.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import trustme
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from quarterdeck.backend.core.membership.events import JoinListChanged
from quarterdeck.backend.journal.audit_log import AuditLogReader
from quarterdeck.backend.journal.reader import read_journal
from quarterdeck.backend.live.cluster.local_clusters import ProcessCluster
from tests.live.cluster.observed_cluster import ObservedCluster
from tests.service.member_processes import BASE_PORT, MemberProcess, end, members

ALL_ON = (
    "hazelcast: {network: {rest-api: {endpoint-groups: {CLUSTER_WRITE: {enabled: true}, DATA: {enabled: true}}}}}\n"
)
UPDATED = "The member list of TCP-IP join config is updated at run time. "


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "member.yaml"
    path.write_text(ALL_ON)
    return f"--config={path}"


def test_a_member_joins_says_so_serves_and_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It notifies the service manager and its followers, serves at a port for HTTP as well, and takes no faults."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(20)
        monkeypatch.setitem(os.environ, "NOTIFY_SOCKET", str(tmp_path / "notify"))
        member = MemberProcess(tmp_path, "athens", f"--rest-port={BASE_PORT + 5}")
        try:
            said = member.ready()
            assert said["address"] == f"127.0.0.1:{member.port}" and said["pid"] == member.process.pid
            assert systemd.recv(100) == b"READY=1"
            for port in (member.port, BASE_PORT + 5):
                health = httpx.get(f"http://127.0.0.1:{port}/hazelcast/health", timeout=60).json()
                assert health["nodeState"] == "ACTIVE"
            assert member.get("/quarterdeck/v1/member").json()["label"] == "athens"
            listed = f"Members {{size:1, ver:1}} [\n\tMember [127.0.0.1]:{member.port} - {said['uuid']} this\n]"
            assert listed in member.log
            assert member.post("/quarterdeck/v1/faults/kill").status_code in (403, 409)
            with connect(f"ws://127.0.0.1:{member.port}/quarterdeck/v1/events") as events:
                assert json.loads(events.recv(20))["type"] == "hello"
                member.signal(signal.SIGTERM)
                assert "member-stopped" in "".join(map(str, swallowing_the_end(events)))
            assert systemd.recv(100) == b"STOPPING=1"
            assert member.ends_with() == 0
            assert not member.ready_file.exists()
            assert "SIGTERM: leaving" in member.log and "Traceback" not in member.log
        finally:
            end(member)


def swallowing_the_end(events: ClientConnection) -> Iterator[str | bytes]:
    """What is said until the other side closes, in whatever way."""
    try:
        yield from events
    except ConnectionClosed:
        return


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_two_clusters_that_do_not_know_one_another_merge_after_one_post(tmp_path: Path, file: str) -> None:
    """The reported case of Split-brain Recovery Improvements, healed by its own curl line."""
    ports = (BASE_PORT, BASE_PORT + 1)
    hurry = (
        "--property=hazelcast.merge.first.run.delay.seconds=1",
        "--property=hazelcast.merge.next.run.delay.seconds=1",
    )
    found = [MemberProcess(tmp_path, f"n{port}", f"--join=127.0.0.1:{port}", file, *hurry, port=port) for port in ports]
    try:
        for member in found:
            member.ready()
            member.sees(1)
        addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
        url = f"{found[1].url}/hazelcast/rest/config/tcp-ip/member-list"
        parts = [word for part in ("dev", "", addresses) for word in ("--data-urlencode", part)]
        line = ["curl", "-s", "-X", "POST", "-H", "Content-Type: text/plain", *parts, url]
        said = json.loads(subprocess.run(line, capture_output=True, check=True, timeout=20).stdout)
        assert said == {"status": "success", "message": UPDATED, "member-list": addresses.split(",")}
        for member in found:
            member.sees(2)
    finally:
        for member in found:
            end(member)


def test_edits_those_not_let_in_and_leaving_that_gives_data_away_unless_signalled_twice(
    tmp_path: Path, file: str
) -> None:
    with members(tmp_path, 3, file, "--property=quarterdeck.partition.arrange.at.once=true") as (first, second, third):
        wanted = [f"127.0.0.1:{member.port}" for member in (first, second, third)] + ["127.0.0.1:5999"]
        path = "/hazelcast/rest/config/tcp-ip/member-list"
        answer = second.post(path, f"dev&&{','.join(wanted)}", headers={"Content-Type": "text/plain"})
        assert answer.json() == {"status": "success", "message": UPDATED, "member-list": wanted}
        first.until(lambda: first.get(path).json()["member-list"] == wanted)

        assert first.post("/quarterdeck/v1/state", json={"state": "FROZEN"}).is_success
        first.until(lambda: first.get("/hazelcast/health/cluster-state").text == '"FROZEN"')
        arguments = (f"--join=127.0.0.1:{first.port}", "--property=hazelcast.max.join.seconds=1")
        not_let_in = MemberProcess(tmp_path, "n8", *arguments, port=BASE_PORT + 8)
        same_port = MemberProcess(tmp_path, "n9", port=first.port)
        try:
            assert [not_let_in.ends_with(), same_port.ends_with()] == [3, 3]
        finally:
            end(not_let_in)
            end(same_port)
        assert "Could not join cluster. Shutting down now" in not_let_in.log and not not_let_in.ready_file.exists()
        assert f"port {first.port}" in same_port.log and "Address already in use" in same_port.log
        assert first.post("/quarterdeck/v1/state", json={"state": "ACTIVE"}).is_success
        first.until(lambda: third.get("/hazelcast/health/cluster-state").text == '"ACTIVE"')

        assert first.post("/hazelcast/rest/maps/m/k", "hello").status_code in (200, 204)
        third.until(lambda: third.get("/hazelcast/health").json()["clusterSafe"])
        first.signal(signal.SIGTERM)
        assert first.ends_with() == 0
        second.sees(2)
        assert third.get("/hazelcast/rest/maps/m/k").text == "hello"
        second.signal(signal.SIGTERM)
        second.signal(signal.SIGTERM)
        assert second.ends_with() == 0
        third.sees(1)


def test_cut_killed_started_anew_and_stopped_by_an_operator_with_a_journal_of_it_all(tmp_path: Path, file: str) -> None:
    journal = tmp_path / "journal"
    recorded = (file, "--allow-faults", f"--journal={journal}", "--run=r", "--log-format=json")
    with members(tmp_path, 2, *recorded) as (first, second):
        cut = {"do": "cut", "sources": [f"127.0.0.1:{second.port}"], "targets": [f"127.0.0.1:{first.port}"]}
        for member in (first, second):
            assert member.post("/quarterdeck/v1/faults", json=cut).is_success
        first.sees(1)
        second.sees(1)
        for member in (first, second):
            assert httpx.delete(member.url + "/quarterdeck/v1/faults").json() == {"faults": []}
        first.sees(2)
        assert first.post("/quarterdeck/v1/faults/kill").is_success
        assert first.ends_with() == -signal.SIGKILL
        second.sees(1)
        assert first.ready_file.exists()  # a killed process removes nothing; the next incarnation does
        again = MemberProcess(tmp_path, "n1", f"--join=127.0.0.1:{second.port}", *recorded)
        try:
            again.ready()
            second.sees(2)
            assert second.post("/hazelcast/rest/management/cluster/clusterShutdown", "dev&").status_code == 200
            assert [member.ends_with() for member in (again, second)] == [0, 0]
        finally:
            end(again)
        assert all(isinstance(json.loads(line), dict) for line in second.log.splitlines())
    found = read_journal(journal)
    records = list(found)
    assert not [problem for problem in found.problems if not problem.torn]
    assert len({record.uuid for record in records if record.member == "n1"}) >= 2
    assert [record.at for record in records] == sorted(record.at for record in records)
    asked = [(entry.what, entry.outcome) for entry in AuditLogReader(journal).new_entries()]
    assert ("POST /quarterdeck/v1/faults/kill", "done") in asked, "a kill leaves time for its own line"
    assert asked[-1] == ("POST /hazelcast/rest/management/cluster/clusterShutdown", "done")


def test_beyond_loopback_with_tls_a_secret_and_users(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    (tmp_path / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    (tmp_path / "secret").write_text("the secret of the cluster\n")
    (tmp_path / "password").write_text("sesame\n")
    (tmp_path / "secure.yaml").write_text(
        "hazelcast:\n  network:\n    public-address: 127.0.0.1\n"
        "    ssl: {enabled: true, certificate: cert.pem, key: key.pem, authority: ca.pem}\n"
        "quarterdeck:\n  bind: 0.0.0.0\n  security:\n    secret-file: secret\n"
        "    users: [{name: ann, password-file: password, role: read}]\n"
    )
    trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    join = [f"--join=127.0.0.1:{BASE_PORT + number}" for number in range(2)]
    arguments = [f"--config={tmp_path / 'secure.yaml'}", *join]
    found = [MemberProcess(tmp_path, f"n{number}", *arguments, port=BASE_PORT + number) for number in range(2)]
    try:
        for member in found:
            member.ready()
            with httpx.Client(base_url=f"https://127.0.0.1:{member.port}", verify=trusting, timeout=20) as client:
                assert client.get("/quarterdeck/v1/member").status_code == 401
                member.until(lambda: len(members_in(client)) == 2)
                assert client.post("/quarterdeck/v1/stop", auth=("ann", "sesame")).status_code == 403
        for member in found:
            member.signal(signal.SIGTERM)
            assert member.ends_with() == 0
            assert "sesame" not in member.log and "the secret" not in member.log
    finally:
        for member in found:
            end(member)


def members_in(client: httpx.Client) -> list[object]:
    found: list[object] = client.get("/quarterdeck/v1/members", auth=("ann", "sesame")).json()["members"]
    return found


def test_members_of_a_local_cluster_serve_http_too() -> None:
    cluster = ProcessCluster(1, base_port=BASE_PORT + 10)
    try:
        cluster.started.result(20)
        watched = ObservedCluster(cluster)
        watched.until(lambda: watched.agree(["n1"]))
        path = f"http://{cluster.addresses['n1']}/quarterdeck/v1"
        assert httpx.get(f"{path}/member", timeout=20).json()["label"] == "n1"
        assert (
            httpx.put(f"{path}/join-list", json={"addresses": ["n1", "10.0.0.9:5701"]}, timeout=20).status_code == 200
        )
        watched.until(lambda: watched.events(JoinListChanged))
    finally:
        cluster.close()
