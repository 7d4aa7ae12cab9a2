"""Unmodified members of Hazelcast, each in a network namespace of this machine: started, killed, frozen, cut apart, healed.

The members hang on a bridge in a namespace of its own, where the test stands too while it is `inside`. A link is cut by giving
the neighbour a hardware address that nobody has: packets vanish without an error, and only iproute2 is needed. It needs root,
Java 17 and the jars that `make test-hazelcast` brings.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from quarterdeck.backend.core.address import Address

VERSIONS = ("4.2.8", "5.3.8", "5.5.0", "5.6.0", "5.7.0")
JARS = Path(os.environ.get("MAVEN_REPOSITORY", Path.home() / ".m2" / "repository")) / "com" / "hazelcast" / "hazelcast"
NEW_NETWORK = 0x4000_0000
"""CLONE_NEWNET of setns(2)."""
NOBODY = "02:77:ff:ff:ff:ff"
NUMBERS = count(1)
FAKE_TIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
"""Debian's libfaketime, with which a member's clock can be set."""

CONFIGURATION = """<?xml version="1.0" encoding="UTF-8"?>
<hazelcast xmlns="http://www.hazelcast.com/schema/config">
  <cluster-name>{name}</cluster-name>
  <properties>{properties}</properties>
  <network>
    <port auto-increment="false">5701</port>
    <join>
      <multicast enabled="false"/>
      {joiner}
    </join>
    <interfaces enabled="true"><interface>10.77.0.*</interface></interfaces>
    <rest-api enabled="{rest}"><endpoint-group name="CLUSTER_WRITE" enabled="true"/></rest-api>
  </network>
  {more}
</hazelcast>
"""

QUICK = {
    "hazelcast.heartbeat.interval.seconds": "1",
    "hazelcast.max.no.heartbeat.seconds": "5",
    "hazelcast.merge.first.run.delay.seconds": "5",
    "hazelcast.merge.next.run.delay.seconds": "5",
    "hazelcast.phone.home.enabled": "false",
    "hazelcast.logging.type": "jdk",
    "hazelcast.wait.seconds.before.join": "1",
}
"""Seconds instead of minutes."""


def jar_of(version: str) -> Path:
    """Where Maven keeps the product."""
    return JARS / version / f"hazelcast-{version}.jar"


def why_not(version: str) -> str | None:
    """Why no real members of `version` can run here."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("java", "ip") if shutil.which(tool) is None]
    if missing:
        return f"{missing[0]} is not installed"
    return None if jar_of(version).exists() else f"{jar_of(version)} is missing; `make test-hazelcast` brings it"


