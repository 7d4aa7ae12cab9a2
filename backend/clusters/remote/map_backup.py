"""The maps of a running cluster go to a folder, each partition from the member that owns it by then, and come back from one.

The folder has one file of JSON lines for each partition, and a list of the files with their checksums. A file appears whole or
not at all, and is listed after that. So whatever ends an export, what is listed is there, and the export goes on with the rest.
The list of an import, of what is stored already, is kept beside it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from quarterdeck.backend.clusters.remote.access import url_of_other
from quarterdeck.backend.clusters.remote.member_client import (
    BadResponse,
    HttpRequest,
    MemberClient,
    RequestRefused,
    Unreachable,
    table_pages,
)
from quarterdeck.backend.clusters.remote.remote_commands import call_map, in_batches, segment, value_of
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.operations import PutAll
from quarterdeck.backend.member_api.answers import ExportedEntry, PartitionHead
from quarterdeck.backend.member_api.beliefs import ThisMember

FORM = 1
HEAD, FILES, IMPORTED = "export.json", "files.jsonl", "imported.jsonl"

Line = TypeVar("Line", bound=Struct)


class BadExportFolder(ValueError):
    """A folder that holds no export, or one that is damaged, not finished, or of something else. The message names the file."""


class ExportHead(Struct, frozen=True):
    """The source of the folder's export. An empty `map` means all."""

    form: int
    cluster: str
    partitions: int
    map: str = ""


class ExportedFile(Struct, frozen=True):
    """One exported partition, as it was at the owner at one moment. Without entries it has no file."""

    partition: int
    entries: int
    bytes: int
    sha256: str
    owner: str
    utc_us: int


class ImportedPartition(Struct, frozen=True):
    """A partition whose entries, of one map or all, are stored again by a cluster with these incarnations."""

    partition: int
    map: str
    members: tuple[str, ...]


