"""Who may come in by the browser: who holds the one-time token, from this machine, on the page that was served here.

The token stands in the first URL. The first visit with it gets a cookie in its place, and the token is gone: a URL that is found
later in a history or a log opens nothing. All else needs the cookie; the WebSocket also needs its page to have come from here.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web

HOST = "127.0.0.1"
"""Nobody beyond this machine is served; there is no option for it."""

HTTP_PORT = 80

TOKEN = "token"
"""The parameter of the first URL."""

WEBSOCKET_PATH = "/ws"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AccessControl:
    """Guards one server on one port. For one person: a second one gets no cookie, as the token is gone."""

    def __init__(self, port: int) -> None:
        self._host = HOST if port == HTTP_PORT else f"{HOST}:{port}"  # as browsers write it
        self.origin = f"http://{self._host}"
        self._cookie = f"quarterdeck-{port}"  # cookies do not tell ports apart
        self._token: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)

    @property
    def first_url(self) -> str:
        """Where to go first. Opens the console once."""
        return f"{self.origin}/?{TOKEN}={self._token}"

    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Pass on requests that may come in, as a middleware, and answer all others with 403."""
        # A page elsewhere may have its name lead to this machine; it cannot change what the browser calls it.
        if request.headers.get("Host") != self._host:
            return refusal("this server answers only to its own address")
        if TOKEN in request.query:
            return self._exchange_token(request)
        if not self._is_known(request):
            return refusal("open the URL that `quarterdeck web` printed; it works once")
        # Browsers send cookies along with WebSockets of any page, and name the page in Origin.
        if request.path == WEBSOCKET_PATH and request.headers.get("Origin") != self.origin:
            return refusal("this page did not come from here")
        return await handler(request)

    def headers(self) -> dict[str, str]:
        """Return what every answer says to the browser: load nothing from elsewhere, show this in no frame, keep nothing."""
        websocket = self.origin.replace("http", "ws", 1)
        policy = (
            f"default-src 'none'; connect-src 'self' {websocket}; font-src 'self' data:; img-src 'self' data:; "
            "script-src 'self'; style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return {
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }

    def _exchange_token(self, request: web.Request) -> web.StreamResponse:
        given = request.query[TOKEN]
        if self._token is None or not _same(given, self._token):
            return refusal("this URL was used already, or is not the one that `quarterdeck web` printed; start it anew")
        self._token = None
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict", path="/")
        return answer

    def _is_known(self, request: web.Request) -> bool:
        given = request.cookies.get(self._cookie, "")
        return _same(given, self._session)


def _same(given: str, secret: str) -> bool:
    """Whether they are the same, in a time that tells nothing. What is given may be no text at all."""
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def refusal(why: str) -> web.Response:
    return web.Response(status=403, text=f"403: {why}\n")
