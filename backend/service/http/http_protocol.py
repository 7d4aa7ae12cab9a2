"""HTTP/1.1 as uvicorn speaks it, for clients that may be slow only within limits.

What comes before the first request is complete is the listener's concern (`backend.live.transport.listener`), the body of a
request that of `backend.service.request_guard`. Left is the head of a later request on the same connection.
"""

from __future__ import annotations

import asyncio
from email.utils import formatdate

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 5.0
"""From the first byte of a request to the end of its head."""


class BoundedProtocol(H11Protocol):
    """Hangs up on clients that do not finish the head of a request in time. Dates its answers, as uvicorn's server would."""

    _late: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        self.server_state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        super().data_received(data)
        begun = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if begun and self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.transport.abort)
        elif not begun:
            self._forget()

    def connection_lost(self, problem: Exception | None) -> None:
        self._forget()
        super().connection_lost(problem)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
