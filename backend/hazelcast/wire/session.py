"""One accepted connection: which listeners are in place, what has been asked, and what the answers mean."""

from __future__ import annotations

from typing import get_args

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire import messages, requests
from quarterdeck.backend.hazelcast.wire.codec.request_codec import encode_request
from quarterdeck.backend.hazelcast.wire.messages import Heard, Observation, RequestAnswered, TopicRefused
from quarterdeck.backend.hazelcast.wire.questions import TOPICS, Asked, Questions
from quarterdeck.backend.hazelcast.wire.settings import Pace

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
                self.questions.metrics_read(next_sequence)
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
