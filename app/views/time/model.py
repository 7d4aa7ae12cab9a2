"""The events around a moment as a table: what happened then stands out, what came before and after is beside it."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.app.events.tones import tone_of
from quarterdeck.app.session import Session
from quarterdeck.backend.core.events import MemberStarted, Record
from quarterdeck.backend.picture.text.event_description import clock_text, describe_event
from quarterdeck.backend.picture.text.formatting import one_line, with_names
from quarterdeck.widgets.line_table import Column, TableCell

SECOND_US = 1_000_000

BEFORE, AFTER = 150, 150
"""Events that are shown around a moment."""

RACING = 20
"""So many new events at once are read by nobody: while they go on, the table changes at each fifth look only."""
LOOKS_PASSED_OVER = 4

COLUMNS = (
    Column("when", 12),
    Column("from here", 13),
    Column("member", 15),
    Column("event", 20),
    Column("what happened", 200),
)


class NearbyEventsModel:
    """Rows are events, in order of time."""

    columns: Sequence[Column] = COLUMNS
    fixed_columns = len(COLUMNS) - 1

    def __init__(self, session: Session) -> None:
        self._session = session
        self._records: dict[str, Record] = {}
        self._seen: tuple[int, int, int, bool] | None = None
        self._looked = self._passed_over = 0
        self.shown_us = 0
        self.here = ""
        """Key of the last event up to the moment; empty when there is none."""

    @property
    def keys(self) -> Sequence[str]:
        return tuple(self._records)

    def update(self) -> bool:
        """Take the session as it is now; whether anything is another."""
        session = self._session
        tape, live = session.tape, session.live
        shown_us = session.playhead.shown_us
        seen = (len(tape), tape.revision, 0 if live else shown_us, live)
        total = tape.forgotten + len(tape)
        racing, self._looked = live and total - self._looked > RACING, total
        if racing and self._seen is not None and self._passed_over < LOOKS_PASSED_OVER:
            self._passed_over += 1
            return False
        self._passed_over = 0
        if seen == self._seen:
            return False
        self._seen, self.shown_us = seen, shown_us
        before = tape.last(BEFORE, None if live else shown_us)
        after = [] if live else tape.first(AFTER, shown_us)
        self._records = {f"{record.uuid}/{record.seq}": record for record in (*before, *after)}
        self.here = f"{before[-1].uuid}/{before[-1].seq}" if before else ""
        if live and before:
            self.shown_us = before[-1].at
        return True

    def record(self, key: str | None) -> Record | None:
        return self._records.get(key) if key is not None else None

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        record = self._records[key]
        at_us, event = record.at, record.event
        past = at_us <= self.shown_us
        tone = tone_of(event) if past else "faint"
        away_us = at_us - self.shown_us
        texts: list[TableCell] = []
        for column in range(first, last):
            match column:
                case 0:
                    texts.append(TableCell(clock_text(at_us), "plain" if past else "faint"))
                case 1:
                    here = "● here" if not away_us else "" if self._session.live else away_text(away_us)
                    texts.append(TableCell(here, "strong" if not away_us else "faint"))
                case 2:
                    texts.append(TableCell(one_line(record.member), "plain" if past else "faint"))
                case 3:
                    texts.append(TableCell(str(event.__struct_config__.tag), "faint"))
                case _:
                    texts.append(TableCell(self.told(record), tone))
        return texts

    def outlier(self, key: str) -> bool:
        return self._records[key].at == self.shown_us and not self._session.live

    def rank(self, key: str, title: str) -> object:
        record = self._records[key]
        if title in ("when", "from here"):
            return record.at
        return record.member if title == "member" else str(record.event.__struct_config__.tag)

    def told(self, record: Record) -> str:
        """What happened, in names."""
        name_of = self._session.picture.label_of
        told = describe_event(record.event, name_of)
        return one_line(told if isinstance(record.event, MemberStarted) else with_names(told, name_of))


def away_text(away_us: int) -> str:
    """How long before the moment that is shown, or after it."""
    return f"{away_us / 1_000:+.3g} ms" if abs(away_us) < SECOND_US else f"{away_us / SECOND_US:+.3f} s"
