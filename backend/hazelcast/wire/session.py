"""One accepted connection: which listeners are in place, what has been asked over it, and what the answers mean."""

from __future__ import annotations

from typing import get_args

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.codec.request_codec import encode_request
from quarterdeck.backend.hazelcast.wire.messages import (
    Authenticated,
    ErrorAnswer,
    Event,
    ListenerAdded,
    ListenerRemoved,
    Message,
    Metrics,
    MigrationProcessEvent,
    PartitionLostEvent,
    ReplicaMigrationEvent,
    RequestDone,
    UnknownMessage,
)
from quarterdeck.backend.hazelcast.wire.observations import Heard, NotTold, Observation, RequestAnswered
from quarterdeck.backend.hazelcast.wire.questions import TOPICS, Asked, Questions
from quarterdeck.backend.hazelcast.wire.requests import (
    AddClusterViewListener,
    AddMigrationListener,
    AddPartitionLostListener,
    RemoveMigrationListener,
    Request,
)
from quarterdeck.backend.hazelcast.wire.settings import Pace

FIRST_CORRELATION = 2
"""Behind that of the introduction."""

EVENT_TYPES = get_args(Event)
MIGRATION_TYPES = (MigrationProcessEvent, ReplicaMigrationEvent, PartitionLostEvent)


class ClientSession:
    """What goes on between us and one incarnation of a member. It returns bytes to send, and what came to light."""

    def __init__(self, address: Address, member_uuid: str, pace: Pace, now_us: int) -> None:
        self.questions = Questions(pace, member_uuid, now_us)
        self._address = address
        self._member_uuid = member_uuid
        self._correlation = FIRST_CORRELATION
        self._migrations_wanted = False
        self._listening = False
        """Whether the listener for migrations has been asked for."""
        self._registration_uuid: str | None = None

    def begin(self, now_us: int, *, migrations: bool) -> bytes:
        """Ask to be told of views and, when they are wanted, migrations; and the first questions."""
        views = self.request(now_us, AddClusterViewListener())
        return views + self.listen_to_migrations(now_us, migrations) + self.due(now_us)

    def due(self, now_us: int) -> bytes:
        """The questions whose time has come."""
        return b"".join(self.request(now_us, question) for question in self.questions.due(now_us))

    def request(self, now_us: int, request: Request, ticket: int | None = None) -> bytes:
        """Any request."""
        correlation, self._correlation = self._correlation, self._correlation + 1
        data = encode_request(request, correlation)
        self.questions.asked(now_us, correlation, request, len(data), ticket)
        return data

    def listen_to_migrations(self, now_us: int, wanted: bool) -> bytes:
        """Put the listeners in place that are wanted, or remove that for migrations. Losses are few: they are ignored then."""
        self._migrations_wanted = wanted
        if wanted and not self._listening:
            self._listening = True
            return self.request(now_us, AddMigrationListener()) + self.request(now_us, AddPartitionLostListener())
        if not wanted and self._registration_uuid is not None:
            registration_uuid, self._registration_uuid = self._registration_uuid, None
            return self.request(now_us, RemoveMigrationListener(registration_uuid))
        return b""

    def take(self, now_us: int, correlation: int, message: Message, size: int) -> tuple[list[Observation], bytes]:
        """What a message brings to light, and what is sent because of it."""
        self.questions.count(now_us, size)
        if isinstance(message, EVENT_TYPES):
            unwanted = isinstance(message, MIGRATION_TYPES) and not self._migrations_wanted
            return ([] if unwanted else [self._heard(now_us, message)]), b""
        asked = self.questions.answered(now_us, correlation, size)
        if asked is None or isinstance(message, UnknownMessage | Event):
            return [], b""
        if asked.ticket is not None:
            return [RequestAnswered(now_us, self._address, asked.ticket, message)], b""
        return self._take_answer(now_us, asked, message)

    def _take_answer(self, now_us: int, asked: Asked, message: Message) -> tuple[list[Observation], bytes]:
        match message:
            case ErrorAnswer():
                return self._refused(now_us, asked, message), b""
            case ListenerAdded(registration_uuid) if isinstance(asked.request, AddMigrationListener):
                self._registration_uuid = registration_uuid
                return [], self.listen_to_migrations(now_us, self._migrations_wanted)
            case ListenerRemoved():
                self._listening = False
                return [], self.listen_to_migrations(now_us, self._migrations_wanted)
            case ListenerAdded() | RequestDone() | Authenticated():
                return [], b""
            case Metrics(next_sequence, sets):
                self.questions.metrics_read(next_sequence)
                return [self._heard(now_us, message)] if sets else [], b""
            case _:
                return [self._heard(now_us, message)], b""

    def _refused(self, now_us: int, asked: Asked, error: ErrorAnswer) -> list[Observation]:
        """Security or the configuration keep us from a question: it is not asked again. Other errors pass."""
        topic = TOPICS.get(type(asked.request))
        if topic is None or not error.access_denied:
            return []
        self.questions.refused(asked.request, now_us)
        return [NotTold(now_us, self._address, topic, error.message or error.class_name)]

    def _heard(self, now_us: int, message: Message) -> Heard:
        return Heard(now_us, self._address, self._member_uuid, message)
