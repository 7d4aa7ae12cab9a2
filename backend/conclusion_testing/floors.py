"""How often an answer has to be known: nothing becomes true by saying nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

MOMENTS = 500
"""Of fewer answers no share is judged."""

FLOORS: Mapping[tuple[str, str], float] = {
    ("stream", "one-cluster"): 0.75,
    ("stream", "data-safe"): 0.95,
    ("stream", "data-lost"): 0.5,
    ("stream", "may-stop"): 0.7,
    ("stream", "metric masters"): 0.95,
    ("stream", "metric lists_agree"): 0.95,
    ("stream", "metric tables_agree"): 0.7,
    ("stream", "metric map_entries"): 0.35,
    ("cut streams", "one-cluster"): 0.7,
    ("cut streams", "data-safe"): 0.95,
    ("cut streams", "data-lost"): 0.45,
    ("cut streams", "may-stop"): 0.65,
    ("cut streams", "metric masters"): 0.7,
    ("client", "one-cluster"): 0.7,
    ("client", "may-stop"): 0.4,
    ("client", "metric masters"): 0.7,
    ("client", "metric lists_agree"): 0.85,
}
"""By watcher and question, the least share of answers that are known."""


def below_floors(counts: Mapping[tuple[str, str, str], int]) -> Iterator[tuple[str, str, float]]:
    """Yield the watchers and questions of which too few answers are known, each with their share."""
    for (watcher, question), floor in FLOORS.items():
        answers = {verdict: counts.get((watcher, question, verdict), 0) for verdict in ("true", "false", "unknown")}
        total = sum(answers.values())
        if total >= MOMENTS and (share := 1 - answers["unknown"] / total) < floor:
            yield watcher, question, share
