"""One accepted connection: which listeners are in place, what is asked and when, which answers it owes, and what they mean.

A token bucket keeps watching cheap: all bytes from and to the member count, and while none are left only the ping is
asked for. No question is asked again while its answer is owed.
"""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire import messages, requests
from quarterdeck.backend.hazelcast.wire.codec.request_codec import encode_request
from quarterdeck.backend.hazelcast.wire.messages import Heard, Observation, RequestAnswered, Topic, TopicRefused
from quarterdeck.backend.hazelcast.wire.route import SECOND_US, Pace

TOPICS: dict[type[object], Topic] = {
    requests.GetClusterMetadata: "cluster-state",
    requests.ReadMetrics: "metrics",
    requests.GetMemberConfig: "config",
    requests.GetSystemProperties: "properties",
    requests.AddMigrationListener: "migrations",
    requests.AddPartitionLostListener: "losses",
}

SIGNS_OF_LIFE = (requests.GetClusterMetadata, requests.Ping)
ANSWER_WITHIN_US = 60 * SECOND_US
"""After so long an answer is no longer expected."""
MOST_OWED = 200
"""How many answers a member may owe at once."""
OLDEST = -1
"""The sequence of the oldest metrics that a member has kept."""
CONFIG_SHARE = 4
"""The configuration may use one byte in so many: a large one is asked for less often."""


