"""The shares of one search: one in this process, or each in a process of its own.

Processes know nothing of one another. This one passes on what each has for the others, in their order, so that a search with
so many processes is the same each time.
"""

from __future__ import annotations

import signal
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Literal, Protocol

from quarterdeck.backend.simulation.model_checking.share import ShareReport, ShareSettings, StateShare

ShareWord = Literal["begin", "go_deeper", "look", "leave_last_alone", "write", "read"]
"""The calls to all shares of a search: methods of `StateShare`."""


class ShareProcessPool(Protocol):
    """All shares of a search."""

    def ask(self, word: ShareWord, *arguments: Any) -> list[ShareReport]:
        """Let every share do this, and return how far each has come. Before they `write`, nothing may be on its way."""

    def close(self) -> None: ...


class OwnShare:
    """All states in this process."""

    def __init__(self, settings: ShareSettings) -> None:
        self._share = StateShare(settings, 0)
        self.close = self._share.close

    def ask(self, word: ShareWord, *arguments: Any) -> list[ShareReport]:
        getattr(self._share, word)(*arguments)
        return [self._share.report()]


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

    def ask(self, word: ShareWord, *arguments: Any) -> list[ShareReport]:
        try:
            if word == "look":
                return self._look(*arguments)
            for connection in self._connections:
                connection.send((word, arguments))
            return [report for report, _, _ in self._answers()]
        except (EOFError, ConnectionError):
            raise RuntimeError("a process of the search has ended; it has said why") from None

    def _look(self, most: int) -> list[ShareReport]:
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

    def close(self) -> None:
        for connection, process in zip(self._connections, self._processes, strict=True):
            connection.close()
            process.join()

    def _answers(self) -> list[tuple[ShareReport, bytes, list[bytes]]]:
        return [connection.recv() for connection in self._connections]


def _serve(settings: ShareSettings, place: int, connection: Connection) -> None:
    share = StateShare(settings, place)

    def look(arriving: list[tuple[bytes, bytes]], most: int) -> None:
        for news, states in arriving:
            share.learn(news)
            if states:
                share.receive(states)
        share.look(most)

    try:
        while True:
            word, arguments = connection.recv()
            is_look = word == "look"
            (look if is_look else getattr(share, word))(*arguments)
            connection.send((share.report(), share.news() if is_look else b"", share.outgoing() if is_look else []))
    except (EOFError, BrokenPipeError):
        share.close()
