"""The console in a real terminal: it opens, it ends in every way there is, and it leaves the terminal as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.commands.terminal_screen import TerminalScreen

OPENS_WITHIN_SECONDS = 60

RUN = "from quarterdeck.cli.main import run; run()"

FAIL_SOON = """
from quarterdeck.app.console import Console
ticks, tick = [], Console._tick
def fail_soon(console):
    ticks.append(tick(console))
    if len(ticks) > 10:
        raise RuntimeError("on purpose")
Console._tick = fail_soon
"""

BOTH_RUN = b"2/2"
"""What the first line says of members when both run: they start after the first picture."""

WHOLE_PICTURE_SECONDS = 0.4
"""A terminal shows a picture piece by piece."""

LONG = pytest.mark.long

MODES_AT_FIRST = {"7": True, "25": True}
"""Line wrap, and the cursor in sight; all other modes are off."""


class Terminal:
    """One end of a terminal; the console has the other one."""

    def __init__(self, end: int, side: int, child: subprocess.Popen[bytes]) -> None:
        self.end, self.child = end, child
        self.shown = b""
        self._side = side
        self.settings_at_first = termios.tcgetattr(side)

    def read_until(self, wanted: bytes, timeout_seconds: float = OPENS_WITHIN_SECONDS) -> None:
        """Take in what the terminal shows until `wanted` is part of it, or the other side hangs up."""
        until = time.monotonic() + timeout_seconds
        while wanted not in self.shown and time.monotonic() < until:
            if select.select([self.end], [], [], 0.2)[0]:
                self.shown += os.read(self.end, 65_536)
            elif self.child.poll() is not None:
                break
        assert wanted in self.shown, self.shown[-2_000:]

    def assert_as_it_was(self) -> None:
        """All modes that the console has changed are what they were: those of escape sequences, and those of the system."""
        modes = dict(MODES_AT_FIRST)
        for number, switch in re.findall(rb"\x1b\[\?(\d+)([hl])", self.shown):
            modes[number.decode()] = switch == b"h"
        changed = {number for number, on in modes.items() if on != MODES_AT_FIRST.get(number, False)}
        assert not changed and b"\x1b[?1049h" in self.shown
        assert len(re.findall(rb"\x1b\[>\d+u", self.shown)) == self.shown.count(b"\x1b[<u")
        assert termios.tcgetattr(self._side) == self.settings_at_first

    def hang_up(self) -> None:
        """Somebody closes the window."""
        os.close(self._side)
        os.close(self.end)
        self._side = self.end = -1

    def close(self) -> None:
        self.child.kill()
        self.child.wait()
        for descriptor in (self.end, self._side):
            if descriptor >= 0:
                os.close(descriptor)


@contextmanager
def console(
    folder: Path, program: str = RUN, *options: str, shell: str = 'exec "$0" "$@"', size: tuple[int, int] = (40, 120)
) -> Iterator[Terminal]:
    """A console, by default with two members of its own, in a terminal of its own, as a shell starts it."""
    end, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    child = subprocess.Popen(
        ["/bin/sh", "-c", shell, sys.executable, "-c", program, "console", *(options or ("--members", "2"))],
        stdin=side,
        stdout=side,
        stderr=side,
        env={**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(folder)},
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    terminal = Terminal(end, side, child)
    try:
        yield terminal
    finally:
        terminal.close()


def assert_journal_sealed(folder: Path) -> None:
    """Nothing is left that a writer has not finished."""
    (journal,) = folder.rglob("run=*")
    assert list(journal.glob("*.jsonl")) and not list(journal.parent.glob("_open/*"))


def test_console_opens_and_quits_wherever_stderr_goes(tmp_path: Path) -> None:
    narration = tmp_path / "narration.txt"
    with console(tmp_path, shell=f'exec "$0" "$@" 2>{narration}') as terminal:
        terminal.read_until(BOTH_RUN)
        os.write(terminal.end, b"Qy")
        terminal.read_until(b"\x1b[?1049l")
        assert terminal.child.wait(30) == 0
        terminal.assert_as_it_was()
    told = narration.read_text()
    assert told.count("\n") == 2 and "\x1b" not in told and "quarterdeck audit" in told


@LONG
def test_it_stops_on_request_and_draws_its_screen_again(tmp_path: Path) -> None:
    with console(tmp_path) as terminal:
        terminal.read_until(BOTH_RUN)
        os.write(terminal.end, b"\x1a")
        os.waitid(os.P_PID, terminal.child.pid, os.WSTOPPED | os.WNOWAIT)
        terminal.read_until(b"\x1b[?1049l")
        terminal.shown = b""
        terminal.child.send_signal(signal.SIGCONT)
        terminal.read_until(b"\x1b[?1049h")
        terminal.read_until(BOTH_RUN)
        os.write(terminal.end, b"Qy")
        terminal.read_until(b"\x1b[?1049l")
        assert terminal.child.wait(30) == 0
        terminal.assert_as_it_was()


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=LONG), pytest.param(signal.SIGINT, marks=LONG)],
    ids=lambda one: one.name,
)
def test_a_signal_leaves_the_terminal_as_it_was(tmp_path: Path, number: signal.Signals) -> None:
    with console(tmp_path) as terminal:
        terminal.read_until(BOTH_RUN)
        terminal.child.send_signal(number)
        terminal.read_until(b"quarterdeck audit")
        assert terminal.child.wait(30) == 128 + number
        terminal.assert_as_it_was()
    assert_journal_sealed(tmp_path)


@LONG
def test_a_failure_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with console(tmp_path, FAIL_SOON + RUN) as terminal:
        terminal.read_until(b"on purpose")
        terminal.read_until(b"quarterdeck audit")
        assert terminal.child.wait(30) == 1
        terminal.assert_as_it_was()
    assert_journal_sealed(tmp_path)


@pytest.mark.parametrize(
    "shell",
    ['exec "$0" "$@"', pytest.param('trap "" HUP; exec "$0" "$@"', marks=LONG)],
    ids=["told", "not-told"],
)
def test_it_ends_with_its_terminal(tmp_path: Path, shell: str) -> None:
    """A shell that has gone before tells nobody."""
    with console(tmp_path, shell=shell) as terminal:
        terminal.read_until(BOTH_RUN)
        terminal.hang_up()
        assert terminal.child.wait(30) == 128 + signal.SIGHUP
    assert_journal_sealed(tmp_path)


def test_a_url_at_which_nobody_is_takes_one_line_and_no_screen(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with console(tmp_path, RUN, "--connect", url) as terminal:
        terminal.read_until(b"\n")
        assert terminal.child.wait(30) == 3
    assert terminal.shown.decode() == f"quarterdeck: {url}: connection refused: no process listens there\r\n"


class Stranger:
    """Somebody who has read nothing: looks at the screen until it says something, and presses a key that it names."""

    def __init__(self, terminal: Terminal, size: tuple[int, int]) -> None:
        self._terminal = terminal
        self._screen = TerminalScreen(*size)
        self._decoder = getincrementaldecoder("utf-8")()

    def see(self, *wanted: str, but: str = "\0") -> str:
        """Wait until the screen says one of these, and not `but`, and goes on saying so: half a picture is none."""
        until = time.monotonic() + OPENS_WITHIN_SECONDS
        seen, since = "", 0.0
        while time.monotonic() < until and self._terminal.child.poll() is None:
            text = self._screen.text
            found = "" if but in text else next((word for word in wanted if word in text), "")
            if not found or found != seen:
                seen, since = found, time.monotonic()
            elif time.monotonic() - since > WHOLE_PICTURE_SECONDS:
                return found
            if select.select([self._terminal.end], [], [], 0.1)[0]:
                self._screen.feed(self._decoder.decode(os.read(self._terminal.end, 65_536)))
        raise AssertionError(f"none of {wanted} on the screen:\n{self._screen.text}")

    def find(self, pattern: str) -> str:
        """What of the screen looks like this."""
        found = re.search(pattern, self._screen.text)
        assert found, self._screen.text
        return found[0]

    def press(self, keys: str) -> None:
        os.write(self._terminal.end, keys.encode())


def test_a_stranger_learns_cuts_asks_why_heals_and_leaves_by_what_the_screen_says(tmp_path: Path) -> None:
    """Each key is pressed because the screen names it."""
    size = (40, 130)
    with console(tmp_path, RUN, "--members", "3", size=size) as terminal:
        stranger = Stranger(terminal, size)
        see, press = stranger.see, stranger.press
        see("h heals")
        press("?")
        see("esc closes")
        press("\x1b")
        see("h heals")
        press("D")
        see("▸ cluster-states")
        press("j")
        see("▸ explicit-suspicion")
        press("j")
        see("▸ first-cluster")
        see("u simulated")
        press("u")
        while see("press a to c", "enter goes on") == "enter goes on":
            page = stranger.find(r"step \d+ of")
            press("\r")
            see("step ", but=page)
        see("press a to c")
        press("a")
        see("enter does it")
        press("\r")
        see("One admission, one version.")
        press("\x1b")
        see("Leave this demo")
        press("y")
        see("first-cluster", but="Leave this demo")
        press("1")
        see("c cut ")
        press("c")
        see("done: partition")
        see("claims the mastership", "removes byzantium")
        see("b because")
        press("b")
        see("causes, the nearest first")
        press("\x1b")
        see("q back", but="causes, the nearest first")
        press("1")
        see("h heal")
        press("h")
        see("done: heal")
        press("Q")
        see("n cancel")
        press("y")
        assert terminal.child.wait(30) == 0
