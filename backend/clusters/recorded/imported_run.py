"""A journal that was made of members' logs, as a recorded run that still knows the line of each record and what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quarterdeck.backend.clusters.observed_story import story_notes
from quarterdeck.backend.clusters.recorded.log_excerpt import short_name
from quarterdeck.backend.clusters.recorded.log_lines import ImportedLogs, RecordLines
from quarterdeck.backend.clusters.recorded.recorded_cluster import RecordedCluster
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.observations.story import LogStory
from quarterdeck.backend.hazelcast.logs.run_reader import LogLine


class ImportedRun(RecordedCluster):
    """The run in the journal at `path`, with what was `imported` beside it. The lines can be read where the logs still stand."""

    def __init__(
        self, path: Path, imported: ImportedLogs, run: str | None = None, *, until_us: int | None = None
    ) -> None:
        super().__init__(path, run, until_us=until_us)
        self._story = imported.story
        self._logs = Path(imported.logs)
        self._lines = RecordLines.of(imported.lines)

    @property
    def story(self) -> LogStory:
        """What was observed in the logs, of which the journal has only the events."""
        return self._story

    def line_of(self, record: Record) -> LogLine | None:
        """Where in the logs a record comes from."""
        return self._lines.get(record)

    def place_of(self, record: Record) -> str:
        """Return the line of the log as people write it; empty when that is not known."""
        line = self._lines.get(record)
        return short_name(line, self._logs) if line is not None else ""

    def notes(self) -> Sequence[str]:
        """How the reading goes, and what is observed."""
        return [*super().notes(), *story_notes(self.story)]
