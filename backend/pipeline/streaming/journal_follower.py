"""Audits a journal while it grows, in this process: finds what was added to each run, and has it judged.

Its files are the findings beside the journal, and the checkpoint, which says how far the stream has come. A run that grows is
read again after a restart, which takes a second for 25 MB of it. The caller provides the clock.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from quarterdeck.backend.journal.files import NOT_DECODABLE
from quarterdeck.backend.pipeline.commit import write_whole
from quarterdeck.backend.pipeline.growth import GrowingJournals, Piece, RunOffset, pieces_of_run, with_merged
from quarterdeck.backend.pipeline.rules import Finding, QuarantinedLine
from quarterdeck.backend.pipeline.streaming.followed_run import QUIET_MS, SETTLE_MS, Block, Blocks, FollowedRun

MAX_RUNS_IN_MEMORY = 32
"""Beyond this number, runs without waiting records are forgotten, and read again if more of them comes."""

MAX_PROBLEMS_PRINTED = 20
LETTERS_SHOWN = 80


@dataclass
class _Run:
    """A run in memory, and the pieces of files that came of it, each with when it came, in ms."""

    followed: FollowedRun
    pieces: dict[Piece, int]
    known: int = 0
    """How many of these were reported already."""
    came_ms: int = 0
    settle_ms: int = SETTLE_MS


class JournalFollower:
    """Keeps `findings` and `checkpoint` equal to what was read of the journal at `path`: its root, or the directory of one run.

    Times are in ms on the caller's monotonic clock. `on_change` is called with each change, `on_message` with messages for the
    user. Raises OSError when the disk refuses.
    """

    def __init__(
        self,
        path: Path,
        checkpoint: StreamCheckpoint,
        findings: FindingsFile,
        on_change: Callable[[FindingsChange], None],
        on_message: Callable[[str], None],
    ) -> None:
        self.lines = 0
        self.problems = 0
        """Lines that are no records."""
        self._journals = GrowingJournals([path])
        self._checkpoint, self._findings = checkpoint, findings
        self._on_change, self._on_message = on_change, on_message
        self._read: dict[str, RunOffset] = checkpoint.runs()
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        """In the order of use."""
        self._gone: dict[Path, None] = {}
        """Files that are not there any more, of those that were to be read again."""

    def look(self, now_ms: int, *, at_once: bool = False) -> bool:
        """Read what is new, and judge what has settled; everything `at_once`, if wanted. Return whether anything was new."""
        ((root, offsets),) = self._journals.offset().items()
        grown = [run for run, offset in offsets.items() if offset != self._read.get(run)]
        for run in grown:
            known = self._load(root, run)
            pieces = pieces_of_run(root, run, self._read.get(run, {}), offsets[run])
            known.pieces |= dict.fromkeys(with_merged(pieces), now_ms)
            known.came_ms = now_ms
            self._read[run] = offsets[run]
        for run in [run for run in self._runs if run in grown or self._runs[run].followed.waits]:
            self._judge(run, self._runs[run], now_ms, at_once=at_once)
        idle = [run for run, known in self._runs.items() if not known.followed.waits]
        for run in idle[: max(0, len(self._runs) - MAX_RUNS_IN_MEMORY)]:
            del self._runs[run]
        return bool(grown)

    def _load(self, root: str, run: str) -> _Run:
        """Return the run; one that was forgotten, or read by an earlier process, with all that was read of it."""
        if run not in self._runs:
            pieces = dict.fromkeys(with_merged(pieces_of_run(root, run, {}, self._read.get(run, {}))), 0)
            self._runs[run] = _Run(FollowedRun(run), pieces, len(pieces))
        self._runs.move_to_end(run)
        return self._runs[run]

    def _judge(self, run: str, known: _Run, now_ms: int, *, at_once: bool) -> None:
        counted = known.known

        def kept(first: int) -> Iterator[Blocks]:
            nonlocal counted
            if first == 0 and followed.taken:
                known.pieces = {piece: known.pieces.get(piece, 0) for piece in with_merged(known.pieces)}
            for number, (piece, came_ms) in enumerate(islice(known.pieces.items(), first, None), start=first):
                block = self._block(piece, is_new=number >= counted)
                counted = max(counted, number + 1)
                yield Blocks(came_ms, (block,))

        followed = known.followed
        followed.kept = kept
        found = followed.judge(
            -1,
            inf if at_once else now_ms - known.settle_ms,
            is_quiet=at_once or now_ms - known.came_ms >= QUIET_MS,
            known=known.known,
        )
        self._report(followed.problems)
        if self._gone:
            more = f" and {len(self._gone) - 1} more" * (len(self._gone) > 1)
            self._on_message(f"{next(iter(self._gone))}{more}: read before and gone; what was in there is missing now")
            self._gone = {}
        followed.taken = known.known = len(known.pieces)
        if followed.is_judged_anew:
            self._on_message(f"run {run}: a record came after later ones were judged; the run is judged anew")
            known.settle_ms = min(
                2 * known.settle_ms, QUIET_MS
            )  # so that a slow writer does not make this happen again
        if found is not None:
            change = self._findings.state(run, found)
            if change.added or change.withdrawn:
                self._on_change(change)
        if not followed.waits:
            self._checkpoint.add(run, self._read[run])

    def _block(self, piece: Piece, *, is_new: bool) -> Block:
        try:
            content = piece.read()
        except FileNotFoundError:
            self._gone[piece.file] = None
            content = b""
        if is_new:
            self.lines += content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
        return Block(str(piece.file), piece.start, content)

    def _report(self, problems: Sequence[QuarantinedLine]) -> None:
        for problem in problems:
            self.problems += 1
            if self.problems <= MAX_PROBLEMS_PRINTED:
                self._on_message(f"{problem.file}: {problem.line[:LETTERS_SHOWN]!r} {problem.reason}")


CHECKPOINT = "read.jsonl"


class FindingsChange(NamedTuple):
    """What was added to the findings of a run, and what no longer holds."""

    added: tuple[Finding, ...]
    withdrawn: tuple[Finding, ...]


class FindingsFile:
    """The present findings of each run, one JSON object a line, each once, which others read while the file grows.

    Lines are appended. Only when a finding no longer holds, because a record came late, is the file replaced as a whole, so
    that a reader sees either the old one or the new one. Raises OSError when the disk refuses.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, dict[bytes, Finding]] = {}
        """By run, in the order of the file."""
        for line in _whole_lines(path):
            try:
                finding = msgspec.json.decode(line, type=Finding)
            except NOT_DECODABLE:
                continue  # written by another program; it stays until the file is replaced
            self._lines.setdefault(finding.run, {})[msgspec.json.encode(finding)] = finding

    def of_run(self, run: str) -> tuple[Finding, ...]:
        return tuple(self._lines.get(run, {}).values())

    def violations(self) -> int:
        return sum(found.severity == "violation" for lines in self._lines.values() for found in lines.values())

    def state(self, run: str, findings: Sequence[Finding]) -> FindingsChange:
        """Make these the findings of `run`."""
        known = self._lines.get(run, {})
        wanted = {msgspec.json.encode(finding): finding for finding in findings}
        added = {line: finding for line, finding in wanted.items() if line not in known}
        withdrawn = tuple(finding for line, finding in known.items() if line not in wanted)
        if withdrawn:
            self._lines[run] = wanted
            content = b"".join(line + b"\n" for lines in self._lines.values() for line in lines)
            write_whole(self.path.parent, self.path.name, content)
        elif added:
            _append(self.path, added)
            self._lines[run] = known | added
        return FindingsChange(tuple(added.values()), withdrawn)


