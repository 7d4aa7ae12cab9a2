"""Files with certificates and secrets, which change while a member runs: they are looked at when one is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

LOOK_SECONDS = 2.0
"""How often, at most, files are looked at; it is done when a connection begins, or a client presents a secret."""


class FileWatch:
    """Notices which of some files change."""

    def __init__(self, paths: Iterable[Path], seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._stamps = {path: _stamp_of(path) for path in paths}
        self._looked_at = seconds()

    def changed(self) -> dict[Path, bool]:
        """Return the files that have changed since the last look, each with whether it still exists."""
        now = self._seconds()
        if now - self._looked_at < LOOK_SECONDS:
            return {}
        before, self._stamps, self._looked_at = self._stamps, {path: _stamp_of(path) for path in self._stamps}, now
        return {path: stamp is not None for path, stamp in self._stamps.items() if stamp != before[path]}


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    """Return the state of a file, to be compared; None when the file is missing, or cannot be looked at."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
