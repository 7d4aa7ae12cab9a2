"""What finds the episode of a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.open_episodes import OpenEpisodes

Rule = Callable[[OpenEpisodes, Record, Any], Episode | None]
"""The episode that a record belongs to; None for the one in which its cause is told, or what its member told last."""
