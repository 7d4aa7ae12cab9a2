"""What a stream has read, on disk: the names of the files of each run, and from time to time what was made of them.

A finished file never changes, so the names are all that is needed to make everything again. The state of a run is kept beside
them to spare that work; it is worth nothing to another version of the program, or to another user, who then reads the files
again: a pickle does what whoever wrote it wants, and journals come from anywhere.
"""

from __future__ import annotations

import hmac
import os
import pickle
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import platformdirs
from msgspec import Struct

from quarterdeck.backend.journal.files import checked_name
from quarterdeck.backend.pipeline.spark.package_archive import sources_digest
from quarterdeck.backend.pipeline.streaming.findings_file import write_out
from quarterdeck.backend.pipeline.streaming.run_audit import RunAudit

FEWEST_RECORDS = 20_000
"""A state is saved when so many records came since, and as many as there were: all states of a run cost as much as two."""


class _Entry(Struct, omit_defaults=True):
    """One line: files that were read, or that all their records are judged."""

    run: str
    files: tuple[str, ...] = ()
    is_settled: bool = False


class _State(Struct):
    program: str
    files: int
    """How many of the run's files had been read."""
    pickled: bytes
    seal: bytes
    """Made of the pickle with a secret of the user: nobody else's is opened."""


KEY_BYTES = 32

_ENTRY = msgspec.json.Decoder(_Entry)
_STATE = msgspec.msgpack.Decoder(_State)


class ProcessedFiles:
    """The account of a stream in `directory`. Raises OSError when the disk refuses."""

    def __init__(self, directory: Path) -> None:
        self._states = directory / "runs"
        self._states.mkdir(parents=True, exist_ok=True)
        self._program = sources_digest()
        self._key = _users_key()
        self._files: dict[str, dict[str, None]] = {}
        self._unsettled: dict[str, None] = {}
        self._saved_records: dict[str, int] = {}
        """By run, how many records the state on disk stands for."""
        path = directory / "consumed.jsonl"
        self._read(path)
        self._descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)

    def close(self) -> None:
        """Nothing more is noted."""
        os.close(self._descriptor)

    def files(self, run: str) -> Mapping[str, None]:
        """The names of the run's files that were read, in the order of reading."""
        return self._files.get(run, {})

    def unsettled(self) -> Sequence[str]:
        """The runs of which records may have waited to be judged when the stream ended."""
        return tuple(self._unsettled)

    def add(self, files: Mapping[str, Sequence[str]]) -> None:
        """Note, durably, that these files of each run were read."""
        entries = []
        for run, names in files.items():
            known = self._files.setdefault(run, {})
            if fresh := tuple(name for name in names if name not in known):
                known.update(dict.fromkeys(fresh))
                entries.append(_Entry(run, fresh))
                self._unsettled[run] = None
        self._append(entries)

    def settle(self, run: str) -> None:
        """Note that every record of the run was judged, and what was found is written down."""
        if run in self._unsettled:
            del self._unsettled[run]
            self._append([_Entry(run, is_settled=True)])

    # States

    def is_worth_saving(self, audit: RunAudit) -> bool:
        """Whether so much was judged since the last state that another one pays."""
        saved = self._saved_records.get(audit.run, 0)
        return audit.judged - saved >= max(FEWEST_RECORDS, saved)

    def save_state(self, audit: RunAudit) -> None:
        """Write the state of a run as it is."""
        if audit.judged == self._saved_records.get(audit.run):
            return
        pickled = pickle.dumps(audit, pickle.HIGHEST_PROTOCOL)
        state = _State(self._program, len(self.files(audit.run)), pickled, self._seal(pickled))
        path = self._path(audit.run)
        beside = path.with_suffix(".new")
        with beside.open("wb") as file:
            file.write(msgspec.msgpack.encode(state))
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
        self._saved_records[audit.run] = audit.judged

    def load_state(self, run: str) -> tuple[RunAudit, Sequence[str]]:
        """The run as it was saved last, or as it began, and the files that were read since."""
        names = tuple(self.files(run))
        try:
            state = _STATE.decode(self._path(run).read_bytes())
        except (FileNotFoundError, msgspec.MsgspecError):
            return RunAudit(run), names
        if state.program != self._program or state.files > len(names):
            return RunAudit(run), names
        if not hmac.compare_digest(state.seal, self._seal(state.pickled)):
            return RunAudit(run), names
        audit: RunAudit = pickle.loads(state.pickled)
        self._saved_records[run] = audit.judged
        return audit, names[state.files :]

    def _seal(self, pickled: bytes) -> bytes:
        return hmac.digest(self._key, pickled, "sha256")

    def _path(self, run: str) -> Path:
        return self._states / f"{checked_name('run', run)}.state"

    # The account

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):  # the process ended while it wrote; Spark gives these files again
            os.truncate(path, len(whole))
        for line in whole.splitlines():
            entry = _ENTRY.decode(line)
            if entry.is_settled:
                self._unsettled.pop(entry.run, None)
            else:
                self._files.setdefault(entry.run, {}).update(dict.fromkeys(entry.files))
                self._unsettled[entry.run] = None

    def _append(self, entries: Sequence[_Entry]) -> None:
        if entries:
            write_out(self._descriptor, b"".join(msgspec.json.encode(one) + b"\n" for one in entries))


def _users_key() -> bytes:
    """A secret of this user, the same next time. Where none can be kept it is one for now: later, states are read by nobody."""
    path = platformdirs.user_state_path("quarterdeck") / "stream.key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with tempfile.NamedTemporaryFile(
                dir=path.parent, prefix=".stream-"
            ) as file:  # which only its owner can read
                file.write(secrets.token_bytes(KEY_BYTES))
                file.flush()
                with suppress(FileExistsError):  # another stream was quicker
                    os.link(file.name, path)
        key = path.read_bytes()
    except OSError:
        key = b""
    return key if len(key) == KEY_BYTES else secrets.token_bytes(KEY_BYTES)
