"""Hosts for the members of `tests.bench.chaos`: network namespaces on one bridge, whose packets nftables drops, and a disk so
small that it can be filled.

Everything is in namespaces of this process, which `enter` makes: nothing of the machine's own network or folders is touched, and
nothing is left when the process ends. Clients are where this process is; their packets are never dropped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ENTERED = "CHAOS_NAMESPACES"
"""Set in the environment of a process that is in namespaces of its own."""

PORT = 5_701
SWITCH = "switch"
TABLE = "inet chaos"
FILL_ATTEMPTS = 50
DISK_SIZE = "8g"
"""It lies in memory, and takes as much of it as there is in the journal: 13 MB a minute."""


def obstacle() -> str:
    """Why this machine cannot have such hosts; empty when it can."""
    for program in ("unshare", "ip", "nft", "mount"):
        if shutil.which(program) is None:
            return f"there is no {program} on this machine"
    return "" if os.geteuid() == 0 else "namespaces with links are for root"


def enter() -> None:
    """Begin this very process anew in namespaces of its own, unless it is in them already."""
    if ENTERED not in os.environ:
        inside = f'mount -t tmpfs run /run && exec "{sys.executable}" -m tests.bench.chaos "$@"'
        words = ["unshare", "-nm", "--propagation", "private", "sh", "-c", inside, "chaos", *sys.argv[1:]]
        os.execvpe("unshare", words, {**os.environ, ENTERED: "1"})


class Hosts:
    """One host for each label. Made once in a process."""

    def __init__(self, labels: Sequence[str], disk: Path) -> None:
        self.hosts = {label: f"10.77.0.{number}" for number, label in enumerate(labels, 1)}
        self._disk = disk
        disk.mkdir(parents=True, exist_ok=True)
        _do("mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "disk", str(disk))
        _do("ip", "link", "add", SWITCH, "type", "bridge")
        _do("ip", "address", "add", "10.77.0.254/24", "dev", SWITCH)
        for device in (SWITCH, "lo"):
            _do("ip", "link", "set", device, "up")
        for label, host in self.hosts.items():
            self._plug(label, host)

    def within(self, label: str) -> tuple[str, ...]:
        """The words before a command that is to run on this host."""
        return ("ip", "netns", "exec", label)

    def cut(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        """From now on no packet of the sources reaches a target."""
        heard = ", ".join(self.hosts[label] for label in sources)
        rule = f"table {TABLE} {{ chain heard {{ type filter hook input priority 0; ip saddr {{ {heard} }} drop; }}; }}"
        for label in targets:
            subprocess.run([*self.within(label), "nft", "-f", "-"], input=rule, text=True, check=True, timeout=10)

    def heal(self) -> None:
        """All packets get through again."""
        for label in self.hosts:
            words = [*self.within(label), "nft", "destroy", "table", *TABLE.split()]
            if subprocess.run(words, capture_output=True, check=False, timeout=10).returncode:
                words[-4] = "delete"  # as it is called by nftables before 1.0.7, which minds that there is none
                subprocess.run(words, capture_output=True, check=False, timeout=10)

    def fill_disk(self) -> None:
        """Leave next to nothing free, by making the disk as small as what is on it."""
        for attempt in range(FILL_ATTEMPTS):
            used = os.statvfs(self._disk)
            size = f"remount,size={(used.f_blocks - used.f_bfree) * used.f_frsize}"
            try:
                _do("mount", "-o", size, str(self._disk))
            except subprocess.CalledProcessError:  # more was written meanwhile
                if attempt + 1 == FILL_ATTEMPTS:
                    raise
            else:
                return

    def free_disk(self) -> None:
        """Make room again."""
        _do("mount", "-o", f"remount,size={DISK_SIZE}", str(self._disk))

    def _plug(self, label: str, host: str) -> None:
        _do("ip", "netns", "add", label)
        _do("ip", "link", "add", label, "type", "veth", "peer", "name", "eth0", "netns", label)
        _do("ip", "link", "set", label, "master", SWITCH, "up")
        _do("ip", "-n", label, "address", "add", f"{host}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _do("ip", "-n", label, "link", "set", device, "up")


def _do(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=10)
