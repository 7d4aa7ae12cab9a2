"""Runs `kubectl`: one call to its end, a process that goes on and writes lines, or one that follows the log of a pod.

What it cannot do is said in its own words. A log is read on when ``kubectl logs --follow`` ends, as it does with a container.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress

from quarterdeck.backend.clusters.kubernetes.service_url import BadService

PROGRAM_VARIABLE = "KUBECTL"
CALL_SECONDS = 20.0
READ_AT_ONCE = 1 << 16
END_WITH_US = ("setpriv", "--pdeathsig", "TERM", "--")
"""Before a command, on Linux: it ends with the program also where that is killed."""
DENIED = re.compile(r"\((Forbidden|Unauthorized)\)|must be logged in|provide credentials")
NOT_FOUND = re.compile(r"\(NotFound\)")
NOISE = re.compile(r"^[EWI]\d{4} .*?\] ?|^(error|Error from server(?: \(\w+\))?): ", re.MULTILINE)


class KubectlFailed(Exception):
    """`kubectl` ended with an error, which is the message. `denied`: we may not; `not_found`: the named object is missing."""

    def __init__(self, said: str) -> None:
        lines = [line.strip() for line in NOISE.sub("", said).splitlines() if line.strip()]
        super().__init__(lines[-1] if lines else "kubectl ended without a word")
        self.denied = DENIED.search(said) is not None
        self.not_found = NOT_FOUND.search(said) is not None


class Kubectl:
    """The program, with the context that was current at the beginning: another one chosen meanwhile is for other work."""

    def __init__(self) -> None:
        """Find the program, or the one that `KUBECTL` names. Raises `BadService` when it is missing."""
        if (program := shutil.which(os.environ.get(PROGRAM_VARIABLE, "kubectl"))) is None:
            raise BadService("kubectl is not installed here; install it and log in with it, for k8s:// uses its login")
        self._words = [program]
        self._tied = END_WITH_US if shutil.which(END_WITH_US[0]) else ()
        self._running: set[RunningKubectl] = set()
        with suppress(KubectlFailed):  # without one, as in a pod, kubectl knows where it is
            self._words.append(f"--context={self.call('config', 'current-context').strip()}")

    def call(self, *words: str) -> str:
        """Return the output of a call. Raises `KubectlFailed`."""
        try:
            done = subprocess.run(
                [*self._words, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=CALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as silent:
            raise KubectlFailed(f"kubectl has not answered for {CALL_SECONDS:g} s") from silent
        if done.returncode:
            raise KubectlFailed(done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="replace")

    async def ask(self, *words: str) -> str:
        """Return the output of a call, as `call` does, beside other work."""
        process = await self.start(*words)
        try:
            async with asyncio.timeout(CALL_SECONDS):
                written = [line async for line in process.lines()]
                failed = await process.failure()
        except TimeoutError as silent:
            raise KubectlFailed(f"kubectl has not answered for {CALL_SECONDS:g} s") from silent
        finally:
            await process.end()
        if process.code:
            raise failed
        return "\n".join(written)

    async def start(self, *words: str) -> RunningKubectl:
        """Start a process that goes on. Raises `KubectlFailed`."""
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *self._tied,
                *self._words,
                *words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,  # Ctrl-C is for us, who end it
            )
        )
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:  # one that is half started would be left behind
            with suppress(OSError):
                await RunningKubectl(await starting).end()
            raise
        except OSError as problem:
            raise KubectlFailed(f"cannot be started: {problem}") from problem
        self._running = {known for known in self._running if not known.is_over}
        self._running.add(running := RunningKubectl(process))
        return running

    async def close(self) -> None:
        for running in self._running:
            running.stop()
        await asyncio.gather(*(running.end() for running in self._running))


class RunningKubectl:
    """A process. `said` is its latest line on stderr."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said = ""
        self.spoke = asyncio.Event()
        """Set when it says something, or is to say nothing more."""
        self._tasks = [asyncio.create_task(self._listen())]

    @property
    def code(self) -> int | None:
        """Return how it has ended; None while it runs."""
        return self._process.returncode

    async def lines(self) -> AsyncIterator[str]:
        """Yield the output, line by line, to its end."""
        assert self._process.stdout is not None
        rest = b""
        while data := await self._process.stdout.read(READ_AT_ONCE):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")
        if rest:
            yield rest.decode(errors="replace")

    @property
    def is_over(self) -> bool:
        """Return whether it has ended and all that it wrote is read."""
        return self.code is not None and all(task.done() for task in self._tasks)

    def read_on(self) -> None:
        """Read the rest of the output, so that the process never waits for a reader."""
        self._tasks.append(asyncio.create_task(self._drain()))

    async def failure(self) -> KubectlFailed:
        """Return why it has ended, when it has."""
        await self._process.wait()
        await self._tasks[0]
        return KubectlFailed(self.said)

    def forget(self) -> None:
        """Forget the words of the process, so that `spoke` waits for new ones."""
        self.said = ""
        if self.code is None:
            self.spoke.clear()

    def stop(self) -> None:
        if self.code is None:
            with suppress(ProcessLookupError):  # `terminate` would take the end of one that has just ended from asyncio
                os.kill(self._process.pid, signal.SIGTERM)

    async def end(self) -> None:
        """End the process, and read the last that it writes."""
        self.stop()
        await self._process.wait()
        if len(self._tasks) == 1:
            self.read_on()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _drain(self) -> None:
        async for _ in self.lines():
            pass

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(READ_AT_ONCE):
            self.said = (self.said + data.decode(errors="replace"))[-READ_AT_ONCE:]
            self.spoke.set()
        self.spoke.set()