class TokenBucket:
    """A budget of bytes: so many a second on average, and so many at once."""

    def __init__(self, per_second: int, burst: int, now_us: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._left = float(burst)
        self._at_us = now_us

    def spend(self, now_us: int, size: int) -> None:
        self._refill(now_us)
        self._left -= size

    def has_some(self, now_us: int) -> bool:
        self._refill(now_us)
        return self._left > 0

    def wait_us(self) -> int:
        """Return how long it takes until some bytes are left again."""
        return 0 if self._left > 0 else int((1 - self._left) * SECOND_US / self._per_second) + 1

    def _refill(self, now_us: int) -> None:
        self._left = min(self._burst, self._left + (now_us - self._at_us) * self._per_second / SECOND_US)
        self._at_us = now_us


class Asked(Struct, frozen=True):
    """A request whose answer is owed. One with a ticket was asked through `Followers.ask`."""

    request: requests.Request
    at_us: int
    ticket: int | None = None


class Questions:
    """The questions for one incarnation over one connection."""

    def __init__(self, pace: Pace, member_uuid: str, now_us: int) -> None:
        self._pace = pace
        self._member_uuid = member_uuid
        self._bucket = TokenBucket(pace.bytes_per_second, pace.burst_bytes, now_us)
        self._owed: dict[int, Asked] = {}
        self._every_us: dict[type[object], int] = {
            requests.GetClusterMetadata: pace.state_us,
            requests.Ping: pace.state_us,
            requests.GetMemberConfig: pace.config_us,
            requests.ReadMetrics: pace.metrics_us,
        }
        first = (
            requests.GetClusterMetadata,
            requests.GetMemberConfig,
            requests.GetSystemProperties,
            requests.ReadMetrics,
        )
        self._next_us: dict[type[object], int] = dict.fromkeys(first, now_us)
        self.from_sequence = OLDEST
        """Where the next metrics begin."""
        self._answered_once = False

    def due(self, now_us: int) -> list[requests.Question]:
        """Return what to ask now."""
        return [
            self._question(kind)
            for kind, at_us in self._next_us.items()
            if at_us <= now_us
            and not (self._owes(kind) or self.full)
            and (kind in SIGNS_OF_LIFE or self._bucket.has_some(now_us))
        ]

    def asked(
        self, now_us: int, correlation: int, request: requests.Request, size: int, ticket: int | None = None
    ) -> None:
        self._owed[correlation] = Asked(request, now_us, ticket)
        self.count(now_us, size)
        kind = type(request)
        if ticket is None and kind in self._every_us:
            self._next_us[kind] = now_us + self._every_us[kind]
        elif ticket is None:
            self._next_us.pop(kind, None)  # once is enough

    def answered(self, now_us: int, correlation: int, size: int) -> Asked | None:
        """Return the request that an answer of `size` bytes belongs to, or None if none is waiting."""
        if (asked := self._owed.pop(correlation, None)) is not None:
            self._answered_once = True
            if isinstance(asked.request, requests.GetMemberConfig):
                wait_us = CONFIG_SHARE * size * SECOND_US // self._pace.bytes_per_second
                self._next_us[requests.GetMemberConfig] = now_us + max(self._pace.config_us, wait_us)
        return asked

    def count(self, now_us: int, size: int) -> None:
        self._bucket.spend(now_us, size)

    def refused(self, request: requests.Request, now_us: int) -> None:
        """Stop asking what the member refuses. A ping replaces the cluster's state as proof that it is alive."""
        self._next_us.pop(type(request), None)
        if isinstance(request, requests.GetClusterMetadata):
            self._next_us[requests.Ping] = now_us

    def expired(self, now_us: int) -> list[Asked]:
        """Forget the requests whose answers are no longer expected, and return them."""
        late = {number: asked for number, asked in self._owed.items() if now_us - asked.at_us >= ANSWER_WITHIN_US}
        for number in late:
            del self._owed[number]
        return list(late.values())

    def owed(self) -> list[Asked]:
        return list(self._owed.values())

    @property
    def full(self) -> bool:
        """Whether the member owes so much that it is asked no more."""
        return len(self._owed) >= MOST_OWED

    def silent_at_us(self, heard_us: int) -> int | None:
        """Return when the member counts as silent if nothing arrives, or None while it owes nothing."""
        if not self._owed:
            return None
        first_us = min(asked.at_us for asked in self._owed.values())
        within_us = self._pace.silent_after_us if self._answered_once else self._pace.first_answer_us
        return max(heard_us, first_us) + within_us

    def deadline_us(self, now_us: int) -> int:
        """Return when something is to be asked next, or given up."""
        wanted = [
            at_us if kind in SIGNS_OF_LIFE else max(at_us, now_us + self._bucket.wait_us())
            for kind, at_us in self._next_us.items()
            if not self._owes(kind)
        ]
        given_up = (asked.at_us + ANSWER_WITHIN_US for asked in self._owed.values())
        return min((*wanted, *given_up), default=now_us + SECOND_US)

    def _owes(self, kind: type[object]) -> bool:
        return any(isinstance(asked.request, kind) and asked.ticket is None for asked in self._owed.values())

    def _question(self, kind: type[object]) -> requests.Question:
        if kind is requests.ReadMetrics:
            return requests.ReadMetrics(self._member_uuid, self.from_sequence)
        made = kind()
        assert isinstance(made, requests.Question)
        return made


FIRST_CORRELATION = 2
"""After that of the authentication."""
EVENT_TYPES = get_args(messages.Event)
MIGRATION_TYPES = (messages.MigrationProcessEvent, messages.ReplicaMigrationEvent, messages.PartitionLostEvent)


class ClientSession:
    """The requests to one incarnation of a member and its messages. Methods return bytes to send, and observations."""

    def __init__(self, address: Address, member_uuid: str, pace: Pace, now_us: int) -> None:
        self.questions = Questions(pace, member_uuid, now_us)
        self._address = address
        self._member_uuid = member_uuid
        self._correlation = FIRST_CORRELATION
        self._migrations_wanted = False
        self._listening = False
        """Whether the listener for migrations has been requested."""
        self._registration_uuid: str | None = None

    def begin(self, now_us: int, *, migrations: bool) -> bytes:
        """Add the listeners for views and, if wanted, migrations, and ask the first questions."""
        views = self.request(now_us, requests.AddClusterViewListener())
        return views + self.listen_to_migrations(now_us, migrations) + self.due(now_us)

    def due(self, now_us: int) -> bytes:
        return b"".join(self.request(now_us, question) for question in self.questions.due(now_us))

    def request(self, now_us: int, request: requests.Request, ticket: int | None = None) -> bytes:
        correlation, self._correlation = self._correlation, self._correlation + 1
        data = encode_request(request, correlation)
        self.questions.asked(now_us, correlation, request, len(data), ticket)
        return data

    def listen_to_migrations(self, now_us: int, wanted: bool) -> bytes:
        """Add the listeners that are wanted, or remove that for migrations. Losses are few: they are ignored then."""
        self._migrations_wanted = wanted
        if wanted and not self._listening:
            self._listening = True
            migrations = self.request(now_us, requests.AddMigrationListener())
            return migrations + self.request(now_us, requests.AddPartitionLostListener())
        if not wanted and self._registration_uuid is not None:
            registration_uuid, self._registration_uuid = self._registration_uuid, None
            return self.request(now_us, requests.RemoveMigrationListener(registration_uuid))
        return b""

    def receive(
        self, now_us: int, correlation: int, message: messages.Message, size: int
    ) -> tuple[list[Observation], bytes]:
        """Receive a message. Return what it shows, and what to send because of it."""
        self.questions.count(now_us, size)
        if isinstance(message, EVENT_TYPES):
            unwanted = isinstance(message, MIGRATION_TYPES) and not self._migrations_wanted
            return ([] if unwanted else [self._heard(now_us, message)]), b""
        asked = self.questions.answered(now_us, correlation, size)
        if asked is None or isinstance(message, messages.UnknownMessage | messages.Event):
            return [], b""
        if asked.ticket is not None:
            return [RequestAnswered(now_us, self._address, asked.ticket, message)], b""
        return self._receive_answer(now_us, asked, message)

    def _receive_answer(self, now_us: int, asked: Asked, message: messages.Message) -> tuple[list[Observation], bytes]:
        match message:
            case messages.ErrorAnswer():
                return self._refused(now_us, asked, message), b""
            case messages.ListenerAdded(registration_uuid) if isinstance(asked.request, requests.AddMigrationListener):
                self._registration_uuid = registration_uuid
                return [], self.listen_to_migrations(now_us, self._migrations_wanted)
            case messages.ListenerRemoved():
                self._listening = False
                return [], self.listen_to_migrations(now_us, self._migrations_wanted)
            case messages.ListenerAdded() | messages.RequestDone() | messages.Authenticated():
                return [], b""
            case messages.Metrics(next_sequence, sets):
                self.questions.from_sequence = next_sequence
                return [self._heard(now_us, message)] if sets else [], b""
            case _:
                return [self._heard(now_us, message)], b""

    def _refused(self, now_us: int, asked: Asked, error: messages.ErrorAnswer) -> list[Observation]:
        """Stop asking what security or the configuration forbids. Other errors pass."""
        topic = TOPICS.get(type(asked.request))
        if topic is None or not error.access_denied:
            return []
        self.questions.refused(asked.request, now_us)
        return [TopicRefused(now_us, self._address, topic, error.message or error.class_name)]

    def _heard(self, now_us: int, message: messages.Message) -> Heard:
        return Heard(now_us, self._address, self._member_uuid, message)
