"""A member that says what a real one has said, byte for byte but for the correlations, which are those of the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from struct import Struct as Layout

from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.hazelcast.wire.codec.answer_codec import decode_message
from quarterdeck.backend.hazelcast.wire.codec.frames import (
    IS_EVENT,
    PREAMBLE,
    Frame,
    FrameLimits,
    Frames,
    MessageReader,
    encode_frames,
)
from quarterdeck.backend.hazelcast.wire.codec.request_codec import number_of
from quarterdeck.backend.hazelcast.wire.messages import Authenticated, ErrorAnswer
from quarterdeck.backend.hazelcast.wire.requests import AddClusterViewListener
from tests.hazelcast.wire.member_codec import decode_request

HEAD = Layout("<iq")
"""Type and correlation."""


class ReplayedMember:
    """It answers each request with the recorded answers to such requests, one after the other, and keeps to the last one."""

    def __init__(self, address: Address, recorded: Sequence[Frames]) -> None:
        self.address = address
        self.listener: int | None = None
        """The correlation of whoever listens to views."""
        self._events = [frames for frames in recorded if frames[0].flags & IS_EVENT]
        self._answers: dict[int, list[Frames]] = {}
        for frames in recorded:
            if not frames[0].flags & IS_EVENT and _is_good(frames):
                self._answers.setdefault(HEAD.unpack_from(frames[0].payload)[0], []).append(frames)
        self._writer: asyncio.StreamWriter | None = None
        """To that listener, whoever else may connect."""
        self._server: asyncio.Server | None = None

    async def start(self) -> Address:
        """Listen; returns where."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return make_address("127.0.0.1", self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Be gone."""
        assert self._server is not None
        self._server.close()
        if self._writer is not None:
            self._writer.transport.abort()
        await asyncio.sleep(0)

    def play(self) -> None:
        """Say all that was said unasked."""
        assert self._writer is not None
        assert self.listener is not None
        for frames in self._events:
            self._writer.write(_with_correlation(frames, self.listener))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readexactly(len(PREAMBLE))
            messages = MessageReader(FrameLimits())
            while data := await reader.read(65536):
                for frames in messages.feed(data):
                    self._take(writer, frames)
        writer.close()

    def _take(self, writer: asyncio.StreamWriter, frames: Frames) -> None:
        correlation, request = decode_request(frames)
        assert not isinstance(request, int)
        answers = self._answers.get(number_of(request) + 1, [])
        if answers:
            writer.write(_with_correlation(answers[0], correlation))
            del answers[: len(answers) > 1]
        if isinstance(request, AddClusterViewListener):
            self.listener, self._writer = correlation, writer


def _is_good(frames: Frames) -> bool:
    message = decode_message(frames)[1]
    return not isinstance(message, ErrorAnswer) and not (
        isinstance(message, Authenticated) and message.member_uuid is None
    )


def _with_correlation(frames: Frames, correlation: int) -> bytes:
    first = frames[0]
    number = HEAD.unpack_from(first.payload)[0]
    return encode_frames([Frame(first.flags, HEAD.pack(number, correlation) + first.payload[HEAD.size :]), *frames[1:]])
