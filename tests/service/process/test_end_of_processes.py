"""A member's process ends when it has nothing left to do, or nobody is left who could stop it, whatever it waits for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.cluster.local_clusters import MEMBER_MODULE, ROOT
from quarterdeck.backend.live.cluster.pipe_messages import StartIncarnation, line_of
from quarterdeck.backend.live.member.member_host import RunClock
from quarterdeck.backend.live.transport.limits import DEFAULT_TIMEOUTS
from tests.service.member_processes import BASE_PORT, MemberProcess
from tests.service.member_processes import end as end_member
from tests.waiting import wait_until

NOBODY_ANSWERS = """
import socket, time
resolve = socket.getaddrinfo
def getaddrinfo(host, *arguments, **named):
    if str(host).endswith(".invalid"):
        print("asked for", host, flush=True)
        time.sleep(60)
    return resolve(host, *arguments, **named)
socket.getaddrinfo = getaddrinfo
"""
"""A machine whose servers for names do not answer, as a module that every interpreter imports at its start."""

SOON_SECONDS = 15.0
"""Far below the minute for which the lookup goes on, and room for a busy machine."""

PARENT = """
import ctypes, os, signal, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # who is orphaned becomes a child of this process, as of the first one of a container
parent = os.fork()
if parent == 0:
    with open(sys.argv[1], "rb") as line:
        first = line.read()
    pipe = subprocess.PIPE
    child = subprocess.Popen(sys.argv[2:], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, process_group=0)
    child.stdin.write(first)
    child.stdin.flush()
    child.stdout.readline()
    os.kill(child.pid, signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)
    print(child.pid, flush=True)
    time.sleep(60)
print(parent, flush=True)
os.waitpid(parent, 0)
print("orphaned", flush=True)
pid, status = os.wait()
print("ended", pid, flush=True)
"""


@pytest.fixture
def unanswered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(NOBODY_ANSWERS)
    monkeypatch.setitem(os.environ, "PYTHONPATH", os.pathsep.join((str(tmp_path), ROOT)))


def first_line(*join_list: Address, port: int = BASE_PORT + 40) -> bytes:
    here = make_address("127.0.0.1", port)
    settings = Settings.of(preset="training")
    configuration = MemberConfiguration("run", "n1", here, (here, *join_list), settings)
    begin = StartIncarnation(configuration, RunClock.started_now(), {"n1": here}, (), str(Random(1)), DEFAULT_TIMEOUTS)
    return line_of(begin)


def test_a_local_member_ends_with_stdin_while_a_name_is_looked_up(unanswered: None) -> None:
    command = [sys.executable, "-P", "-m", MEMBER_MODULE]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(first_line(Address("db9.invalid:5701")))
        process.stdin.flush()
        try:
            assert process.stdout.readline()
            assert b"asked for db9.invalid" in process.stderr.readline()
            process.stdin.close()
            began = time.monotonic()
            process.wait(SOON_SECONDS)
            assert time.monotonic() - began < SOON_SECONDS
        finally:
            process.kill()


def test_a_member_stops_while_a_name_is_looked_up(unanswered: None, tmp_path: Path) -> None:
    here = f"--join=127.0.0.1:{BASE_PORT}"
    member = MemberProcess(tmp_path, "n1", here, "--join=db9.invalid:5701")
    try:
        member.until(lambda: "asked for db9.invalid" in member.log)
        member.signal(signal.SIGTERM)
        assert member.process.wait(SOON_SECONDS) == 0
    finally:
        end_member(member)


@pytest.mark.skipif(sys.platform != "linux", reason="only there the system ends the children of who has died")
def test_a_member_that_stands_still_ends_with_its_parent(tmp_path: Path) -> None:
    """Also where the one who inherits it belongs to the same session, as in a container: nobody wakes it there."""
    line = tmp_path / "begin"
    line.write_bytes(first_line())
    command = [sys.executable, "-c", PARENT, str(line), sys.executable, "-P", "-m", MEMBER_MODULE]
    environment = os.environ | {"PYTHONPATH": ROOT}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as heir:
        assert heir.stdout is not None
        parent, child = int(heir.stdout.readline()), int(heir.stdout.readline())
        try:
            os.kill(parent, signal.SIGKILL)
            assert heir.stdout.readline() == "orphaned\n"
            wait_until(lambda: heir.poll() is not None, "the member stands still for ever")
            assert heir.stdout.readline() == f"ended {child}\n"
        finally:
            for pid in (child, heir.pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
