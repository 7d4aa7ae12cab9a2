"""`quarterdeck web` as people run it: a process of its own, and the URL that it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[4]
TIMEOUT_SECONDS = 30.0


class Served(NamedTuple):
    """A server that runs; `first_url` has the token."""

    process: subprocess.Popen[str]
    first_url: str

    @property
    def origin(self) -> str:
        parts = urlsplit(self.first_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def token(self) -> str:
        return urlsplit(self.first_url).query.removeprefix("token=")

    def consoles(self) -> list[int]:
        """The processes of the consoles that the server runs now."""
        return [child for child in _children(self.process.pid) for child in (child, *_children(child))]


@contextmanager
def serving(home: Path, *options: str) -> Iterator[Served]:
    """The server on a free port, with a home of its own; ended when the block is left."""
    environment = {
        **os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config"),
        "TERM": "dumb",
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", "from quarterdeck.cli.main import run; run()", "web", "--port", "0", *options],
        cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, process.stderr.read() if process.stderr else ""
        yield Served(process, url)
    finally:
        process.terminate()
        process.wait(TIMEOUT_SECONDS)


def _children(process_id: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended in the meantime
        if int(fields[1]) == process_id:
            found.append(int(stat.parent.name))
    return found
