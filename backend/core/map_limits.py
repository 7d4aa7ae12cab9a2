"""Limits of maps as people write them: how much one member may own of a map, and what becomes of more (Hazelcast: eviction)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct

WORDS = "write max-size=ENTRIES, max-bytes=BYTES, or both, and eviction-policy=LRU or NONE"


class MapLimit(Struct, frozen=True):
    """What one member may own of each map whose name matches `pattern`; 0: any number."""

    pattern: str
    entries: int = 0
    bytes: int = 0
    """Of keys and values."""
    evicts: bool = False
    """Whether the entries that were used longest ago make room for new ones, which are refused otherwise."""


@lru_cache(maxsize=64)
def map_limits(text: str) -> tuple[MapLimit, ...]:
    """Read limits, from text like ``sessions* max-size=10000 eviction-policy=LRU; * max-bytes=500000000``.

    Raises:
        ValueError: The text does not have this form.
    """
    return tuple(_limit(part.split()) for part in text.split(";") if part.strip())


@lru_cache(maxsize=1024)
def limit_of(text: str, map: str) -> MapLimit | None:
    """Return the first limit in `text` that is for `map`."""
    return next((limit for limit in map_limits(text) if fnmatchcase(map, limit.pattern)), None)


def _limit(words: list[str]) -> MapLimit:
    pattern, *settings = words
    given: dict[str, str] = {}
    for word in settings:
        name, equals, value = word.partition("=")
        if not equals or name not in ("max-size", "max-bytes", "eviction-policy") or name in given:
            raise ValueError(f"{word!r} of {pattern} is no limit; {WORDS}")
        given[name] = value
    policy = given.pop("eviction-policy", "NONE")
    if policy not in ("NONE", "LRU"):
        raise ValueError(f"{policy!r} of {pattern} is no policy; {WORDS}")
    if not given or not all(value.isascii() and value.isdigit() and int(value) for value in given.values()):
        raise ValueError(f"{' '.join(words)!r} names no limit above 0; {WORDS}")
    return MapLimit(pattern, int(given.get("max-size", 0)), int(given.get("max-bytes", 0)), policy == "LRU")
