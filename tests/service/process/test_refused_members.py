"""A member that everybody refuses founds no cluster, says who refused it and why, and ends (Decisions: Members that everybody
refuses): real processes."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from quarterdeck.backend.live.transport.frames import frame_of
from quarterdeck.backend.live.transport.handshake import HandshakeRejection
from tests.service.member_processes import BASE_PORT, TIMEOUT_SECONDS, MemberProcess, end
from tests.thoroughness import long_after
from tests.waiting import wait_until

PORT, REFUSED_PORT = BASE_PORT + 40, BASE_PORT + 41
JOIN_SECONDS = 8
"""How long the refused member goes on asking. It is the time of which these tests wait for the end."""

JOINS = (f"--join=127.0.0.1:{PORT}", f"--join=127.0.0.1:{REFUSED_PORT}")


@dataclass(frozen=True)
class Case:
    """Who does not fit whom; `there` and `here` are parts of what the member and the refused one say."""

    member: str
    refused: str
    here: str
    there: str


CASES = {
    "another secret": Case("secret", "other secret", "does not know the secret", "does not know the secret"),
    "another authority": Case("tls", "other authority", "certificate", "certificate"),
    "no secret here": Case("secret", "open", "the secret", "does not prove that it knows the secret"),
    "no secret there": Case("open", "secret", "no secret is configured", "no secret is configured at"),
    "an expired certificate": Case("tls", "expired", "expired", "expired"),
    "another host": Case("tls", "other host", "another.example", "another.example"),
    "no TLS here": Case("tls", "open", "TLS", "TLS"),
    "no TLS there": Case("open", "tls", "TLS", "TLS"),
}


class Kits:
    """What a member is given to prove itself with, as its configuration, by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        ours, others = trustme.CA(), trustme.CA()
        self.authority = folder / "authority.pem"
        ours.cert_pem.write_to_path(str(self.authority))
        past = datetime.now(UTC) - timedelta(days=1)
        self._sections = {
            "open": ("", ""),
            "secret": ("", self._secret("secret")),
            "other secret": ("", self._secret("other secret")),
            "tls": (self._tls("tls", ours.issue_cert("127.0.0.1")), ""),
            "other authority": (self._tls("other-authority", others.issue_cert("127.0.0.1")), ""),
            "expired": (self._tls("expired", ours.issue_cert("127.0.0.1", not_after=past)), ""),
            "other host": (self._tls("other-host", ours.issue_cert("another.example")), ""),
        }

    def file(self, kit: str) -> Path:
        """The configuration file of a member with this kit."""
        ssl, security = self._sections[kit]
        path = self._folder / f"{kit.replace(' ', '-')}.yaml"
        network = f"hazelcast:\n  network:\n    rest-api: {{enabled: true}}\n{ssl}"
        path.write_text(f"{network}quarterdeck:\n  read-only: false\n{security}")
        return path

    def _secret(self, text: str) -> str:
        path = self._folder / f"{text.replace(' ', '-')}.txt"
        path.write_text(text)
        path.chmod(0o600)
        return f"  security: {{secret-file: {path.name}}}\n"

    def _tls(self, stem: str, issued: trustme.LeafCert) -> str:
        certificate, key = self._folder / f"{stem}.pem", self._folder / f"{stem}.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(key))
        key.chmod(0o600)
        return (
            f"    ssl: {{enabled: true, certificate: {certificate.name}, key: {key.name}, authority: authority.pem}}\n"
        )


@contextmanager
def started(folder: Path, case: Case) -> Iterator[tuple[MemberProcess, MemberProcess]]:
    """A member that has founded its cluster, and one that it refuses, which has just been started."""
    kits = Kits(folder)
    wait = f"--property=hazelcast.max.join.seconds={JOIN_SECONDS}"
    with ExitStack() as ending:
        member = MemberProcess(folder, "athens", JOINS[0], f"--config={kits.file(case.member)}", port=PORT)
        ending.callback(end, member)
        member.ready()
        refused = MemberProcess(
            folder, "byzantium", *JOINS, f"--config={kits.file(case.refused)}", wait, port=REFUSED_PORT
        )
        ending.callback(end, refused)
        yield member, refused


def asked(member: MemberProcess, kit: str, path: str) -> httpx.Response:
    """The answer of the member, over TLS if it speaks that."""
    scheme = "http" if kit in ("open", "secret", "other secret") else "https"
    return httpx.get(f"{scheme}://127.0.0.1:{member.port}{path}", verify=False, timeout=TIMEOUT_SECONDS)


def health_of(member: MemberProcess, kit: str) -> dict[str, Any]:
    try:
        told: dict[str, Any] = asked(member, kit, "/hazelcast/health").json()
    except httpx.TransportError:
        return {"reason": ""}
    return told


