"""The secret of a cluster turns without a stop, under writes: no member is thrown out, and no acknowledged write is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from tests.service.member_processes import BASE_PORT, CLIENT, MemberProcess, end
from tests.waiting import wait_until

CONFIGURATION = """\
hazelcast: {network: {rest-api: {enabled: true, endpoint-groups: {DATA: {enabled: true}}}}}
quarterdeck:
  security: {secret-file: cluster.secret, tokens: [{file: operator.token, role: write, name: operator}]}
"""
TOKEN = "a token of more than sixteen letters"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
PORT = BASE_PORT + 60
ENTRY = "/hazelcast/rest/maps/m/k"


AnyCluster = TypeVar("AnyCluster", bound="Cluster")

Rings = set[tuple[str, tuple[str, ...]]]
"""What members use and accept."""


class Cluster:
    """Members that know one secret, in one folder."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.ports = folder, range(PORT, PORT + count)
        self.members: list[MemberProcess] = []
        for name, text in (("member.yaml", CONFIGURATION), ("cluster.secret", "old"), ("operator.token", TOKEN)):
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)

    def start(self, number: int) -> MemberProcess:
        join = [f"--join=127.0.0.1:{port}" for port in self.ports]
        options = (f"--config={self.folder / 'member.yaml'}", "--property=quarterdeck.partition.arrange.at.once=true")
        member = MemberProcess(self.folder, f"n{number}", *join, *options, port=self.ports[number])
        member.ready()
        return member

    def turn(self, step: str, secret: str = "") -> Rings:
        """Take one step at each member; return what they use and accept."""
        rings = set()
        for member in self.members:
            url, body = f"{member.url}/quarterdeck/v1/secret", {"do": step, "secret": secret}
            answer = CLIENT.post(url, json=body, headers=HEADERS) if secret else CLIENT.get(url, headers=HEADERS)
            assert answer.status_code == 200, answer.text
            rings.add((answer.json()["used"], tuple(answer.json()["accepted"])))
        return rings

    def is_safe(self) -> bool:
        return all(member.get("/hazelcast/health/cluster-safe").is_success for member in self.members)

    def lists(self) -> set[tuple[int, int]]:
        """Return size and version of the list of each member."""
        said = [CLIENT.get(f"{member.url}/quarterdeck/v1/member", headers=HEADERS).json() for member in self.members]
        return {(len(answer["members"]), answer["list_version"]) for answer in said}


class CommandedCluster(Cluster):
    """The same, by the command line."""

    def command(self, step: str, *secrets: str) -> subprocess.CompletedProcess[str]:
        for secret in secrets:
            self.write("secret.txt", secret)
        files = [str(self.folder / "secret.txt") for _ in secrets]
        words = ["member", "secret", step, *files, "--connect", self.members[0].url, "-o", "json"]
        return subprocess.run(
            [sys.executable, "-c", "from quarterdeck.cli.main import run; run()", *words],
            env={**os.environ, "QUARTERDECK_TOKEN": TOKEN, "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    def turn(self, step: str, secret: str = "") -> Rings:
        done = self.command(step, secret) if secret else self.command(step)
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)
        assert len(rows) == len(self.members)
        return {(row["used"], tuple(row["accepted"])) for row in rows}


@contextmanager
def running(cluster: AnyCluster) -> Iterator[AnyCluster]:
    try:
        for number in range(len(cluster.ports)):
            cluster.members.append(cluster.start(number))
        for member in cluster.members:
            member.sees(len(cluster.ports))
        wait_until(cluster.is_safe)
        yield cluster
    finally:
        for member in cluster.members:
            end(member)


@contextmanager
def writing(cluster: Cluster) -> Iterator[list[int]]:
    """Write each key once, through one member after the other; yield the keys whose writes were acknowledged."""
    acknowledged: list[int] = []
    over = threading.Event()

    def write() -> None:
        with httpx.Client(timeout=40, trust_env=False, headers=HEADERS) as http:
            for number in range(1_000_000):
                if over.wait(0.01):
                    return
                url = f"{cluster.members[number % len(cluster.members)].url}{ENTRY}{number}"
                if http.put(url, content=str(number)).status_code == 200:
                    acknowledged.append(number)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield acknowledged
    finally:
        over.set()
        thread.join()


def more(acknowledged: list[int], count: int) -> None:
    """Return when so many more writes were acknowledged."""
    goal = len(acknowledged) + count
    wait_until(lambda: len(acknowledged) >= goal)


def turned(cluster: Cluster, writes_between: int) -> None:
    """Let the secret turn under writes. Nothing else happens to the cluster meanwhile."""
    before = cluster.lists()
    with writing(cluster) as acknowledged:
        ((old, _),) = cluster.turn("list")
        ((_, accepted),) = cluster.turn("add", "new")
        assert accepted[0] == old and len(accepted) == 2
        new = accepted[1]
        more(acknowledged, writes_between)
        cluster.write("cluster.secret", "new")
        assert cluster.turn("use", "new") == {(new, (new, old))}
        more(acknowledged, writes_between)
        assert cluster.turn("remove", "old") == {(new, (new,))}
        more(acknowledged, writes_between)
    assert cluster.lists() == before
    for number in acknowledged:
        member = cluster.members[number % len(cluster.members)]
        assert CLIENT.get(f"{member.url}{ENTRY}{number}", headers=HEADERS).text == str(number)
    assert not any("suspected" in member.log or "Traceback" in member.log for member in cluster.members)


def test_the_secret_turns_under_writes(tmp_path: Path) -> None:
    with running(Cluster(tmp_path, 2)) as cluster:
        turned(cluster, writes_between=5)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_five_members_turn_it_and_one_is_started_again_between_the_steps(tmp_path: Path) -> None:
    with running(CommandedCluster(tmp_path, 5)) as cluster:
        turned(cluster, writes_between=100)
        early = cluster.command("use", "newer")
        assert early.returncode == 4 and "do not accept it" in early.stderr
        cluster.turn("add", "newer")
        cluster.turn("use", "newer")
        cluster.members[4].signal(signal.SIGTERM)
        assert cluster.members[4].ends_with() == 0
        cluster.members[4] = cluster.start(4)  # with the secret that its file still has
        for member in cluster.members:
            member.sees(5)
        early = cluster.command("remove", "new")
        assert early.returncode == 4 and "use it" in early.stderr
        cluster.write("cluster.secret", "newer")
        cluster.turn("add", "newer")
        cluster.turn("use", "newer")
        ((used, accepted),) = cluster.turn("remove", "new")
        assert accepted == (used,)
        for member in cluster.members:
            member.sees(5)
