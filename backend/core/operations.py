"""The operations that a client may ask of a distributed map, and their answers."""

from __future__ import annotations

from msgspec import Struct


class Put(Struct, frozen=True, tag="put", array_like=True):
    """Store `value` under `key`; the answer has the value that was there before."""

    map: str
    key: str
    value: bytes


class Get(Struct, frozen=True, tag="get", array_like=True):
    """Return the value under `key`, or none, in the answer."""

    map: str
    key: str


class Remove(Struct, frozen=True, tag="remove", array_like=True):
    """Remove `key`; the answer has the value that was there."""

    map: str
    key: str


class PutAll(Struct, frozen=True, tag="put-all", array_like=True):
    """Store every (key, value); not at one instant, but each as a put of its own."""

    map: str
    entries: tuple[tuple[str, bytes], ...]


class Size(Struct, frozen=True, tag="size", array_like=True):
    """Count the entries of the map, each partition at a moment of its own."""

    map: str


class Keys(Struct, frozen=True, tag="keys", array_like=True):
    """List all keys of the map, sorted, each partition looked at at a moment of its own."""

    map: str


Operation = Put | Get | Remove | PutAll | Size | Keys


class Answer(Struct, frozen=True, array_like=True):
    """How an operation ended: done when `problem` is empty.

    After a problem a write may have been done or not, unless `untouched`: then it has not, and never will be.
    """

    value: bytes | None = None
    size: int = 0
    keys: tuple[str, ...] = ()
    problem: str = ""
    untouched: bool = False
