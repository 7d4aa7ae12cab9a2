"""Runs whose every moment is known: some simulated, where virtual time says when all happened, and some told by hand."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec
from pyspark.sql import Row, SparkSession

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, OperatorAsked, ProcessKilled, ProcessPaused, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.events import (
    ClaimAnswered,
    ClaimFinished,
    ClaimStarted,
    ListInstalled,
    MemberStarted,
)
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import MigrationCopied, MigrationDecided, MigrationStarted
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.pipeline.tables.store import update_store
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.simulation.simulated_driver import simulate

STARTED_US = {2: 20_000, 3: 30_000, 5: 50_000}
"""When the steps of a scenario begin, by the number of members: each is looked at every 10 ms until it has joined."""

TIMING = {"hazelcast.heartbeat.interval.seconds": 1, "hazelcast.max.no.heartbeat.seconds": 4}
DATA = {**TIMING, "hazelcast.partition.count": 4, "quarterdeck.backup.count": 1}

SCENARIOS = {
    # c stands still from 10.03 s to 20.03 s.
    "freeze": {
        "members": ["a", "b", "c"],
        "settings": TIMING,
        "steps": [{"do": {"wait": "10s"}}, {"do": {"pause": "c"}}, {"do": {"wait": "10s"}}, {"do": {"resume": "c"}},
                  {"do": {"wait": "20s"}}],
    },
    # The network is cut from 5.05 s to 15.05 s.
    "halves": {
        "members": ["a", "b", "c", "d", "e"],
        "settings": {**TIMING, "hazelcast.merge.first.run.delay.seconds": 1, "hazelcast.merge.next.run.delay.seconds": 1},
        "steps": [{"do": {"wait": "5s"}}, {"do": {"partition": [["a", "b", "c"], ["d", "e"]]}}, {"do": {"wait": "10s"}},
                  {"do": "heal"}, {"do": {"wait": "15s"}}],
    },
    # b dies at 5.03 s and at 15.03 s, and lives three times.
    "twice": {
        "members": ["a", "b", "c"],
        "settings": TIMING,
        "steps": [{"do": {"wait": "5s"}}, {"do": {"kill": "b"}}, {"do": {"wait": "5s"}}, {"do": {"start": "b"}},
                  {"do": {"wait": "5s"}}, {"do": {"kill": "b"}}, {"do": {"wait": "5s"}}, {"do": {"start": "b"}},
                  {"do": {"wait": "5s"}}],
    },
    # Data on a and b; c comes at 1.02 s, and dies at 11.02 s.
    "data": {
        "members": ["a", "b", "c"],
        "late": ["c"],
        "settings": DATA,
        "steps": [{"do": {"put": {"at": "a", "map": "m", "key": "k", "value": "v"}}}, {"do": {"wait": "1s"}},
                  {"do": {"load": {"at": ["a", "b"], "map": "m", "keys": 8, "rate": 10, "for": "5s"}}},
                  {"do": {"start": "c"}}, {"do": {"wait": "10s"}}, {"do": {"kill": "c"}}, {"do": {"wait": "5s"}}],
    },
    # b is dead from 1.02 s on, so a alone is too few and refuses all writes.
    "refused": {
        "members": ["a", "b"],
        "settings": {**DATA, "quarterdeck.minimum.cluster.size": 2},
        "steps": [{"do": {"put": {"at": "a", "map": "m", "key": "k", "value": "v"}}}, {"do": {"wait": "1s"}},
                  {"do": {"kill": "b"}}, {"do": {"wait": "2s"}},
                  {"do": {"put": {"at": "a", "map": "m", "key": "k", "value": "w"}}}, {"do": {"wait": "1s"}}],
    },
}  # fmt: skip

HAND = "20261121T101112Z-by-hand-0a1b"


@cache
def golden_records() -> dict[str, tuple[Record, ...]]:
    """The records of all golden runs, by run."""
    runs: dict[str, tuple[Record, ...]] = {}
    for name, told in SCENARIOS.items():
        kept = RecordList()
        outcome = simulate(Scenario.model_validate({"title": name, **told}), 1, kept, run=f"{name}-seed-1")
        assert not outcome.violations
        runs[f"{name}-seed-1"] = tuple(kept.records)
    runs[HAND] = tuple(by_hand())
    return runs


class RecordList:
    """A journal in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, record: Record) -> None:
        self.records.append(record)