@pytest.mark.parametrize("name", long_after(1, list(CASES)))
def test_a_refused_member_says_who_refuses_it_and_why_and_ends(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    with started(tmp_path, case) as (member, refused):
        refuser = f"127.0.0.1:{PORT}"
        refused.until(lambda: "in vain" in health_of(refused, case.refused)["reason"])
        told = asked(refused, case.refused, "/hazelcast/health")
        assert told.status_code == 503 and told.json()["nodeState"] == "STARTING"
        assert not told.json()["clusterSafe"] and told.json()["clusterSize"] == 0
        assert refuser not in told.json()["reason"] and case.here not in told.json()["reason"]
        assert asked(refused, case.refused, "/hazelcast/health/ready").status_code == 503
        why = asked(refused, case.refused, "/quarterdeck/v1/why-not-merging").json()["sentence"]
        assert refuser in why and case.here in why
        assert f"WARNING [127.0.0.1]:{REFUSED_PORT}" in refused.log and case.here in refused.log
        assert refused.ends_with() == 3
        assert refuser in refused.log.splitlines()[-1] and case.here in refused.log.splitlines()[-1]
        assert not refused.ready_file.exists()
        assert case.there in member.log
        assert health_of(member, case.member)["clusterSize"] == 1
        assert "Traceback" not in member.log + refused.log


@pytest.mark.parametrize("name", long_after(1, ["another secret", "another authority", "no TLS here"]))
def test_it_founds_no_cluster_either_while_another_of_its_list_is_down(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    silent = f"--join=127.0.0.1:{PORT + 2}"
    kits = Kits(tmp_path)
    wait = f"--property=hazelcast.max.join.seconds={JOIN_SECONDS}"
    with ExitStack() as ending:
        member = MemberProcess(tmp_path, "athens", *JOINS, silent, f"--config={kits.file(case.member)}", port=PORT)
        ending.callback(end, member)
        member.ready()
        refused = MemberProcess(
            tmp_path, "byzantium", *JOINS, silent, f"--config={kits.file(case.refused)}", wait, port=REFUSED_PORT
        )
        ending.callback(end, refused)
        assert refused.ends_with() == 3
        assert not refused.ready_file.exists() and "Members {size" not in refused.log


def test_two_that_a_cluster_refuses_found_none_together(tmp_path: Path) -> None:
    kits = Kits(tmp_path)
    other = f"--join=127.0.0.1:{PORT + 2}"
    wait = f"--property=hazelcast.max.join.seconds={JOIN_SECONDS}"
    with ExitStack() as ending:
        member = MemberProcess(tmp_path, "athens", *JOINS, other, f"--config={kits.file('secret')}", port=PORT)
        ending.callback(end, member)
        member.ready()
        refused = [
            MemberProcess(tmp_path, label, *JOINS, other, f"--config={kits.file('other secret')}", wait, port=port)
            for label, port in (("byzantium", REFUSED_PORT), ("cyrene", PORT + 2))
        ]
        for process in refused:
            ending.callback(end, process)
        assert [process.ends_with() for process in refused] == [3, 3]
        assert not any("Members {size" in process.log for process in refused)


class _HangsUp(socketserver.BaseRequestHandler):
    """Accepts, and hangs up without a word."""


class _Rubbish(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.sendall(b"220 mail.example ESMTP\r\n")


class _Silent(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while self.request.recv(4096):
            pass


class _Refuses(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(4096)
        self.request.sendall(frame_of(HandshakeRejection("is not wanted", joined=True)))


FOREIGN: dict[str, tuple[type[socketserver.BaseRequestHandler], str]] = {
    "hangs up": (_HangsUp, "open"),
    "another service": (SimpleHTTPRequestHandler, "open"),
    "rubbish": (_Rubbish, "open"),
    "silent": (_Silent, "open"),
    "fake refusal": (_Refuses, "secret"),
}


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@pytest.mark.parametrize("name", long_after(1, list(FOREIGN)))
def test_a_foreign_service_keeps_no_seed_from_founding(tmp_path: Path, name: str) -> None:
    """What is no member has nothing to say about clusters, and is named in one warning."""
    handler, kit = FOREIGN[name]
    with ExitStack() as ending:
        server = ending.enter_context(_Server(("127.0.0.1", PORT), handler))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ending.callback(server.shutdown)
        seed = MemberProcess(tmp_path, "byzantium", *JOINS, f"--config={Kits(tmp_path).file(kit)}", port=REFUSED_PORT)
        ending.callback(end, seed)
        wait_until(lambda: "Members {size:1" in seed.log, lambda: seed.log)
        seed.ready()
        warnings = [line for line in seed.log.splitlines() if "WARNING" in line and f"127.0.0.1:{PORT}" in line]
        if name in ("silent", "another service"):  # which waits for the end of a line
            assert not warnings, seed.log
        else:
            assert len(warnings) == 1, seed.log