def ip(*words: str) -> None:
    """Run iproute2."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


class RealCluster:
    """Members 1, 2, … of one version, at 10.77.0.1:5701, 10.77.0.2:5701, …"""

    def __init__(
        self,
        version: str,
        folder: Path,
        size: int,
        *,
        name: str = "dev",
        properties: dict[str, str] | None = None,
        more: str = "",
        rest: bool = False,
        join_lists: dict[int, list[int]] | None = None,
        joiner: str = "",
        lite: Iterable[int] = (),
        heap: Mapping[int, str] | None = None,
        clocks: Iterable[int] = (),
    ) -> None:
        """`joiner` stands for the lists of TCP/IP."""
        self.version = version
        self.folder = folder
        self.name = name
        self.properties = QUICK | (properties or {})
        self.more = more
        self.rest = rest
        self.everybody = range(1, size + 1)
        self.join_lists, self.joiner = join_lists or {}, joiner
        self.lite, self.heap, self.clocks = frozenset(lite), heap or {}, frozenset(clocks)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self._hub = f"qd{os.getpid()}-{next(NUMBERS)}"
        self._cut: set[tuple[int, int]] = set()

    def __enter__(self) -> RealCluster:
        self._build_network()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        for namespace in (*map(self._namespace, self.everybody), self._hub):
            subprocess.run(["ip", "netns", "del", namespace], check=False, capture_output=True)

    def address(self, member: int) -> Address:
        """How a member names itself."""
        return Address(f"10.77.0.{member}:5701")

    def log(self, member: int) -> Path:
        """What a member has logged, in all its lives."""
        return self.folder / f"h{member}.log"

    def start(self, *members: int, arguments: Iterable[str] = ()) -> None:
        """Start members, each in its namespace."""
        for member in members:
            configuration = self.folder / f"h{member}.xml"
            configuration.write_text(self._configuration(member))
            command = [
                *("ip", "netns", "exec", self._namespace(member)),
                *(
                    "java",
                    f"-Xmx{self.heap.get(member, '128m')}",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    *arguments,
                ),
                *(f"-Dhazelcast.config={configuration}", "-Djava.net.preferIPv4Stack=true"),
                *("-cp", str(jar_of(self.version)), "com.hazelcast.core.server.HazelcastMemberStarter"),
            ]
            with self.log(member).open("ab") as log:
                environment = {**os.environ, **self._clock_of(member)}
                self.processes[member] = subprocess.Popen(
                    command, stdout=log, stderr=log, cwd=self.folder, env=environment
                )

    def signal(self, member: int, number: signal.Signals) -> None:
        """SIGKILL, SIGTERM, SIGSTOP or SIGCONT. `ip netns exec` has become Java, so it gets it."""
        self.processes[member].send_signal(number)

    def cut(self, *groups: Iterable[int]) -> None:
        """No packet passes between members of different groups."""
        sides = [set(group) for group in groups]
        self.cut_links((side, other) for a in sides for b in sides if a is not b for side in a for other in b)

    def cut_links(self, links: Iterable[tuple[int, int]]) -> None:
        """No packet passes from the first to the second of each pair."""
        for source, target in links:
            self._neighbour(source, target, NOBODY)
            self._cut.add((source, target))

    def heal(self) -> None:
        """All packets pass again."""
        for source, target in self._cut:
            self._neighbour(source, target, self._hardware(target))
        self._cut.clear()

    def hide_from_watchers(self, members: Iterable[int], *, hidden: bool) -> None:
        """Let no packet of whoever is `inside` arrive at these members, or let all packets arrive again."""
        for member in members:
            hardware = NOBODY if hidden else self._hardware(member)
            neighbour = ("neigh", "replace", f"10.77.0.{member}", "lladdr", hardware, "nud", "permanent", "dev", "hub")
            ip("-n", self._hub, *neighbour)

    def delay(self, member: int, delay: str) -> None:
        """Delay every packet that a member sends, by a time such as `2000ms`; `0ms` ends that."""
        words = ("qdisc", "replace", "dev", "eth0", "root", "netem", "delay", delay)
        subprocess.run(["tc", "-n", self._namespace(member), *words], check=True, capture_output=True)

    def set_clock(self, member: int, seconds: str) -> None:
        """Set the clock of a member by so many seconds, such as `+90`, as libfaketime reads it."""
        self._clock_file(member).write_text(f"{seconds}\n")

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Sockets that this thread makes meanwhile stand on the members' bridge, which is never cut."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Path("/proc/thread-self/ns/net").open() as home, Path(f"/run/netns/{self._hub}").open() as hub:
            if libc.setns(hub.fileno(), NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                libc.setns(home.fileno(), NEW_NETWORK)

    def _clock_file(self, member: int) -> Path:
        return self.folder / f"h{member}.clock"

    def _clock_of(self, member: int) -> dict[str, str]:
        """Return the environment in which a member reads a clock that can be set, where the cluster is to set it."""
        if member not in self.clocks:
            return {}
        if not self._clock_file(member).exists():
            self.set_clock(member, "+0")
        return {
            "LD_PRELOAD": str(FAKE_TIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock_file(member)),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def _configuration(self, member: int) -> str:
        listed = "".join(
            f"<member>{self.address(other)}</member>" for other in self.join_lists.get(member, self.everybody)
        )
        joiner = self.joiner or f'<tcp-ip enabled="true"><member-list>{listed}</member-list></tcp-ip>'
        properties = "".join(f'<property name="{name}">{value}</property>' for name, value in self.properties.items())
        rest = str(self.rest).lower()
        more = self.more + ('<lite-member enabled="true"/>' if member in self.lite else "")
        return CONFIGURATION.format(name=self.name, properties=properties, joiner=joiner, rest=rest, more=more)

    def _namespace(self, member: int) -> str:
        return f"{self._hub}-{member}"

    def _hardware(self, member: int) -> str:
        return f"02:77:00:00:00:{member:02x}"

    def _neighbour(self, member: int, other: int, hardware: str) -> None:
        neighbour = ("neigh", "replace", f"10.77.0.{other}", "lladdr", hardware, "nud", "permanent", "dev", "eth0")
        ip("-n", self._namespace(member), *neighbour)

    def _build_network(self) -> None:
        ip("netns", "add", self._hub)
        ip("-n", self._hub, "link", "set", "lo", "up")
        ip("-n", self._hub, "link", "add", "hub", "type", "bridge")
        ip("-n", self._hub, "addr", "add", "10.77.0.254/24", "dev", "hub")
        ip("-n", self._hub, "link", "set", "hub", "up")
        for member in self.everybody:
            namespace, port = self._namespace(member), f"port{member}"
            ip("netns", "add", namespace)
            peer = ("peer", "name", "eth0", "address", self._hardware(member), "netns", namespace)
            ip("-n", self._hub, "link", "add", port, "type", "veth", *peer)
            ip("-n", self._hub, "link", "set", port, "master", "hub", "up")
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "addr", "add", f"10.77.0.{member}/24", "dev", "eth0")
            ip("-n", namespace, "link", "set", "eth0", "up")


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until `condition` holds, or fail with `what`."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
