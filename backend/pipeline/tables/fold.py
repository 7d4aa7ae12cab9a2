"""One update of a store: folds new lines into the events, and makes the tables of runs that have changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from quarterdeck.backend.journal.files import OPEN_DIRECTORY, OPEN_SUFFIX, RUN_PREFIX
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import AuditInput, Group
from quarterdeck.backend.pipeline.commit import PARQUET, RunBatch, TableManifest
from quarterdeck.backend.pipeline.judging.lines import NO_RUN
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.tables.batches import (
    ARROW,
    MOST_SMALL,
    SMALL_BYTES,
    BatchWriter,
    needed,
    put_together,
    rows_of_runs,
    without_runs,
)
from quarterdeck.backend.pipeline.tables.run_events import RunLines

Parts = Mapping[str, Sequence[Path]]
"""The files of a store by table."""


class RunDivided(Exception):
    """Raised where lines of one run come in several groups of files: these have to be read as one."""


class Folded(NamedTuple):
    """The result of a fold: the batches of the store, which of their files are `kept` unchanged, and the runs that changed."""

    batches: dict[str, RunBatch]
    kept: dict[str, list[str]]
    runs: tuple[str, ...]
    records: int
    quarantined: int


class Fold:
    """Builds the files of a store that change, in `folder`."""

    def __init__(self, folder: Path, manifest: TableManifest, parts: Parts) -> None:
        self._folder, self._manifest, self._parts = folder, manifest, parts
        self._writer = BatchWriter(folder)
        self._known = {run for batch in manifest.batches.values() for run in batch.runs}
        self._anew: set[str] = set()
        """Rebuilt from their kept lines and the new ones."""
        self._derived: set[str] = set()
        """Runs that grow, and whose tables are made anew."""
        self._seen: set[str] = set()
        self._reread: set[str] = set()
        """Files whose quarantined lines are read again."""
        self._records = Counter[str]()
        self._quarantined = Counter[str]()
        for name in ARROW:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def make_anew(self) -> None:
        """Fold in all lines of the store, which is of another form; in earlier ones each run has a directory."""
        self._anew |= self._known
        runs: dict[str, list[Path]] = defaultdict(list)
        for part in (*self._parts["events"], *self._parts["quarantine"]):
            if part.parent.name.startswith(RUN_PREFIX):
                runs[unquote(part.parent.name.removeprefix(RUN_PREFIX))].append(part)
        for run, parts in runs.items():
            lines = RunLines()
            for table in rows_of_runs(parts, ["run", "raw", "file"]):
                add_rows(lines, table, run)
            self._fold(lines)

    def reread(self, new: AuditInput) -> None:
        """Note that files are read again, with the same lines."""
        self._reread = names_read_again(new)
        for table in rows_of_runs(self._parts["quarantine"], ["run", "file"]) if self._known else ():
            for run, file in zip(table["run"].to_pylist(), table["file"].to_pylist(), strict=True):
                self._quarantined[run] += 1
                if file in self._reread:
                    self._anew.add(run)

    def add(self, group: Group) -> None:
        """Fold in the lines of some files. Raises `RunDivided` and OSError."""
        lines = RunLines()
        lines.read(group)
        if not self._seen.isdisjoint(lines.records):
            raise RunDivided
        self._fold(lines)

    def end(self) -> Folded:
        """Finish what is left to do, and return what has been made."""
        for batch in self._manifest.batches.values():
            if left := self._anew.intersection(batch.runs) - self._seen:
                self._fold(self._kept_lines(left), is_whole=True)
        self._writer.close()
        batches, kept = self._kept_batches()
        batches |= self._writer.batches
        self._compact(batches, kept)
        for name, fields in ARROW.items():
            if not kept[name] and not any((self._folder / name).iterdir()):
                pq.write_table(fields.empty_table(), self._folder / name / f"empty{PARQUET}")
        changed = self._seen | self._derived
        records = sum(self._records[run] for run in changed)
        quarantined = sum(self._quarantined[run] for run in changed)
        if not self._records[NO_RUN]:
            changed.discard(NO_RUN)  # stray lines make no run
        return Folded(batches, kept, tuple(sorted(changed)), records, quarantined)

    def _fold(self, lines: RunLines, *, is_whole: bool = False) -> None:
        """Fold in lines; `is_whole`: those that are kept of runs that are made anew are among them."""
        runs = lines.runs()
        self._seen.update(runs)
        kept = self._leave_known_out(lines, {run for run in runs if run in self._known} - self._anew)
        again = self._anew.intersection(runs) & self._known
        if again and not is_whole:
            self._kept_lines(again, lines)
        for run in lines.runs():
            events, columns = lines.events(run)
            aside = lines.quarantine.get(run, ())
            self._writer.add_lines(run, events, columns, aside)
            self._quarantined[run] = len(aside) + (0 if run in self._anew else self._quarantined[run])
            if run not in kept:
                self._records[run] = len(events)
                if events:
                    self._writer.derive(run, columns)
            else:
                self._records[run] = kept[run] + columns.num_rows
                if columns.num_rows:
                    self._derive_with_kept(run, columns)
            self._writer.end_run()

    def _derive_with_kept(self, run: str, columns: pa.Table) -> None:
        """Make the tables of a run of its kept events and these."""
        self._derived.add(run)
        kept = rows_of_runs(self._parts_of("events", {run}), [*RECORD.names], {run})
        self._writer.derive(run, pa.concat_tables([needed(columns), *map(needed, kept)]))

    def _leave_known_out(self, lines: RunLines, runs: set[str]) -> dict[str, int]:
        """Leave out what `runs` contain already; return how many events each of them has.

        A run with a contradicted record has to be rebuilt: which record is the first shows only when all are side by side.
        """
        if not runs:
            return {}
        counts = dict.fromkeys(runs, 0)
        new = {(run, line.uuid, line.seq) for run in runs for line in lines.records.get(run, ())}
        known: dict[tuple[str, str, int], bytes] = {}
        for table in rows_of_runs(self._parts_of("events", runs), ["run", "uuid", "seq", "raw"], runs):
            columns = (table[name].to_pylist() for name in ("run", "uuid", "seq"))
            for place, identity in enumerate(zip(*columns, strict=True)):
                counts[identity[0]] += 1
                if identity in new:
                    known[identity] = table["raw"][place].as_py().encode()
        for run in runs:
            of_run = lines.records.get(run, [])
            if any(known.get((run, line.uuid, line.seq), line.raw) != line.raw for line in of_run):
                self._anew.add(run)
                del counts[run]
            else:
                lines.records[run] = [line for line in of_run if (run, line.uuid, line.seq) not in known]
        return counts

    def _kept_lines(self, runs: set[str], lines: RunLines | None = None) -> RunLines:
        """Return the lines that are kept of `runs`, but for quarantined ones of files that are read again."""
        lines = lines or RunLines()
        for table in rows_of_runs(self._parts_of("events", runs), ["run", "raw", "file"], runs):
            add_rows(lines, table)
        for table in rows_of_runs(self._parts["quarantine"], ["run", "raw", "file"], runs):
            fresh = [file not in self._reread for file in table["file"].to_pylist()]
            add_rows(lines, table.filter(pa.array(fresh)))
        for run in runs:
            lines.records.setdefault(run, [])
        return lines

    def _parts_of(self, name: str, runs: set[str]) -> list[Path]:
        batches = {batch for batch, made in self._manifest.batches.items() if not runs.isdisjoint(made.runs)}
        return [part for part in self._parts[name] if part.stem in batches]

    def _kept_batches(self) -> tuple[dict[str, RunBatch], dict[str, list[str]]]:
        """Return the batches from before without what was made anew, and which of their files are as they were."""
        batches: dict[str, RunBatch] = {}
        kept: dict[str, list[str]] = {name: [] for name in ARROW}
        by_name = {(name, part.stem): part for name, parts in self._parts.items() for part in parts}
        for batch, made in self._manifest.batches.items():
            rows = dict(made.rows)
            for name in made.rows:
                gone = (self._anew if name in ("events", "quarantine") else self._anew | self._derived) & {*made.runs}
                part = by_name[name, batch]
                left = without_runs(part, self._folder / name / part.name, gone) if gone else None
                if left is None:
                    kept[name].append(part.name)
                else:
                    rows[name] = left
            if any(rows.values()):
                runs = tuple(run for run in made.runs if run not in self._anew)
                batches[batch] = RunBatch(runs, {name: count for name, count in rows.items() if count})
        return batches, kept

    def _compact(self, batches: dict[str, RunBatch], kept: dict[str, list[str]]) -> None:
        """Put small batches together where there are many of them."""
        sizes: Counter[str] = Counter()
        paths: dict[str, dict[str, Path]] = {name: {} for name in ARROW}
        for name in ARROW:
            old = [part for part in self._parts[name] if part.name in kept[name]]
            for path in (*old, *(self._folder / name).glob(f"*{PARQUET}")):
                paths[name][path.stem] = path
                sizes[path.stem] += path.stat().st_size
        small = [batch for batch in batches if sizes[batch] < SMALL_BYTES]
        if len(small) <= MOST_SMALL:
            return
        together = uuid4().hex[:12]
        found = {name: [paths[name][batch] for batch in small if batch in paths[name]] for name in ARROW}
        rows = put_together(found, self._folder, together)
        runs = {run for batch in small for run in batches.pop(batch).runs}
        batches[together] = RunBatch(tuple(sorted(runs)), rows)
        for name, files in found.items():
            gone = {file.name for file in files}
            kept[name] = [file for file in kept[name] if file not in gone]
            for file in gone:
                commit.remove(self._folder / name / file)


def names_read_again(new: AuditInput) -> set[str]:
    """Return the names of these files, also those that they had while they were open: with the same lines."""
    places = {file.place for file in new.files}
    finished = [] if new.is_far else list(map(Path, places))
    return places | {str(path.parent.parent / OPEN_DIRECTORY / f"{path.stem}{OPEN_SUFFIX}") for path in finished}


def add_rows(lines: RunLines, table: pa.Table, run: str = "") -> None:
    """Add kept lines: rows with `run`, `raw` and `file`; `run` is that of rows without one."""
    columns = (table[name].to_pylist() for name in ("run", "raw", "file"))
    for named, raw, file in zip(*columns, strict=True):
        lines.add(raw.encode(), file, named or run)
