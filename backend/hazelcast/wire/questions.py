"""What one connected member is asked, when, and which answers it owes.

A token bucket keeps watching cheap: every byte that comes from the member or goes to it counts, and while they are used up only
the sign of life is asked for. No question is asked again while its answer is owed.
"""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.hazelcast.wire.observations import Topic
from quarterdeck.backend.hazelcast.wire.requests import (
    AddMigrationListener,
    AddPartitionLostListener,
    GetClusterMetadata,
    GetMemberConfig,
    GetSystemProperties,
    Ping,
    Question,
    ReadMetrics,
    Request,
)
from quarterdeck.backend.hazelcast.wire.settings import SECOND_US, Pace

TOPICS: dict[type[object], Topic] = {
    GetClusterMetadata: "cluster-state",
    ReadMetrics: "metrics",
    GetMemberConfig: "config",
    GetSystemProperties: "properties",
    AddMigrationListener: "migrations",
    AddPartitionLostListener: "losses",
}

ANSWER_WITHIN_US = 60 * SECOND_US
"""An answer that has not come by then is not waited for any more."""

MOST_OWED = 200
"""How many answers a member may owe at once."""

OLDEST = -1
"""The sequence of the oldest metrics that a member has kept."""

CONFIG_SHARE = 4
"""The configuration may use up one byte of so many: a great one is asked for less often."""


class TokenBucket:
    """So many bytes a second on average, and so many at once."""

    def __init__(self, per_second: int, burst: int, now_us: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._left = float(burst)
        self._at_us = now_us

    def spend(self, now_us: int, size: int) -> None:
        """Count bytes that have passed. There may be debts then."""
        self._refill(now_us)
        self._left -= size

    def has_some(self, now_us: int) -> bool:
        """Whether more may be asked for."""
        self._refill(now_us)
        return self._left > 0

    def wait_us(self) -> int:
        """How long it takes until there is some again."""
        return 0 if self._left > 0 else int((1 - self._left) * SECOND_US / self._per_second) + 1

    def _refill(self, now_us: int) -> None:
        self._left = min(self._burst, self._left + (now_us - self._at_us) * self._per_second / SECOND_US)
        self._at_us = now_us


class Asked(Struct, frozen=True):
    """A request whose answer is owed. With a ticket it was asked on somebody's behalf."""

    request: Request
    at_us: int
    ticket: int | None = None


class Questions:
    """The questions for one incarnation over one connection."""

    def __init__(self, pace: Pace, member_uuid: str, now_us: int) -> None:
        self._pace = pace
        self._member_uuid = member_uuid
        self._bucket = TokenBucket(pace.bytes_per_second, pace.burst_bytes, now_us)
        self._owed: dict[int, Asked] = {}
        self._next_us: dict[type[object], int] = dict.fromkeys(
            (GetClusterMetadata, GetMemberConfig, GetSystemProperties, ReadMetrics), now_us
        )
        self._from_sequence = OLDEST
        self._answered_once = False

    def due(self, now_us: int) -> list[Question]:
        """What is to be asked now."""
        return [self._question(kind) for kind in self._next_us if self._is_due(kind, now_us)]

    def asked(self, now_us: int, correlation: int, request: Request, size: int, ticket: int | None = None) -> None:
        """Remember that a request of `size` bytes has been sent."""
        self._owed[correlation] = Asked(request, now_us, ticket)
        self.count(now_us, size)
        if ticket is not None:
            return
        match request:
            case GetClusterMetadata() | Ping():
                self._next_us[type(request)] = now_us + self._pace.state_us
            case ReadMetrics():
                self._next_us[ReadMetrics] = now_us + self._pace.metrics_us
            case GetMemberConfig():
                self._next_us[GetMemberConfig] = now_us + self._pace.config_us
            case _:
                self._next_us.pop(type(request), None)  # once is enough

    def answered(self, now_us: int, correlation: int, size: int) -> Asked | None:
        """Which request has been answered with `size` bytes; none for an answer that nobody waits for."""
        asked = self._owed.pop(correlation, None)
        if asked is not None:
            self._answered_once = True
            if isinstance(asked.request, GetMemberConfig):
                wait_us = CONFIG_SHARE * size * SECOND_US // self._pace.bytes_per_second
                self._next_us[GetMemberConfig] = now_us + max(self._pace.config_us, wait_us)
        return asked

    def count(self, now_us: int, size: int) -> None:
        """Bytes have gone to the member, or come from it."""
        self._bucket.spend(now_us, size)

    def metrics_read(self, next_sequence: int) -> None:
        """Where the next metrics begin."""
        self._from_sequence = next_sequence

    def refused(self, request: Request, now_us: int) -> None:
        """The member does not answer that to us. For the state of the cluster a ping stands in as the sign of life."""
        self._next_us.pop(type(request), None)
        if isinstance(request, GetClusterMetadata):
            self._next_us[Ping] = now_us

    def expired(self, now_us: int) -> list[Asked]:
        """Requests whose answers are not waited for any more, after they have been forgotten."""
        late = {number: one for number, one in self._owed.items() if now_us - one.at_us >= ANSWER_WITHIN_US}
        for number in late:
            del self._owed[number]
        return list(late.values())

    def owed(self) -> list[Asked]:
        """All requests whose answers have not come."""
        return list(self._owed.values())

    @property
    def full(self) -> bool:
        """Whether the member owes so much that no more is asked."""
        return len(self._owed) >= MOST_OWED

    def silent_at_us(self, heard_us: int) -> int | None:
        """When the member has to be called silent if nothing comes. Who owes nothing is not silent."""
        if not self._owed:
            return None
        first_us = min(one.at_us for one in self._owed.values())
        return max(heard_us, first_us) + (
            self._pace.silent_after_us if self._answered_once else self._pace.first_answer_us
        )

    def deadline_us(self, now_us: int) -> int:
        """When something is to be asked next, or given up."""
        wanted = [
            at_us if self._is_life(kind) else max(at_us, now_us + self._bucket.wait_us())
            for kind, at_us in self._next_us.items()
            if not self._owes(kind)
        ]
        given_up = (one.at_us + ANSWER_WITHIN_US for one in self._owed.values())
        return min((*wanted, *given_up), default=now_us + SECOND_US)

    def _is_due(self, kind: type[object], now_us: int) -> bool:
        if self._next_us[kind] > now_us or self._owes(kind) or self.full:
            return False
        return self._is_life(kind) or self._bucket.has_some(now_us)

    def _owes(self, kind: type[object]) -> bool:
        return any(isinstance(one.request, kind) and one.ticket is None for one in self._owed.values())

    def _is_life(self, kind: type[object]) -> bool:
        return kind in (GetClusterMetadata, Ping)

    def _question(self, kind: type[object]) -> Question:
        if kind is ReadMetrics:
            return ReadMetrics(self._member_uuid, self._from_sequence)
        made = kind()
        assert isinstance(made, Ping | GetClusterMetadata | GetMemberConfig | GetSystemProperties)
        return made
