"""The shares of one search: one in this process, or each in a process of its own.

Processes know nothing of one another. This one passes on what each has for the others, in their order, so that a search with
so many processes is the same each time.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from quarterdeck.backend.simulation.model_checking.share import ShareReport, ShareSettings, StateShare


class ShareProcessPool(Protocol):
    """All shares of a search."""

    def begin(self) -> list[ShareReport]:
        """Begin with the first state of the model."""
        ...

    def go_deeper(self) -> list[ShareReport]: ...

    def look(self, most: int) -> list[ShareReport]:
        """Look at so many states each, and pass on what belongs to others."""
        ...

    def leave_last_alone(self) -> list[ShareReport]: ...

    def write(self, folder: Path) -> None:
        """Write everything into `folder`. Nothing may be on its way."""
        ...

    def read(self, folder: Path) -> list[ShareReport]:
        """Go on from what stands in `folder`."""
        ...

    def close(self) -> None: ...


class OwnShare:
    """All states in this process."""

    def __init__(self, settings: ShareSettings) -> None:
        self._share = StateShare(settings, 0)

    def begin(self) -> list[ShareReport]:
        self._share.begin()
        return [self._share.report()]

    def go_deeper(self) -> list[ShareReport]:
        self._share.go_deeper()
        return [self._share.report()]

    def look(self, most: int) -> list[ShareReport]:
        self._share.look(most)
        return [self._share.report()]

    def leave_last_alone(self) -> list[ShareReport]:
        self._share.leave_last_alone()
        return [self._share.report()]

    def write(self, folder: Path) -> None:
        self._share.write(folder)

    def read(self, folder: Path) -> list[ShareReport]:
        self._share.read(folder)
        return [self._share.report()]

    def close(self) -> None:
        self._share.close()


class ShareProcesses:
    """A process for each share."""

    def __init__(self, settings: ShareSettings) -> None:
        context = get_context("spawn")
        self._connections: list[Connection] = []
        self._processes = []
        # Ctrl-C is for this process, which ends the others: they inherit that it is blocked.
        blocked_before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for place in range(settings.shares):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(settings, place, theirs), daemon=True)
                process.start()
                theirs.close()
                self._connections.append(ours)
                self._processes.append(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked_before)
        self._arriving: list[list[tuple[bytes, bytes]]] = [[] for _ in self._processes]

    def begin(self) -> list[ShareReport]:
        return self._all("begin")

    def go_deeper(self) -> list[ShareReport]:
        return self._all("go_deeper")

    def look(self, most: int) -> list[ShareReport]:
        for connection, arriving in zip(self._connections, self._arriving, strict=True):
            connection.send(("look", (arriving, most)))
        self._arriving = [[] for _ in self._processes]
        reports = []
        for place, (report, news, outgoing) in enumerate(self._answers()):
            reports.append(report)
            for other, arriving in enumerate(self._arriving):
                if other != place and (news or outgoing[other]):
                    arriving.append((news, outgoing[other]))
        return reports

    def leave_last_alone(self) -> list[ShareReport]:
        return self._all("leave_last_alone")

    def write(self, folder: Path) -> None:
        self._all("write", folder)

    def read(self, folder: Path) -> list[ShareReport]:
        return self._all("read", folder)

    def close(self) -> None:
        for connection, process in zip(self._connections, self._processes, strict=True):
            connection.close()
            process.join()

    def _all(self, word: str, *arguments: Any) -> list[ShareReport]:
        for connection in self._connections:
            connection.send((word, arguments))
        return [report for report, _, _ in self._answers()]

    def _answers(self) -> list[tuple[ShareReport, bytes, list[bytes]]]:
        try:
            return [connection.recv() for connection in self._connections]
        except EOFError:
            raise RuntimeError("a process of the search has ended; it has said why") from None


def _serve(settings: ShareSettings, place: int, connection: Connection) -> None:
    """Do what the search asks for, until it hangs up."""
    share = StateShare(settings, place)

    def look(arriving: list[tuple[bytes, bytes]], most: int) -> None:
        for news, states in arriving:
            share.learn(news)
            if states:
                share.receive(states)
        share.look(most)

    calls: dict[str, Callable[..., None]] = {
        **{"begin": share.begin, "go_deeper": share.go_deeper, "look": look},
        **{"leave_last_alone": share.leave_last_alone, "write": share.write, "read": share.read},
    }
    try:
        while True:
            word, arguments = connection.recv()
            calls[word](*arguments)
            is_look = word == "look"
            connection.send((share.report(), share.news() if is_look else b"", share.outgoing() if is_look else []))
    except (EOFError, BrokenPipeError):
        share.close()
