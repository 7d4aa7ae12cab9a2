"""What the prompt shows above what is typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Suggestion(NamedTuple):
    """What a line may become: the whole `line`, how it is listed, and what that means."""

    line: str
    shown: str
    meaning: str = ""


class Suggestions(NamedTuple):
    """What a line may become, the likeliest first, and what it would do as it is."""

    candidates: Sequence[Suggestion]
    effect: str
