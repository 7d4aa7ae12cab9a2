"""A journal that tests write record by record, and what there is to find in it."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import OPEN_DIRECTORY, OPEN_SUFFIX, file_stem, run_directory
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.group_judge import judge_group
from quarterdeck.backend.pipeline.rules import Finding, by_weight, linked
from quarterdeck.backend.pipeline.streaming.followed_run import QUESTION
from tests.pipeline.journal_builder import line

RUN = "troubled"


class Journal:
    """Files as the members of a run write them, each its own; `n1` writes what was done to the cluster, too."""

    def __init__(self, root: Path, records: list[Record]) -> None:
        self.root = root
        self.directory = run_directory(root, RUN)
        self.directory.mkdir(parents=True)
        (root / OPEN_DIRECTORY).mkdir()
        self.records = records
        self.sealed: list[Path] = []
        self._numbers: dict[str, int] = {}
        self._open: dict[str, Path] = {}

    def write(self, record: Record) -> None:
        writer = record.member
        if writer not in self._open:
            number = self._numbers[writer] = self._numbers.get(writer, 0) + 1
            self._open[writer] = self.root / OPEN_DIRECTORY / f"{file_stem(writer, number)}{OPEN_SUFFIX}"
        with self._open[writer].open("ab") as file:
            file.write(line(record))

    def seal(self, writer: str) -> None:
        if file := self._open.pop(writer, None):
            self.sealed.append(file.rename(self.directory / file.name.removesuffix(".open")))

    def seal_all(self) -> None:
        for writer in sorted(self._open):
            self.seal(writer)

    @property
    def writing(self) -> list[str]:
        return sorted(self._open)


def expected(journal: Journal) -> list[Finding]:
    """What the audit finds when all files are there from the beginning, but for what is about the end of a run."""
    (verdict,) = judge_group([InputFile(str(file), str(file)) for file in journal.sealed], QUESTION).runs
    return by_weight([linked(finding, journal.directory) for finding in verdict.findings])