HISTORY_LINES = 1_000
"""The number of earlier log lines of a pod that are read, to learn its member."""
FIRST_LINE_SECONDS = 3.0
QUIET_SECONDS = 0.5
"""The time without a line after which the earlier lines count as read."""
AGAIN_SECONDS = 2.0


class PodLog:
    """The lines of a pod as a `GrowingLog`, each once: the time that the container's runtime gives it shows which it was."""

    def __init__(self, kubectl: Kubectl, namespace: str, pod: str) -> None:
        self._kubectl = kubectl
        self._words = (f"--namespace={namespace}", "logs", "--follow", "--timestamps", f"pod/{pod}")
        self._lines: deque[str] = deque()
        self._latest = self._latest_key = ""
        self._quiet_until = time.monotonic() + FIRST_LINE_SECONDS
        self.problem: KubectlFailed | None = None
        """Why it cannot be read, when we may not."""
        self.may_end = False
        """Whether its pod is not behind the service any more: then the end of the log is its last one."""

    @property
    def has_begun(self) -> bool:
        return not self._lines and time.monotonic() >= self._quiet_until

    def lines(self) -> list[str]:
        return [self._lines.popleft() for _ in range(len(self._lines))]

    async def follow(self) -> None:
        """Read until cancelled, or until it shows that we may not."""
        while self.problem is None:
            since = f"--since-time={self._latest}" if self._latest else f"--tail={HISTORY_LINES}"
            try:
                failed = await self._read(since)
            except KubectlFailed as unstarted:
                failed = unstarted
            self.problem = failed if failed.denied else None
            if self.may_end:
                return
            await asyncio.sleep(AGAIN_SECONDS)

    async def _read(self, since: str) -> KubectlFailed:
        process = await self._kubectl.start(*self._words, since)
        try:
            async for line in process.lines():
                self._add(line)
            return await process.failure()
        finally:
            await process.end()

    def _add(self, line: str) -> None:
        stamp, _, text = line.partition(" ")
        seconds, _, fraction = stamp.rstrip("Z").partition(".")
        key = f"{seconds}.{fraction:0<9}"
        if key > self._latest_key:  # read again from the second in which it ended
            self._latest, self._latest_key = stamp, key
            self._quiet_until = max(self._quiet_until - FIRST_LINE_SECONDS, time.monotonic() + QUIET_SECONDS)
            self._lines.append(text)
