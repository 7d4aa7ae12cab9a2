"""Members on hosts of their own, as far as the network knows: a real link between them goes down and comes up again.

Three hosts are plugged into one switch and two into another, and a trunk joins the switches. Hosts are network namespaces, plugs
are veth pairs, and switches are bridges in a namespace of their own, so that nothing of the machine's own network is touched.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from quarterdeck.backend.service.configuration.process_configuration import OPEN_TO_ALL
from tests.service.member_processes import QUICK
from tests.waiting import wait_until

PORT = 5_701
WEST, EAST = ("n1", "n2", "n3"), ("n4", "n5")
LABELS = WEST + EAST
HOSTS = {label: f"10.77.0.{number}" for number, label in enumerate(LABELS, 1)}
ADDRESSES = {label: f"{host}:{PORT}" for label, host in HOSTS.items()}
HURRY = (
    "--property=hazelcast.merge.first.run.delay.seconds=2",
    "--property=hazelcast.merge.next.run.delay.seconds=1",
)
TIMEOUT_SECONDS = 25.0
CLONE_NEWNET = 0x40000000
PREFIX = f"qd{os.getpid()}"
SWITCHES = f"{PREFIX}sw"


def ip(*words: str) -> None:
    """Raises `CalledProcessError` with what it said when it does not work."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=10)


def space_of(label: str) -> str:
    """The namespace that is this member's host."""
    return f"{PREFIX}{label}"


def plug(label: str, switch: str) -> None:
    """Make a host and lay its cable to a switch."""
    space = space_of(label)
    ip("netns", "add", space)
    ip("-n", SWITCHES, "link", "add", label, "type", "veth", "peer", "name", "eth0", "netns", space)
    ip("-n", SWITCHES, "link", "set", label, "master", switch, "up")
    ip("-n", space, "address", "add", f"{HOSTS[label]}/24", "dev", "eth0")
    ip("-n", space, "link", "set", "eth0", "up")
    ip("-n", space, "link", "set", "lo", "up")


@pytest.fixture
def hosts() -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces are for root")
    if shutil.which("ip") is None:
        pytest.skip("there is no ip (iproute2) on this machine")
    try:
        try:
            ip("netns", "add", SWITCHES)
            for switch in ("west", "east"):
                ip("-n", SWITCHES, "link", "add", switch, "type", "bridge")
                ip("-n", SWITCHES, "link", "set", switch, "up")
            ip("-n", SWITCHES, "link", "add", "trunk", "type", "veth", "peer", "name", "trunk-end")
            ip("-n", SWITCHES, "link", "set", "trunk", "master", "west", "up")
            ip("-n", SWITCHES, "link", "set", "trunk-end", "master", "east", "up")
            for label in LABELS:
                plug(label, "west" if label in WEST else "east")
        except subprocess.CalledProcessError as refused:
            pytest.skip(f"this machine does not allow namespaces with links: {refused.cmd}: {refused.stderr.strip()}")
        yield
    finally:
        for space in (*map(space_of, LABELS), SWITCHES):
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False, timeout=10)


@pytest.fixture
def members(hosts: None, tmp_path: Path) -> Iterator[Path]:
    """Five members that look for one another; the folder has their logs."""
    joins = [f"--join={address}" for address in ADDRESSES.values()]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("HZ_", "QUARTERDECK_"))}
    with ExitStack() as running:
        for label, host in HOSTS.items():
            start = [
                sys.executable,
                "-c",
                "from quarterdeck.cli.main import run; run()",
                "member",
                "start",
                f"--name={label}",
            ]
            where = [f"--bind={host}", f"--port={PORT}", f"--open-to-all={OPEN_TO_ALL}"]
            log = running.enter_context((tmp_path / f"{label}.log").open("wb"))
            process = subprocess.Popen(
                ["ip", "netns", "exec", space_of(label), *start, *where, *joins, *QUICK, *HURRY],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
            running.callback(process.wait)
            running.callback(process.kill)
        yield tmp_path


def asked_within(space: str, url: str) -> Any:
    """What a client on that very host is answered, be the host cut off; None when nobody answers."""

    def ask() -> Any:
        libc = ctypes.CDLL(None, use_errno=True)
        with Path(f"/run/netns/{space}").open() as entered:
            if libc.setns(entered.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"cannot enter {space}")
        try:
            return httpx.get(url, timeout=5, trust_env=False).raise_for_status().json()
        except httpx.HTTPError:
            return None

    with ThreadPoolExecutor(1) as thread:  # a namespace is entered by one thread, which ends with it
        return thread.submit(ask).result()


def belief_of(label: str) -> tuple[str, list[str]]:
    """The master that the member follows, and its member list, sorted; empty when it does not answer."""
    told = asked_within(space_of(label), f"http://{ADDRESSES[label]}/quarterdeck/v1/member")
    return (told["master"] or "", sorted(member["address"] for member in told["members"])) if told else ("", [])


def are_one(labels: Sequence[str]) -> bool:
    """Whether these believe in exactly one another, and follow one of themselves."""
    masters, lists = zip(*map(belief_of, labels), strict=True)
    wanted = sorted(ADDRESSES[label] for label in labels)
    return len(set(masters)) == 1 and masters[0] in wanted and all(member_list == wanted for member_list in lists)


def until(condition: Callable[[], bool], logs: Path) -> None:
    def otherwise() -> str:
        told = json.dumps({label: belief_of(label) for label in LABELS}, indent=1)
        last = "\n".join(f"{log.name}\n{log.read_text()[-2_000:]}" for log in sorted(logs.glob("*.log")))
        return f"it never came to that: {told}\n{last}"

    wait_until(condition, otherwise, poll_seconds=0.1)


@pytest.mark.long
def test_a_trunk_that_goes_down_makes_two_clusters_and_one_again_when_it_is_up(members: Path) -> None:
    until(lambda: are_one(LABELS), members)
    ip("-n", SWITCHES, "link", "set", "trunk", "down")
    until(lambda: are_one(WEST) and are_one(EAST), members)
    assert belief_of("n1")[0] != belief_of("n4")[0]
    ip("-n", SWITCHES, "link", "set", "trunk", "up")
    until(lambda: are_one(LABELS), members)
    assert not [log.name for log in sorted(members.glob("*.log")) if "Traceback" in log.read_text()]