def by_hand() -> Iterator[Record]:
    """What no simulation would record: beginnings and ends that are missing, faults that become others."""
    seqs: dict[str, int] = {}

    def tell(at: int, label: str, uuid: str, event: Event, seq: int = 0) -> Record:
        seqs[uuid] = seq or seqs.get(uuid, 0) + 1
        return Record(HAND, label, uuid, seqs[uuid], at, at, event)

    a, b = Address("10.0.0.1:5701"), Address("10.0.0.2:5701")
    both = (Member(a, "a1", 1, False), Member(b, "b1", 1, True))
    # The beginning of a1 is missing, and so is that of its first claim; the end of its third is missing.
    yield tell(1_000, "a", "a1", ClaimAnswered(b, "accepted", 4, ""), seq=40)
    yield tell(1_100, "a", "a1", ListInstalled(5, "a1/5", a, both, a, "joined"))
    yield tell(1_200, "a", "a1", ClaimStarted(5, (b,), (b,)))
    yield tell(1_300, "a", "a1", ClaimAnswered(b, "refused", 5, "no"))
    yield tell(1_400, "a", "a1", ClaimFinished(6, "a1/6", (), (b,)))
    yield tell(1_500, "a", "a1", ClaimStarted(6, (b,), (b,)))
    # b1 was never told to end, but b2 begins; the kill comes after that, and is for b2.
    yield tell(1_000, "b", "b1", MemberStarted(b, True, ()))
    yield tell(2_000, "b", "b2", MemberStarted(b, True, ()))
    yield tell(3_000, "by-hand", HAND, ProcessPaused("b"))
    yield tell(4_000, "by-hand", HAND, ProcessKilled("b"))
    # A link that gets worse, then mended; another that stays broken.
    yield tell(5_000, "by-hand", HAND, LinkChanged("a", "b", delay=100))
    yield tell(6_000, "by-hand", HAND, LinkChanged("a", "b", blocked="reset"))
    yield tell(7_000, "by-hand", HAND, LinkChanged("a", "b"))
    yield tell(8_000, "by-hand", HAND, LinkChanged("b", "a", dropped_kinds=("heartbeat",)))
    # What a member's own face noted belongs to no life either.
    yield tell(5_500, "by-hand", "notes-of-b", OperatorAsked("stop", "admin", "10.9.9.9", True, ""))
    # Begun by a, decided by b, once more by a; and one of which only the middle is told.
    yield tell(2_000, "a", "a1", MigrationStarted("a1/1", 3, "MOVE", 7, a, 0, -1, b, -1, 0, a, 2, 2, False))
    yield tell(2_600, "b", "b2", MigrationDecided("a1/1", 3, False, 9, "the master has changed"))
    yield tell(2_700, "a", "a1", MigrationDecided("a1/1", 3, False, 9, "told again"))
    yield tell(2_800, "a", "a1", MigrationCopied("a1/2", 4, 3, 300, 50))


def write_records(root: Path, records: Sequence[Record], writer: str = "golden") -> Path:
    """A journal of these records under `root`."""
    for run in sorted({record.run for record in records}):
        with JournalWriter(root, run, writer) as journal:
            for record in records:
                if record.run == run:
                    journal.append(record)
    return root


_STORES: list[Path] = []


def golden_store(spark: SparkSession) -> Path:
    """The tables of all golden runs; made once in a process."""
    if not _STORES:
        folder = Path(tempfile.mkdtemp(prefix="quarterdeck-golden-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        records = [record for run in golden_records().values() for record in run]
        update_store([write_records(folder / "journal", records)], folder / "tables")
        _STORES.append(folder / "tables")
    return _STORES[0]


def events(run: str, *kinds: type, member: str = "") -> list[Record]:
    """The records of a golden run with events of these kinds."""
    return [
        record
        for record in golden_records()[run]
        if isinstance(record.event, kinds) and (not member or record.member == member)
    ]


def plain(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Rows as plain data."""
    return [row.asDict(recursive=True) for row in rows]


def canonical(rows: Sequence[dict[str, object]], *leave_out: str) -> list[bytes]:
    """Rows in an order of their own, for comparing tables as bags."""
    return sorted(
        msgspec.json.encode({name: value for name, value in row.items() if name not in leave_out}, order="sorted")
        for row in rows
    )
