"""How fast many entries get into a map of members that run elsewhere: ``quarterdeck map load`` over HTTP.

Three member processes on this machine. Run as ``python -m tests.bench.remote_load [ENTRIES]``; prints one JSON object. At least
5,000 entries a second are wanted.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

PORTS = (28_801, 28_802, 28_803)
ENTRIES = 50_000
READY_SECONDS = 30.0
WANTED = 5_000
RUN = (sys.executable, "-c", "from quarterdeck.cli.main import run; run()")


def start(port: int, ready: Path) -> subprocess.Popen[bytes]:
    """A member process; `ready` is there when it has joined."""
    joins = [word for port in PORTS for word in ("--join", f"127.0.0.1:{port}")]
    words = ("member", "start", "--name", f"n{port - PORTS[0] + 1}", "--port", str(port), "--ready-file", str(ready))
    return subprocess.Popen((*RUN, *words, "--preset", "training", *joins), stderr=subprocess.DEVNULL)


def load(entries: int) -> dict[str, object]:
    """What the command says of it."""
    words = ("map", "load", "--connect", f"http://127.0.0.1:{PORTS[0]}", "--keys", str(entries), "-o", "json")
    done = subprocess.run((*RUN, *words), stdout=subprocess.PIPE, check=True, timeout=600)
    told: dict[str, object] = json.loads(done.stdout)
    return told


def main(entries: int) -> None:
    """Start the members, load, and print the figures."""
    with TemporaryDirectory() as folder:
        ready = [Path(folder) / str(port) for port in PORTS]
        members = [start(port, file) for port, file in zip(PORTS, ready, strict=True)]
        try:
            limit = time.monotonic() + READY_SECONDS
            while not all(file.exists() for file in ready):
                if time.monotonic() > limit:
                    raise SystemExit("the members are not ready in time")
                time.sleep(0.1)
            told = load(entries)
        finally:
            for member in members:
                member.terminate()
            for member in members:
                member.wait(30)
    figures = {
        "entries": told["entries"],
        "value_bytes": told["value_bytes"],
        "entries_per_second": told["entries_per_second"],
        "wanted": WANTED,
        "problem": told["problem"],
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ENTRIES)
