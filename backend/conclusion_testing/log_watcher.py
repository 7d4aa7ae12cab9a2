"""An operator with the logs of some members of Hazelcast watches a simulated run, through the reader of logs.

Of some members there is no log. Of others its beginning is gone, its clock is apart, it is spread over rotated files, or its last
line is cut.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from quarterdeck.backend.conclusion_testing.client_watcher import UTC_MS
from quarterdeck.backend.conclusion_testing.log_rendering import RenderedLog
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US
from quarterdeck.backend.hazelcast.last_words import NOTICED_US
from quarterdeck.backend.hazelcast.logs.log_files import NoLogs
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.judgement.watcher import recorded_watcher
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.simulation.virtual_time.world import World

LOGGED_PROBABILITY, BEHEADED_PROBABILITY, APART_PROBABILITY, CUT_PROBABILITY = 0.85, 0.2, 0.3, 0.5
MOST_APART_US = SECOND_US // 2
"""The clocks of two members differ so much, at most."""
BEHEADED_US = 40 * SECOND_US
ROTATED_LINES = 40
"""A file of the log has so many records, at most, where it is rotated."""
UTC_US = UTC_MS * MILLISECOND_US


class _LogFile(Struct):
    """The log of one member."""

    log: RenderedLog
    from_us: int
    """What it logged before is gone."""
    rotates: bool
    texts: list[str]
    latest_us: int = 0


class LogsOfMembers:
    """A console that has logs only. Members are named by their addresses."""

    name = "logs"
    every = 4
    """To read all logs costs more than the simulation between two moments."""
    sees_links = sees_backups = False

    def __init__(self, seed: int, silence_us: int) -> None:
        """Watch a run whose members suspect one another after a silence of `silence_us`.

        Only then another log shows it, and only when the member should have noticed its removal its silence shows something.
        """
        self._draws = Random(f"{seed}/logs")
        self._folder = TemporaryDirectory(prefix="quarterdeck-logs-")
        self._files: dict[str, _LogFile | None] = {}
        self._labels: dict[str, str] = {}
        self.late_us = silence_us + NOTICED_US + 5 * SECOND_US
        self.measured_us = self.late_us

    def take(self, record: Record) -> None:
        """Let a member log what has happened."""
        file = self._files.get(record.member)
        if file is not None and record.uuid != record.run and record.at >= file.from_us:
            lines = file.log.lines(record, UTC_US + record.at)
            if lines:
                file.texts.append(lines)
                file.latest_us = record.at

    def look(self, world: World) -> None:
        """Open the log of each member that is new."""
        for label, node in world.nodes.items():
            if label not in self._files:
                self._labels[node.address] = label
                draws = self._draws
                apart_us = int((draws.random() * 2 - 1) * MOST_APART_US) if draws.random() < APART_PROBABILITY else 0
                from_us = int(draws.random() * BEHEADED_US) if draws.random() < BEHEADED_PROBABILITY else 0
                file = _LogFile(RenderedLog(node.address, apart_us), from_us, draws.random() < 0.5, [])
                self._files[label] = file if draws.random() < LOGGED_PROBABILITY else None

    def judge(self, now_us: int) -> Judge:
        """Read all logs anew, and judge by what they say of the time of their last line."""
        picture = Picture()
        for record in self._records(now_us):
            picture.apply(record)
        return Judge(picture, recorded_watcher(picture), min(picture.at + 2 * MOST_APART_US, now_us))

    def label_of(self, name: str) -> str:
        return self._labels.get(name, name)

    def _records(self, now_us: int) -> list[Record]:
        folder = Path(self._folder.name)
        for label, file in self._files.items():
            if file is not None and file.texts:
                is_cut = now_us - file.latest_us < SECOND_US and self._draws.random() < CUT_PROBABILITY
                self._write(folder, label, file, is_cut=is_cut)
        try:
            records = read_logs([folder], LogOptions(run="logs")).records
        except NoLogs:
            return []
        if not records:
            return []
        began_us = sorted(record.utc - record.at for record in records)[len(records) // 2] - UTC_US
        return [replace(record, at=record.at + began_us) for record in sorted(records, key=lambda record: record.at)]

    def _write(self, folder: Path, label: str, file: _LogFile, *, is_cut: bool) -> None:
        size = ROTATED_LINES if file.rotates else len(file.texts)
        parts = ["".join(file.texts[at : at + size]) for at in range(0, len(file.texts), size)]
        if is_cut:  # the last line is being written
            parts[-1] = parts[-1][: -int(60 * self._draws.random()) - 1]
        for number, part in enumerate(parts, start=1):
            (folder / f"{label}.{number:03}.log").write_text(part, encoding="utf-8")
