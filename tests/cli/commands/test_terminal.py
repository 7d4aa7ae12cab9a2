"""The console in a real terminal: it opens, it quits, and it says where the journal is."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

OPENS_WITHIN_SECONDS = 60


def read_until(terminal: int, wanted: bytes, timeout_seconds: float) -> bytes:
    """What the terminal shows until `wanted` is part of it, or all of it when the other side hangs up."""
    shown, until = b"", time.monotonic() + timeout_seconds
    while wanted not in shown and time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                shown += os.read(terminal, 65_536)
            except OSError:  # Linux says so when the last process has closed the terminal
                break
    return shown


def test_console_opens_and_quits(tmp_path: Path) -> None:
    terminal, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-c", "from quarterdeck.cli.main import run; run()", "console", "--members", "2"],
        stdin=side,
        stdout=side,
        stderr=side,
        env={**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(tmp_path)},
        start_new_session=True,
    )
    os.close(side)
    try:
        shown = read_until(terminal, b"byzantium", OPENS_WITHIN_SECONDS)
        assert b"byzantium" in shown
        os.write(terminal, b"q")
        rest = read_until(terminal, b"quarterdeck audit", OPENS_WITHIN_SECONDS)
        assert b"quarterdeck audit" in rest
        assert child.wait(30) == 0
    finally:
        child.kill()
        child.wait()
        os.close(terminal)
