"""A dictionary that forgets: what was put in long ago makes room for what is new."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedMap(Generic[Key, Value]):
    """Knows at least the latest `size` entries that were put in, and at most twice as many."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        if len(self._young) >= self._size:
            self._young, self._old = {}, self._young
        self._young[key] = value

    def get(self, key: Key) -> Value | None:
        """Return what was put in under `key`; None when nothing was, or when it is forgotten."""
        found = self._young.get(key)
        return found if found is not None else self._old.get(key)

    def pop(self, key: Key) -> Value | None:
        """Remove and return what was put in under `key`, or None."""
        found, older = self._young.pop(key, None), self._old.pop(key, None)
        return found if found is not None else older
