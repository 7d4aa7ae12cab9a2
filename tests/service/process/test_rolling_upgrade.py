"""A cluster goes from the protocol version before to this one, and back, member by member, under writes: nothing is lost."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

from tests.service.member_processes import BASE_PORT, MemberProcess, end
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
BEFORE = "8fa778c842cd6c910092723c8c1e270c0683d517"
"""The last commit whose members speak version 2 alone."""
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
SPOKEN = "from quarterdeck.backend.live.transport import handshake_messages as said; print(said.PROTOCOL_VERSION)"
CONFIGURATION = """\
hazelcast: {network: {rest-api: {enabled: true, endpoint-groups: {DATA: {enabled: true}}}}}
quarterdeck: {read-only: false, security: {secret-file: secret.txt}}
"""
MEMBERS = 3
PORTS = range(BASE_PORT + 40, BASE_PORT + 40 + MEMBERS)


def release_before(folder: Path) -> Path:
    """Build the wheel of the release before from the history, and return the folder in which it is unpacked."""
    source, wheels, unpacked = folder / "source", folder / "wheels", folder / "unpacked"
    archive = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip("the history of the release before is not here")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(source, filter="data")
    wheels.mkdir()
    subprocess.run([sys.executable, "-c", BUILD, str(wheels)], cwd=source, check=True, capture_output=True)
    (wheel,) = wheels.glob("*.whl")
    with ZipFile(wheel) as packed:
        packed.extractall(unpacked)
    return unpacked


class Writer:
    """A client that writes each key once, through any member, and keeps which were acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        with httpx.Client(timeout=40, trust_env=False) as http:
            for number in range(1_000_000):
                if self.over.wait(0.01):
                    return
                url = f"http://127.0.0.1:{PORTS[number % MEMBERS]}/hazelcast/rest/maps/m/k{number}"
                try:
                    if http.put(url, content=str(number)).status_code == 200:
                        self.acknowledged.append(number)
                except httpx.TransportError:
                    pass  # that member is being replaced

    def end(self) -> None:
        self.over.set()
        self._thread.join()


def started(folder: Path, number: int, within: Sequence[str]) -> MemberProcess:
    join = [f"--join=127.0.0.1:{port}" for port in PORTS]
    configuration = folder / "member.yaml"
    configuration.write_text(CONFIGURATION)
    secret = folder / "secret.txt"
    secret.write_text("a secret that all members know")
    secret.chmod(0o600)
    options = (f"--config={configuration}", "--property=quarterdeck.partition.arrange.at.once=true")
    member = MemberProcess(folder, f"n{number}", *join, *options, port=PORTS[number], within=within)
    member.ready()
    return member


@pytest.mark.long
def test_member_by_member_to_this_version_and_back_under_writes(tmp_path: Path) -> None:
    old = ("env", f"--chdir={tmp_path}", f"PYTHONPATH={release_before(tmp_path)}")
    assert subprocess.check_output([*old, sys.executable, "-c", SPOKEN], text=True).strip() == "2"
    here: dict[int, MemberProcess] = {}
    writer = None
    try:
        for number in range(MEMBERS):
            here[number] = started(tmp_path, number, old)
        here[0].sees(MEMBERS)
        writer = Writer()
        for within in ((), old):
            for number in range(MEMBERS):
                before = len(writer.acknowledged)
                wait_until(lambda before=before: len(writer.acknowledged) > before + 50)
                here[number].signal(signal.SIGTERM)
                assert here[number].ends_with() == 0, here[number].log
                here[number] = started(tmp_path, number, within)
                for member in here.values():
                    member.sees(MEMBERS)
                here[number].until(
                    lambda: all(member.get("/hazelcast/health/cluster-safe").is_success for member in here.values())
                )
        writer.end()
        lost = [
            number
            for number in writer.acknowledged
            if here[number % MEMBERS].get(f"/hazelcast/rest/maps/m/k{number}").text != str(number)
        ]
        assert len(writer.acknowledged) > 6 * 50
        assert lost == []
    finally:
        if writer is not None:
            writer.end()
        for member in here.values():
            end(member)
