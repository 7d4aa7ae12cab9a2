"""The process behind a page ends before its server does."""

from __future__ import annotations

from textual_serve.download_manager import DownloadManager

from quarterdeck.cli.web_server import ConsoleProcess

SLOW_TO_END = "printf '__GANGLION__\\n'; sleep 0.1; exec >&- 2>&-; sleep 0.3"


async def nothing(*_: object) -> None:
    """Nobody looks at the page."""


async def test_a_process_is_over_when_it_was_stopped() -> None:
    process = ConsoleProcess(
        SLOW_TO_END, write_bytes=nothing, write_str=nothing, close=nothing, download_manager=DownloadManager()
    )
    await process.start(80, 24)
    await process.stop()
    assert process._process is not None and process._process.returncode == 0
