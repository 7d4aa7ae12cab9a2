"""The console in a browser: each page gets a console of its own, a process whose terminal is the page (textual-serve)."""

from __future__ import annotations

import asyncio
import logging
import shlex
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import aiohttp_jinja2
import jinja2
from aiohttp import web
from textual_serve import server
from textual_serve.app_service import AppService
from textual_serve.server import Server

from quarterdeck.cli.commands.web.access_control import HOST, WEBSOCKET_PATH, AccessControl, Handler
from quarterdeck.cli.output import say

PAGES = Path(__file__).parent / "web_pages"

MOST_SESSIONS = 4
"""Consoles at a time; each is a process, and may have a cluster of its own."""

SECONDS_TO_END = 5.0
"""For consoles to end when the server does."""


class ConsoleProcess(AppService):
    """The process of one page. It is over when its end is waited for: of one that ends after its loop, asyncio would complain."""

    async def stop(self) -> None:
        """Tell it to quit, and wait until it has; one that does not is killed."""
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
        """Nothing: who starts the server tells the URL."""

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
        print(console_server.access_control.first_url, flush=True)
        say("open this URL in a browser on this machine; it works once. Interrupt with ctrl+c.")
        web.run_app(console_server.make_app(), sock=listening, print=lambda *_: None, shutdown_timeout=SECONDS_TO_END)
