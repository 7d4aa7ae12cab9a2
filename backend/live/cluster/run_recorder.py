"""The records of a live cluster: every event of its members, and the actions of the operator and the network."""

from __future__ import annotations

import logging
from collections import deque
from threading import Lock

from quarterdeck.backend.core.events import FORM, Event, JournalChanged, Record
from quarterdeck.backend.core.membership.events import ListInstalled, SuspicionCleared, SuspicionRaised
from quarterdeck.backend.core.membership.views.member_list import MemberList, member_list_text
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.live.member.member_host import RunClock

_LOG = logging.getLogger(__name__)


class RunRecorder:
    """The records of the run `run` of the cluster `name`: for the reader, for the log, and for the journal."""

    def __init__(
        self, run: str, name: str, clock: RunClock, journal: JournalWriter | None, *, legacy_lists: bool
    ) -> None:
        """`legacy_lists`: lists of members are logged in the format without a version."""
        self._run = run
        self._name = name
        self._clock = clock
        self._journal = journal
        self._legacy_lists = legacy_lists
        self._own_seq = 0
        self._records: deque[Record] = deque()
        self._lock = Lock()
        if journal is not None:
            journal.on_change = lambda condition: self.record(
                JournalChanged(self._name, condition.failure, condition.lost)
            )

    def append(self, record: Record) -> None:
        self._records.append(record)
        log_record(record, legacy=self._legacy_lists)
        if self._journal is not None:
            self._journal.append(record)

    def record(self, event: Event) -> None:
        """Record an event of the operator, the network or the disk, under the name of the cluster. From any thread."""
        with self._lock:
            self._own_seq += 1
            at = self._clock.now_us()
            utc = self._clock.utc_origin_us + at
            self.append(Record(self._run, self._name, self._run, self._own_seq, at, utc, event, form=FORM))

    def drain(self) -> list[Record]:
        """Return the records since the last call, oldest first. For one reader, in any thread."""
        records = self._records
        return [records.popleft() for _ in range(len(records))]

    def flush(self) -> None:
        """Have the journal on disk. Raises `JournalFailed` when it cannot be written."""
        if self._journal is not None:
            self._journal.flush()


def log_record(record: Record, *, legacy: bool) -> None:
    """Write the text of `record` into the log, if it belongs in the log; `legacy` is the list format without a version."""
    if not _LOG.isEnabledFor(logging.INFO):
        return
    match record.event:
        case ListInstalled(version, lineage, _, members):
            text = member_list_text(MemberList(version, members, lineage), record.uuid, legacy=legacy)
            _LOG.info("%s\n\n%s\n", record.member, text)
        case SuspicionRaised(suspect, uuid, reason):
            _LOG.warning("%s: %s - %s is suspected to be dead for reason: %s", record.member, suspect, uuid, reason)
        case SuspicionCleared(suspect, uuid, reason):
            _LOG.info("%s: removed suspicion of %s - %s. Reason: %s", record.member, suspect, uuid, reason)
