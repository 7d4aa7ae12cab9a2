"""What is said of a path at which there is nothing: the known path that is nearest to it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

from quarterdeck.backend.service.http.responses import Denied

LONGEST_PATH = 200
"""Characters of a path that are looked at."""

NEAR = 0.7
"""How alike two steps of a path are at least, of 1, for one to be taken for the other."""


def no_such_path(path: str, known: Iterable[str], reference: str) -> Denied:
    """There is nothing at `path`; the hint names the nearest of the `known` paths, or `reference` when none is near."""
    near = nearest(path, known)
    return Denied(404, "there is nothing at this path", f"did you mean {near}?" if near else f"see {reference}")


def nearest(path: str, known: Iterable[str]) -> str | None:
    """The known path that shares most steps with `path`, read from its end: people forget or mistype what stands before."""
    wanted = _steps(path[:LONGEST_PATH])
    scores = {one: _likeness(wanted, _steps(one)) for one in known}
    most = max(scores.values(), default=0.0)
    best = [one for one, score in scores.items() if score == most > 0]
    return best[0] if len(best) == 1 else None


def _steps(path: str) -> list[str]:
    return [step.lower() for step in path.split("/") if step]


def _likeness(wanted: list[str], known: list[str]) -> float:
    """How much two paths have in common. They do not when their ends differ, unless `wanted` is the beginning of `known`."""
    from_end = _in_common(wanted[::-1], known[::-1])
    from_start = _in_common(wanted, known)
    if from_end == 0 and from_start < len(wanted):
        return 0
    return from_end + from_start - abs(len(wanted) - len(known)) / 10


def _in_common(wanted: list[str], known: list[str]) -> float:
    """Of steps side by side, how alike they are, up to the first two that are not."""
    alike = 0.0
    for one, other in zip(wanted, known, strict=False):
        ratio = SequenceMatcher(None, one, other).ratio()
        if ratio < NEAR:
            break
        alike += ratio
    return alike
