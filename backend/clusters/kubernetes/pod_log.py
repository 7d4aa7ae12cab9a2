"""The log of one pod, read by ``kubectl logs --follow``, and read on when that ends, as it does with a container."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from quarterdeck.backend.clusters.kubernetes.kubectl import Kubectl, KubectlFailed

HISTORY_LINES = 1_000
"""So many lines of what a pod has logged before are read, to learn who speaks there."""
FIRST_LINE_SECONDS = 3.0
QUIET_SECONDS = 0.5
"""After so long without a line, what was written before is read."""
AGAIN_SECONDS = 2.0


class PodLog:
    """The lines of a pod as a `GrowingLog`, each once: the time that the container's runtime gives it shows which it was."""

    def __init__(self, kubectl: Kubectl, namespace: str, pod: str) -> None:
        self._kubectl = kubectl
        self._words = (f"--namespace={namespace}", "logs", "--follow", "--timestamps", f"pod/{pod}")
        self._lines: deque[str] = deque()
        self._latest = ""
        self._latest_key = ""
        self._quiet_until = time.monotonic() + FIRST_LINE_SECONDS
        self.problem: KubectlFailed | None = None
        """Why it cannot be read, when we may not."""
        self.may_end = False
        """Whether its pod is not behind the service any more: then the end of the log is its last one."""

    @property
    def has_begun(self) -> bool:
        """Return whether what was written before is on its way no more."""
        return not self._lines and time.monotonic() >= self._quiet_until

    def lines(self) -> list[str]:
        """Return the lines that came since the last call."""
        return [self._lines.popleft() for _ in range(len(self._lines))]

    def close(self) -> None:
        """Nothing is to be done: who follows it ends it."""

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
