"""What is wrong with this run: invariants watched live, findings of the stream as they come, and the audit on Spark on demand."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from textual.widget import Widget
from textual.worker import Worker, WorkerState

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.columns import BoardModel, ColumnOf, SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.audit.findings import (
    FINDINGS_FILE,
    AuditFailed,
    AuditReport,
    AuditRunner,
    FollowedFindings,
    HasJournal,
    Origin,
    ShownFinding,
    audited_path,
    findings_places,
    of_run,
    of_violation,
)
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import Refusal, clock_text, counted, one_line, with_names
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine

LONGEST_NAME = 16
LONGEST_RULE = 24
NAMES_ROOM = 20
"""Cells in addition, for names may be longer than the addresses that they replace."""

GLYPHS = {"violation": ("✕", "bad"), "warning": ("!", "warning")}


class FindingRow(NamedTuple):
    """A finding, its origin, and its text with names in place of addresses."""

    origin: Origin
    finding: ShownFinding
    sentence: str

    @property
    def glyph(self) -> tuple[str, str]:
        return GLYPHS.get(self.finding.severity, ("·", "plain"))


COLUMNS: tuple[ColumnOf[FindingRow], ...] = (
    ColumnOf(
        "severity",
        lambda row: one_line(f"{row.glyph[0]} {row.finding.severity}"),
        lambda row: row.glyph[1],
        "✕ violation",
    ),
    ColumnOf("source", lambda row: row.origin, "faint"),
    ColumnOf("at", lambda row: clock_text(row.finding.at), widest="99999.999", rank=lambda row: row.finding.at),
    ColumnOf("member", lambda row: one_line(row.finding.member), "strong"),
    ColumnOf("rule", lambda row: one_line(row.finding.rule)),
    ColumnOf("what was found", lambda row: row.sentence, widest=NAMES_ROOM),
)


STARTING = "Spark is starting"


class AuditScreen(ViewScreen):
    """The findings. An audit ends with the view's console."""

    view = "audit"
    detailed = True
    DEFAULT_CSS = """
    AuditScreen .audit-line { height: 1; }
    """

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self.runner = AuditRunner()
        self._run = ""
        self._model = BoardModel(COLUMNS, fixed=1)
        self._online: tuple[ShownFinding, ...] = ()
        self._stream: tuple[ShownFinding, ...] = ()
        self._files: dict[Path, FollowedFindings] = {}
        self._report: AuditReport | None = None
        self._outcome: tuple[str, str] = ("", "plain")
        self._worker: Worker[AuditReport] | None = None
        self._begun_s = 0.0
        self._shown: object = None
        self.watched_line = StatusLine(classes="audit-line", most_lines=2)
        self.audit_line = StatusLine(classes="audit-line", most_lines=2)
        self.main = self.findings = LineTable(SortFilterModel(self._model), id="findings")

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.watched_line, self.audit_line, self.findings

    @property
    def journal(self) -> Path | None:
        """Where the run is recorded, if that is known."""
        for source in (self.session, self.session.cluster):
            if isinstance(source, HasJournal):
                return source.journal_path
        return None

    def receive(self, records: Sequence[Record]) -> None:
        if records:
            self._run = records[-1].run

    def tick(self, *, news: bool) -> None:
        """Update the seconds of a running audit, too."""
        super().tick(news=news or self._worker is not None)

    def paint(self) -> None:
        found = self._found()
        counts = {origin: len(findings) for origin, findings in found.items()}
        self._show_head(counts)
        shown = (counts, self._report)
        if shown != self._shown:
            self._shown = shown
            self._show_rows(found)
            if self.sort_filter is not None:
                self.sort_filter.renew()
            self.findings.show()

    def _show_rows(self, found: Mapping[Origin, Sequence[ShownFinding]]) -> None:
        """Show those watched live first, then those of the stream, then those of the audit."""
        name_of = self.session.picture.label_of
        rows = {
            f"{origin}-{number}": (origin, finding)
            for origin, findings in found.items()
            for number, finding in enumerate(findings)
        }

        def row_of(key: str) -> FindingRow:
            origin, finding = rows[key]
            return FindingRow(origin, finding, one_line(with_names(finding.detail, name_of)))

        self._model.show_rows(tuple(rows), row_of)
        self._model.widen("member", (finding.member for _, finding in rows.values()), LONGEST_NAME)
        self._model.widen("rule", (finding.rule for _, finding in rows.values()), LONGEST_RULE)
        self._model.widen("what was found", (finding.detail for _, finding in rows.values()), gap=NAMES_ROOM)

    def sentence(self) -> Sequence[TableCell]:
        row = self._model.row(self.findings.cursor_key)
        if row is None:
            return ()
        witnesses = f"shown by {counted(len(row.finding.witnesses), 'event')}" if row.finding.witnesses else ""
        return [TableCell(row.sentence), TableCell(witnesses, "faint")]

    def row_pointed(self) -> Hashable:
        return self.findings.cursor_key

    def row_facts(self) -> Sequence[Fact]:
        """Return all cells of the finding, and the finding in words."""
        key, model = self.findings.cursor_key, self.sort_filter
        cells = model.row(key) if key is not None and model is not None else {}
        sentence = " ".join(cell.text for cell in self.sentence())
        return (*(Fact(title, text) for title, text in cells.items() if text), Fact("in words", sentence))

    def targets(self) -> tuple[str, ...]:
        row = self._model.row(self.findings.cursor_key)
        return (row.finding.member,) if row is not None and row.finding.member in self.session.cluster.labels else ()

    def point_at(self, label: str) -> None:
        """Do nothing: rows are no members."""

    # What was found

    def _found(self) -> Mapping[Origin, Sequence[ShownFinding]]:
        violations = self.session.violations
        if len(violations) != len(self._online):
            self._online += tuple(map(of_violation, violations[len(self._online) :]))
        files = self._findings_files()
        changed = [file.look() for file in files]
        if any(changed):
            self._stream = tuple(finding for file in files for finding in of_run(file.findings, self._run))
        audited = of_run(self._report.findings, self._run) if self._report is not None else ()
        return {"online": self._online, "stream": self._stream, "audit": audited}

    def _verdict(self, total: int) -> TableCell:
        """Say how many findings there are; that there are none is known only after an audit."""
        if total:
            return TableCell(counted(total, "finding"), "bad")
        return TableCell("no findings", "good") if self._report is not None else TableCell("not audited yet", "faint")

    def _findings_files(self) -> Sequence[FollowedFindings]:
        journal = self.journal
        if journal is None:
            return ()
        places = [place / FINDINGS_FILE for place in findings_places(journal, self._run)]
        return [self._files.setdefault(path, FollowedFindings(path)) for path in places]

    def _show_head(self, counts: Mapping[Origin, int]) -> None:
        total = sum(counts.values())
        self.title_line.show(
            TableCell("audit", "strong"), self._verdict(total), TableCell(one_line(self._run), "faint")
        )
        watched = f"{counts['online'] or 'no'} violations so far"
        if not self.session.monitored:
            watched = "not watched for members elsewhere"
        bad_lines = sum(file.bad_lines for file in self._files.values())
        self.watched_line.show(
            TableCell("online", "faint"),
            TableCell(watched, "bad" if counts["online"] else "plain"),
            TableCell("stream", "faint"),
            TableCell(str(counts["stream"]) if counts["stream"] else "nothing", "bad" if counts["stream"] else "plain"),
            TableCell(f"{counted(bad_lines, 'line')} unreadable" if bad_lines else "", "warning"),
            *(TableCell(one_line(file.problem), "warning") for file in self._files.values() if file.problem),
        )
        self.audit_line.show(TableCell("audit", "faint"), TableCell(*self._audit_text()))

    def _audit_text(self) -> tuple[str, str]:
        if self._worker is not None:
            elapsed = int(time.monotonic() - self._begun_s)
            return f"◐ running for {elapsed} s: {self.runner.last_line or STARTING} (r stops it)", "warning"
        if self._outcome[0]:
            return self._outcome
        if self.journal is None:
            return "no journal of this run is known here; name one: :audit-run PATH", "plain"
        return f"r checks {one_line(str(self.journal))}", "plain"

    # The audit

    def do_audit_run(self, text: str) -> None:
        """Audit the journal of this run, or the named one; stop an audit that runs."""
        if self._worker is not None:
            self._worker.cancel()
            return
        try:
            journal = Path(text).expanduser() if text else self.journal
        except RuntimeError:
            raise Refusal(f"{text}: this machine has no user of that name; write the folder in full") from None
        if journal is None:
            raise Refusal("no journal of this run is known here; name one: audit-run PATH")
        self._begun_s = time.monotonic()
        audit = self.runner.run(audited_path(journal, self._run))
        self._worker = self.run_worker(audit, group="audit", exclusive=True, exit_on_error=False)
        self.repaint()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.worker is not self._worker or event.state in (WorkerState.PENDING, WorkerState.RUNNING):
            return
        worker, self._worker = self._worker, None
        seconds = int(time.monotonic() - self._begun_s)
        if event.state == WorkerState.SUCCESS and worker.result is not None:
            self._report = worker.result
            self._outcome = self._summary(self._report, seconds)
        elif event.state == WorkerState.CANCELLED:
            self._outcome = (f"stopped after {seconds} s", "warning")
        else:
            problem = worker.error
            why = str(problem) if isinstance(problem, AuditFailed) else f"{type(problem).__name__}: {problem}"
            self._outcome = (f"✕ failed after {seconds} s: {one_line(why)}", "bad")
            self.console.show_message(f"the audit failed: {why}", error=True)
        self.repaint()

    def _summary(self, report: AuditReport, seconds: int) -> tuple[str, str]:
        findings = of_run(report.findings, self._run)
        violations = sum(finding.severity == "violation" for finding in findings)
        records, runs = report.counts.get("records", 0), report.counts.get("runs", 0)
        took = f"{seconds} s" if seconds else "less than 1 s"
        read = f"{counted(records, 'record')} of {counted(runs, 'run')} in {took}"
        quarantined = report.counts.get("quarantined", 0)
        left_out = f"; {counted(quarantined, 'line')} unreadable" if quarantined else ""
        elsewhere = len(report.findings) - len(findings)
        others = f"; {elsewhere} more in other runs" if elsewhere else ""
        glyph, tone = ("✕", "bad") if violations else ("✓", "good")
        found = counted(violations, "violation") if violations else "nothing violated"
        return f"{glyph} {found}: {read}{left_out}{others}", tone

    def do_audit_jump(self, _: str) -> None:
        row = self._model.row(self.findings.cursor_key)
        if row is None:
            raise Refusal("there is no finding to go to")
        self.console.goto("time", at_us=row.finding.at)