class CheckpointGarbled(ValueError):
    """The checkpoint of a stream cannot be read, or is of another journal. The message says what helps."""


class _Entry(Struct):
    """A line of the checkpoint: up to where a run was read and judged. The last line of a run counts."""

    run: str
    read: RunOffset
    journal: str = ""
    """Where the journal is, seen from the checkpoint."""


class StreamCheckpoint:
    """How far the stream of `journal` has come, in `directory`. Raises OSError when the disk refuses, and `CheckpointGarbled`."""

    def __init__(self, directory: Path, journal: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        # Relative, so that a journal that moves with its checkpoint stays the same.
        self._journal = os.path.relpath(journal.resolve(), directory.resolve())
        self._path = directory / CHECKPOINT
        self._runs: dict[str, RunOffset] = {}
        for number, line in enumerate(_whole_lines(self._path), start=1):
            try:
                entry = msgspec.json.decode(line, type=_Entry)
            except NOT_DECODABLE as problem:
                raise CheckpointGarbled(
                    f"{self._path}: line {number} was not written by a stream; remove {directory} to read everything again"
                ) from problem
            if entry.journal not in ("", self._journal):
                raise CheckpointGarbled(
                    f"{self._path}: is of another journal, {entry.journal}; name another checkpoint, "
                    f"or remove {directory} to read everything again"
                )
            self._runs[entry.run] = entry.read

    def runs(self) -> dict[str, RunOffset]:
        """Return by run up to where it was read when everything until there was judged."""
        return dict(self._runs)

    def add(self, run: str, read: RunOffset) -> None:
        """Record durably that everything up to there was judged, and its findings are written."""
        if self._runs.get(run) != read:
            self._runs[run] = read
            _append(self._path, [msgspec.json.encode(_Entry(run, read, self._journal))])


def _whole_lines(path: Path) -> list[bytes]:
    """Return the whole lines of a file, if it exists; cut off one that a killed process left unfinished."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    return whole.splitlines()


def _append(path: Path, lines: Iterable[bytes]) -> None:
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())
