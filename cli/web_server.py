"""The console in a browser: each page gets a console of its own, a process whose terminal is the page (textual-serve)."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import aiohttp_jinja2
import jinja2
from aiohttp import web
from textual_serve import server
from textual_serve.app_service import AppService
from textual_serve.server import Server

from quarterdeck.cli.output import say, write_line

PAGES = Path(__file__).parent / "web_pages"

MOST_SESSIONS = 4
"""Consoles at a time; each is a process, and may have a cluster of its own."""

SECONDS_TO_END = 5.0
"""For consoles to end when the server does."""


class ConsoleProcess(AppService):
    """The process of one page. It is over when its end is waited for: of one that ends after its loop, asyncio would complain."""

    async def stop(self) -> None:
        """Ask it to quit, and wait until it has; one that does not is killed."""
        try:
            await super().stop()
        finally:
            process = self._process
            if process is not None and process.returncode is None:
                try:
                    async with asyncio.timeout(SECONDS_TO_END):
                        await process.wait()
                except TimeoutError:
                    process.kill()
                    await process.wait()


vars(server)["AppService"] = ConsoleProcess  # there is no other place to say which


class ConsoleServer(Server):
    """Serves one command on one bound port, to whom the gate lets in."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        self.access_control = AccessControl(port)
        super().__init__(
            shlex.join(command), host=HOST, port=port, title="Quarterdeck", public_url=self.access_control.origin,
            templates_path=PAGES,
        )  # fmt: skip
        self._sessions = 0

    def initialize_logging(self) -> None:
        logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)

    async def on_startup(self, app: web.Application) -> None:
        """Nothing: the caller prints the URL."""

    async def make_app(self) -> web.Application:
        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.access_control.guard(request, handler)

        app = web.Application(middlewares=[guarded])
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(PAGES), autoescape=True)
        app.add_routes(
            [
                web.get("/", self.handle_index, name="index"),
                web.get(WEBSOCKET_PATH, self.handle_websocket, name="websocket"),
                web.get("/download/{key}", self.handle_download, name="download"),
                web.static("/static", self.statics_path, name="static"),
                web.static("/pages", PAGES, name="pages"),
            ]
        )
        app.on_response_prepare.append(self._add_headers)
        return app

    async def handle_websocket(self, request: web.Request) -> web.StreamResponse:  # type: ignore[override]
        if self._sessions >= MOST_SESSIONS:
            return web.Response(status=503, text=f"503: {MOST_SESSIONS} consoles are open already; close one\n")
        self._sessions += 1
        try:
            return await super().handle_websocket(request)
        finally:
            self._sessions -= 1

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self.access_control.headers())


def serve_console(command: Sequence[str], port: int) -> None:
    """Serve `command` on `port` of this machine, 0 for any that is free, until interrupted. Raises OSError when it is taken."""
    with socket.create_server((HOST, port)) as listening:
        console_server = ConsoleServer(command, listening.getsockname()[1])
        console_server.initialize_logging()
        write_line(console_server.access_control.first_url)
        say("open this URL in a browser on this machine; it works once. Interrupt with ctrl+c.")
        web.run_app(console_server.make_app(), sock=listening, print=lambda *_: None, shutdown_timeout=SECONDS_TO_END)


HOST = "127.0.0.1"
"""No client beyond this machine is served; there is no option for it."""

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
        self._cookie = f"quarterdeck-{port}"  # cookies do not distinguish ports
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
        if not _same(request.cookies.get(self._cookie, ""), self._session):
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


def _same(given: str, secret: str) -> bool:
    """Whether they are the same, in a time that reveals nothing. What is given may be no text at all."""
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def refusal(why: str) -> web.Response:
    return web.Response(status=403, text=f"403: {why}\n")
