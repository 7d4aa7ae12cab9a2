"""What a filter's text selects among texts: those that hold it, that do not, or that a regular expression finds."""

from __future__ import annotations

import re
from collections.abc import Callable


def text_filter(text: str) -> Callable[[str], bool]:
    """Return the test for ``words``, ``!words`` or ``/expression/``, also ``!/expression/``. Case does not matter.

    An expression that is not closed yet, or that cannot be read, is looked for as it stands: the user is still typing.
    """
    negated = text.startswith("!") and len(text) > 1
    wanted = text[1:] if negated else text
    finds = _expression(wanted) or _holding(wanted)
    return (lambda text: not finds(text)) if negated else finds


def _expression(wanted: str) -> Callable[[str], bool] | None:
    if len(wanted) < 3 or not (wanted.startswith("/") and wanted.endswith("/")):
        return None
    try:
        found = re.compile(wanted[1:-1], re.IGNORECASE)
    except re.error:
        return None
    return lambda text: found.search(text) is not None


def _holding(wanted: str) -> Callable[[str], bool]:
    folded = wanted.casefold()
    return lambda text: folded in text.casefold()
