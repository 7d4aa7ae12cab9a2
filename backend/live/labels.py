"""The labels of a live cluster's members, and the join lists that are written with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def checked_labels(labels: Sequence[str] | int) -> tuple[str, ...]:
    """The labels of that many members, or these. Raises ValueError when there is none, or one is empty or there twice."""
    found = tuple(f"n{number}" for number in range(1, labels + 1)) if isinstance(labels, int) else tuple(labels)
    if not found:
        raise ValueError("a cluster needs a member")
    for place, label in enumerate(found):
        if not label.strip() or label in found[:place]:
            raise ValueError(f"label {place + 1}, {label!r}, is {'empty' if not label.strip() else 'taken already'}")
    return found


def checked_join_lists(join_lists: Mapping[str, Sequence[str]], labels: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The same join lists. Raises ValueError for one that names a label that is not among `labels`."""
    for label, entries in join_lists.items():
        unknown = next((name for name in (label, *entries) if name not in labels), None)
        if unknown is not None:
            raise ValueError(f'the join list of {label} has the unknown label "{unknown}"; known: {", ".join(labels)}')
    return {label: tuple(entries) for label, entries in join_lists.items()}
