"""What a settlement of conflicts says of itself: the conflicts that force it, and who could have stayed as well."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Dispute(Struct, frozen=True):
    """Members in conflict, directly or through others, as a set of places; who of them `stay`; whether that is proven best."""

    members: int
    stay: int
    proven: bool


def in_words(disputes: Sequence[Dispute], names: Sequence[str], lite: int, adjacent: Sequence[int]) -> str:
    return ""
