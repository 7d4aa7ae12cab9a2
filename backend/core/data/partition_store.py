"""What one member holds of one partition: the entries of all maps, and how far the replica has come.

The stamp names the content: two replicas with one stamp have the same entries and have done the same calls, for a stamp is given
out once, by the owner, to one change of one earlier stamp. The digest checks that independently (Hazelcast: anti-entropy).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from zlib import crc32

from msgspec import Struct, structs

from quarterdeck.backend.core.operations import Answer


class StoredEntry(Struct, frozen=True, gc=False, array_like=True):
    """A value and what is known of its use. Times are UTC, in microseconds since 1970, so that members can compare them.

    `version` counts the changes of the entry. Reads count at the owner only, and reach the backups with the next whole copy.
    """

    value: bytes
    version: int
    created_us: int
    updated_us: int
    accessed_us: int
    hits: int


class Stamp(Struct, frozen=True, gc=False, array_like=True):
    """Names one content of one partition: the incarnation that wrote last, and a number that grows with every change."""

    writer: str = ""
    number: int = 0


ENTRY_MEMORY = 320
"""About how many bytes Python takes for an entry besides its key and value."""

UNWRITTEN = Stamp()
"""The stamp of a partition in which nothing has ever been written."""

Session = tuple[int, tuple[Answer, ...]]
"""The number of the last writing call of an incarnation, and its answers."""


@dataclass(slots=True)
class PartitionStore:
    """One replica. `sessions` holds the last writing call of every caller, by its uuid."""

    maps: dict[str, dict[str, StoredEntry]] = field(default_factory=dict)
    stamp: Stamp = UNWRITTEN
    sessions: dict[str, Session] = field(default_factory=dict)
    digest: int = 0
    """Of keys and values; the same whatever the order in which they came."""
    entries: int = 0
    bytes: int = 0
    """Of keys and values."""
    map_bytes: dict[str, int] = field(default_factory=dict)
    """The same for each map that has entries."""
    memory: int = 0
    """About how many bytes all this takes, kept answers included."""

    def find(self, map: str, key: str) -> StoredEntry | None:
        entries = self.maps.get(map)
        return None if entries is None else entries.get(key)

    def size(self, map: str) -> int:
        return len(self.maps.get(map, ()))

    def put(self, map: str, key: str, entry: StoredEntry) -> None:
        entries = self.maps.setdefault(map, {})
        before = entries.get(key)
        if before is None:
            self.entries += 1
            self.memory += ENTRY_MEMORY
            grown = entry_bytes(key, entry)
        else:
            self.digest -= entry_digest(map, key, before.value)
            grown = len(entry.value) - len(before.value)
        self.bytes += grown
        self.memory += grown
        self.map_bytes[map] = self.map_bytes.get(map, 0) + grown
        self.digest += entry_digest(map, key, entry.value)
        entries[key] = entry

    def touch(self, map: str, key: str, entry: StoredEntry) -> None:
        """Set the use of an entry; its value is the present one."""
        self.maps[map][key] = entry

    def move_to_end(self, map: str, key: str) -> None:
        """Note that the entry was used last of its map. Copies of the store have the same order."""
        entries = self.maps[map]
        entries[key] = entries.pop(key)

    def remember(self, caller: str, session: Session) -> None:
        self.forget(caller)
        self.sessions[caller] = session
        self.memory += _answer_bytes(session)

    def forget(self, caller: str) -> None:
        session = self.sessions.pop(caller, None)
        if session is not None:
            self.memory -= _answer_bytes(session)

    def remove(self, map: str, key: str) -> None:
        entries = self.maps.get(map)
        before = None if entries is None else entries.pop(key, None)
        if entries is None or before is None:
            return
        self.entries -= 1
        shrunk = entry_bytes(key, before)
        self.bytes -= shrunk
        self.memory -= shrunk + ENTRY_MEMORY
        self.map_bytes[map] -= shrunk
        self.digest -= entry_digest(map, key, before.value)
        if not entries:
            del self.maps[map], self.map_bytes[map]


def entry_bytes(key: str, entry: StoredEntry) -> int:
    """Return how many bytes an entry counts for."""
    return key_bytes(key) + len(entry.value)


def key_bytes(key: str) -> int:
    """Return how many bytes a key counts for: as many as in UTF-8, which is no less than it takes."""
    return len(key) if key.isascii() else len(key.encode())


def _answer_bytes(session: Session) -> int:
    return sum(len(answer.value or b"") + sum(map(len, answer.keys)) for answer in session[1])


def entry_digest(map: str, key: str, value: bytes) -> int:
    """Return a checksum of one entry; those of a store are combined without regard to order."""
    return crc32(value, crc32(f"{map}\0{key}\0".encode()))


def partition_of(map: str, key: str, partitions: int) -> int:
    """Return the partition in which `key` of `map` is kept; it is the same on every member and never changes."""
    return crc32(f"{map}\0{key}".encode()) % partitions


# Merge policies


def merged(policy: str, existing: StoredEntry | None, incoming: StoredEntry) -> StoredEntry | None:
    """Return the entry to store in place of `existing` when clusters merge; None when that is to stay as it is.

    An entry that is stored keeps its times and hits, and has a version above both. Of two that are equal the existing one stays,
    so an offer that comes twice changes nothing, except under pass-through. `policy` is a value of `quarterdeck.merge.policy`.
    """
    if not _prefers_incoming(policy, existing, incoming):
        return None
    version = incoming.version if existing is None else max(existing.version, incoming.version) + 1
    return structs.replace(incoming, version=version)


def _prefers_incoming(policy: str, existing: StoredEntry | None, incoming: StoredEntry) -> bool:
    if policy == "discard":
        return False
    if existing is None or policy == "pass-through":
        return True
    if policy == "latest-update":
        return incoming.updated_us > existing.updated_us
    if policy == "latest-access":
        return incoming.accessed_us > existing.accessed_us
    if policy == "higher-hits":
        return incoming.hits > existing.hits
    assert policy == "put-if-absent", policy
    return False