class ExportFolder:
    """One export. `files` are the present partitions."""

    def __init__(self, path: Path, head: ExportHead) -> None:
        self.path, self.head = path, head
        self.files = {file.partition: file for file in _read_lines(path / FILES, ExportedFile)}

    @classmethod
    def begun(cls, path: Path, wanted: ExportHead) -> ExportFolder:
        """Begin an export in `path`, or go on with one begun earlier. Raises `BadExportFolder`, OSError."""
        path.mkdir(parents=True, exist_ok=True)
        if not (path / HEAD).exists():
            if any(name.name not in (HEAD + ".part",) for name in path.iterdir()):
                raise BadExportFolder(f"{path}: there is something else in this folder; give an empty one")
            _write_whole(path / HEAD, msgspec.json.encode(wanted) + b"\n")
        folder = cls.opened(path)
        if folder.head != wanted:
            raise BadExportFolder(f"{path / HEAD}: an export of something else was begun here; give another folder")
        return folder

    @classmethod
    def opened(cls, path: Path) -> ExportFolder:
        """Open the present export. Raises `BadExportFolder`, OSError."""
        try:
            head = msgspec.json.decode((path / HEAD).read_bytes(), type=ExportHead)
        except FileNotFoundError:
            raise BadExportFolder(f"{path}: is no export, for {HEAD} is missing") from None
        except msgspec.DecodeError as problem:
            raise BadExportFolder(f"{path / HEAD}: {problem}") from None
        if head.form != FORM:
            raise BadExportFolder(f"{path / HEAD}: is of form {head.form}; this release reads form {FORM}")
        return cls(path, head)

    @property
    def missing(self) -> list[int]:
        return [partition for partition in range(self.head.partitions) if partition not in self.files]

    def add(self, partition: int, owner: str, utc_us: int, lines: bytes) -> None:
        """Keep the entries of a partition, lines of JSON."""
        if lines:
            _write_whole(self._file(partition), lines)
        file = ExportedFile(partition, lines.count(b"\n"), len(lines), sha256(lines).hexdigest(), owner, utc_us)
        _append(self.path / FILES, file)
        self.files[partition] = file

    def check(self) -> None:
        """Raise `BadExportFolder` unless every partition is present and unchanged since its export."""
        if self.missing:
            missing = f"{len(self.missing)} of {self.head.partitions} partitions are missing"
            raise BadExportFolder(f"{self.path}: {missing}; run the export again to go on")
        for partition in self.files:
            self._content(partition)

    def entries(self, partition: int) -> Iterator[ExportedEntry]:
        """Yield the entries of a partition that is exported. Raises `BadExportFolder`, also when it is damaged."""
        for number, line in enumerate(self._content(partition).splitlines(), 1):
            try:
                yield msgspec.json.decode(line, type=ExportedEntry)
            except msgspec.DecodeError as problem:
                raise BadExportFolder(f"{self._file(partition)}:{number}: {problem}") from None

    def imported(self, map: str, members: Iterable[str]) -> set[int]:
        """Return the partitions already stored, if one of `members` has run since the last of them; else none."""
        done = list(_read_lines(self.path / IMPORTED, ImportedPartition))
        if not done or done[-1].map != map or not set(members) & set(done[-1].members):
            (self.path / IMPORTED).unlink(missing_ok=True)
            return set()
        return {imported.partition for imported in done}

    def note_imported(self, partition: int, map: str, members: Iterable[str]) -> None:
        """Note that the entries of a partition are stored."""
        _append(self.path / IMPORTED, ImportedPartition(partition, map, tuple(sorted(members))))

    def end_import(self) -> None:
        """Forget the import, for all of it is done: another import begins anew."""
        (self.path / IMPORTED).unlink(missing_ok=True)

    def _file(self, partition: int) -> Path:
        return self.path / f"partition-{partition:05}.jsonl"

    def _content(self, partition: int) -> bytes:
        listed, path = self.files[partition], self._file(partition)
        try:
            content = path.read_bytes() if listed.entries else b""
        except FileNotFoundError:
            raise BadExportFolder(f"{path}: is missing; export to another folder") from None
        if sha256(content).hexdigest() != listed.sha256:
            problem = "is not what was exported, for its checksum differs; export to another folder"
            raise BadExportFolder(f"{path}: {problem}")
        return content


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that only its user may read, so that it exists whole or not at all."""
    part = path.with_name(path.name + ".part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _append(path: Path, line: Struct) -> None:
    """Append a line; one that was cut off before is ended first, and read as none."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        torn = end > 0 and (file.seek(end - 1), file.read(1))[1] != b"\n"
        file.write((b"\n" if torn else b"") + msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _read_lines(path: Path, kind: type[Line]) -> Iterator[Line]:
    """Yield the whole lines; one that was cut off when the process ended is none."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            yield msgspec.json.decode(line, type=kind)
        except msgspec.DecodeError:
            continue


BATCH_ENTRIES = 500
"""The largest amount that is stored with one call."""
AGAIN_SECONDS = 0.3
"""How long to wait for owners that moved or ended."""
LONGEST_WAIT_SECONDS = 60.0
"""After so long in which no partition could be exported, the export ends. It can go on later."""
IN_THE_WAY = (409, 503)
"""The answers of a member that is not, or not now, the owner."""


async def export_maps(client: MemberClient, urls: list[str], path: Path, map: str) -> ExportFolder:
    """Export one map, or all when `map` is empty, into `path`; go on with what is there.

    Raises `BadExportFolder` when the folder holds something else, `CommandRefused` when no member can be asked, none has data, or
    partitions stay without an owner, `OSError` when the folder cannot be written.
    """
    owners, cluster = await _owners(client, urls)
    if not owners:
        raise CommandRefused("the partitions are not arranged yet, so there is nothing to export")
    folder = ExportFolder.begun(path, ExportHead(FORM, cluster, len(owners), map))
    idle = 0.0
    while folder.missing:
        before = len(folder.missing)
        async for partition, head, lines in _fetched(client, owners, folder.missing, map):
            folder.add(partition, head.owner, head.utc_us, lines)
        idle = 0.0 if len(folder.missing) < before else idle + AGAIN_SECONDS
        if idle > LONGEST_WAIT_SECONDS:
            raise Unreachable(f"{len(folder.missing)} partitions have no owner that answers; run this again to go on")
        if folder.missing:
            await asyncio.sleep(AGAIN_SECONDS)
            known = [*urls, *{url for url in owners if url}]
            owners, _ = await _owners(client, known, until_seconds=LONGEST_WAIT_SECONDS)
    return folder


async def import_maps(client: MemberClient, urls: list[str], folder: ExportFolder, map: str) -> int:
    """Store what is not stored yet of an export, of one map or of all when `map` is empty; return how many entries that were.

    Raises `BadExportFolder` when the folder is not whole, or damaged: then nothing is stored; `CommandRefused` when no member can
    be asked, or one refuses: what is stored is noted; `OSError` when the folder cannot be read or written.
    """
    folder.check()
    facts, url = await _any_member(client, urls)
    others = [url_of_other(member.address, url, facts.address) for member in facts.members]
    members = [member.uuid for member in facts.members]
    done = folder.imported(map, members)
    stored = 0
    for partition in sorted(folder.files.keys() - done):
        for batch in batches(folder, partition, map):
            await _store(client, list(dict.fromkeys((url, *urls, *others))), batch)
            stored += len(batch.entries)
        folder.note_imported(partition, map, members)
    folder.end_import()
    return stored


async def _store(client: MemberClient, urls: list[str], batch: PutAll) -> None:
    """Store through the first member that does it; to store the same again does no harm."""
    waited = 0.0
    while True:
        for url in urls:
            try:
                answer = await call_map(client, url, batch)
            except Unreachable:
                continue
            if answer.problem and answer.untouched:
                raise CommandRefused(f"{answer.problem}; run this again to go on")
            if not answer.problem:
                return
        if waited > LONGEST_WAIT_SECONDS:
            raise Unreachable("no member stores what is to be imported; run this again to go on")
        await asyncio.sleep(AGAIN_SECONDS)
        waited += AGAIN_SECONDS


def batches(folder: ExportFolder, partition: int, map: str = "") -> Iterator[PutAll]:
    """Yield the entries of a partition to store, each map for itself, a bounded number of entries and bytes at a time."""
    wanted = (entry for entry in folder.entries(partition) if map in ("", entry.map))
    for name, entries in groupby(wanted, attrgetter("map")):
        for batch in in_batches(((entry.key, value_of(entry) or b"") for entry in entries), BATCH_ENTRIES):
            yield PutAll(name, tuple(batch))


async def _any_member(client: MemberClient, urls: list[str]) -> tuple[ThisMember, str]:
    """Return the identity of the first member that answers, and its URL. Raises `CommandRefused` when none does."""
    problem = CommandRefused("no member is named")
    for url in dict.fromkeys(urls):
        try:
            return await client.facts(url), url
        except (Unreachable, BadResponse) as failure:
            problem = failure
    raise problem


async def _owners(client: MemberClient, urls: list[str], until_seconds: float = 0.0) -> tuple[list[str], str]:
    """Return the URL of each partition's owner, empty where it has none, and the name of the cluster."""
    while True:
        try:
            facts, url = await _any_member(client, urls)
            owners = [
                "" if len(row) < 3 or row[2] < 0 else url_of_other(page.holders[row[2]].address, url, facts.address)
                async for page in table_pages(client, url)
                for row in page.rows
            ]
            return owners, facts.cluster_name
        except (Unreachable, BadResponse):
            if until_seconds <= 0:
                raise
        until_seconds -= AGAIN_SECONDS
        await asyncio.sleep(AGAIN_SECONDS)


async def _fetched(
    client: MemberClient, owners: list[str], partitions: list[int], map: str
) -> AsyncIterator[tuple[int, PartitionHead, bytes]]:
    gone: set[str] = set()
    for partition in partitions:
        url = owners[partition] if partition < len(owners) else ""
        if not url or url in gone:
            continue
        path = f"/partitions/{partition}/entries" + (f"?map={segment(map)}" if map else "")
        try:
            content = await client.send(url, HttpRequest("GET", path, may_take_long=True))
            line, _, lines = content.partition(b"\n")
            head = msgspec.json.decode(line, type=PartitionHead)
        except msgspec.DecodeError as problem:
            raise BadResponse(f"{url} does not speak the language of this version: {problem}") from problem
        except RequestRefused as refusal:
            if refusal.status not in IN_THE_WAY:
                raise
            continue
        except Unreachable:
            gone.add(url)
            continue
        if head.entries == lines.count(b"\n"):
            yield partition, head, lines
