"""Accepting connections when there are more of them than descriptors."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from typing import Any

import pytest

from quarterdeck.backend.live.transport import acceptor as acceptors
from quarterdeck.backend.live.transport.acceptor import PASSING, Acceptor
from tests.waiting import until


class Counting(asyncio.Protocol):
    made = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Counting.made += 1


async def accepting(problems: list[dict[str, Any]], rooms: list[int]) -> tuple[Acceptor, int]:
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    made = Acceptor(Counting, lambda: rooms.append(1), lambda first_words: b"refused: " + first_words)
    await made.listen("127.0.0.1", 0)
    return made, made._sockets[0].getsockname()[1]


class Starved:
    """A listening socket that finds no descriptor, as long as the one that is held back is held."""

    def __init__(self, listening: socket.socket, owner: Acceptor) -> None:
        self._listening, self._owner = listening, owner

    def accept(self) -> tuple[socket.socket, Any]:
        if self._owner._reserve is not None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return self._listening.accept()

    def fileno(self) -> int:
        return self._listening.fileno()

    def close(self) -> None:
        self._listening.close()


def test_who_cannot_be_accepted_learns_why_and_one_line_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    problems: list[dict[str, Any]] = []
    rooms: list[int] = []

    async def story() -> None:
        made, port = await accepting(problems, rooms)
        loop = asyncio.get_running_loop()
        loop.remove_reader(made._sockets[0])
        starved: Any = Starved(made._sockets[0], made)
        loop.add_reader(starved, made._accept, starved)
        for _ in range(30):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await asyncio.wait_for(reader.read(), 10) == b"refused: "
            writer.close()
        loop.remove_reader(starved)
        made.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    assert not problems and len(rooms) == 30
    assert [record.message.partition(":")[0] for record in caplog.records] == ["1 connections were refused"]


@pytest.mark.parametrize("number", sorted(PASSING))
def test_an_error_of_a_connection_that_was_to_be_accepted_is_no_error_of_the_listener(number: int) -> None:
    problems: list[dict[str, Any]] = []

    class Failing:
        def accept(self) -> tuple[socket.socket, Any]:
            raise OSError(number, os.strerror(number))

    async def story() -> None:
        made, _ = await accepting(problems, [])
        failing: Any = Failing()
        made._accept(failing)
        made.close()

    asyncio.run(story())
    assert not problems


def test_who_waits_is_accepted_when_there_are_descriptors_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptors, "PAUSE_SECONDS", 0.05)
    problems: list[dict[str, Any]] = []

    async def story() -> None:
        made, port = await accepting(problems, [])
        made._let_go()  # somebody else has it
        listening = made._sockets[0]
        made._refuse_one(listening, OSError(errno.EMFILE, "Too many open files"))
        before = Counting.made
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await until(lambda: Counting.made > before)
        writer.close()
        made.close()

    asyncio.run(story())
    assert not problems


async def test_a_port_that_is_taken_is_told_and_nothing_stays_open() -> None:
    first, port = await accepting([], [])
    second = Acceptor(Counting, lambda: None, bytes)
    with pytest.raises(OSError) as taken:
        await second.listen("127.0.0.1", port)
    assert taken.value.errno == errno.EADDRINUSE
    assert not second._sockets
    first.close()
