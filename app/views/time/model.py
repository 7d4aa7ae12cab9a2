"""The columns of the events around a moment: what happened then stands out, what came before and after is beside it."""

from __future__ import annotations

from typing import NamedTuple

from quarterdeck.app.events.tones import tone_of
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.columns import BoardModel, ColumnOf
from quarterdeck.backend.core.events import MemberStarted, Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.text.event_description import clock_text, describe_event
from quarterdeck.backend.picture.text.formatting import one_line, with_names

BEFORE, AFTER = 150, 150
"""Events that are shown around a moment."""

MANY_NEW = 20
"""So many new events at once are read by nobody: while they go on, the table changes at each fifth look only."""
LOOKS_PASSED_OVER = 4


class NearbyEvent(NamedTuple):
    """An event, and how far it is from the moment that is shown."""

    record: Record
    text: str
    away_us: int
    live: bool
    """Whether the moment is the newest, which moves on."""

    @property
    def tone(self) -> str:
        """What has not happened yet at the moment is grey."""
        return "plain" if self.away_us <= 0 else "faint"

    @property
    def event_tone(self) -> str:
        return tone_of(self.record.event) if self.away_us <= 0 else "faint"

    @property
    def away(self) -> str:
        """How far it is from the moment; at the newest moment that changes all the time and is not said."""
        return "● here" if not self.away_us else "" if self.live else away_text(self.away_us)


COLUMNS: tuple[ColumnOf[NearbyEvent], ...] = (
    ColumnOf("when", lambda row: clock_text(row.record.at), widest=11, rank=lambda row: row.record.at),
    ColumnOf(
        "from here",
        lambda row: row.away,
        lambda row: "faint" if row.away_us else "strong",
        12,
        lambda row: row.record.at,
    ),
    ColumnOf("member", lambda row: one_line(row.record.member), widest=14),
    ColumnOf("event", lambda row: str(row.record.event.__struct_config__.tag), "faint", 19),
    ColumnOf("what happened", lambda row: row.text, lambda row: row.event_tone, 199),
)


class NearbyEventsModel(BoardModel[NearbyEvent]):
    """Rows are events, in order of time."""

    def __init__(self, session: ConsoleSession) -> None:
        super().__init__(
            COLUMNS, fixed=4, tone=lambda row: row.tone, outlier=lambda row: not row.away_us and not row.live
        )
        self._session = session
        self._records: dict[str, Record] = {}
        self._seen: tuple[int, int, int, bool] | None = None
        self._looked = self._passed_over = 0
        self.shown_us = 0
        self.here = ""
        """Key of the last event up to the moment; empty when there is none."""

    def update(self) -> bool:
        """Show the session as it is now; whether anything is another."""
        session = self._session
        tape, live = session.tape, session.live
        shown_us = session.playhead.shown_us
        seen = (len(tape), tape.revision, 0 if live else shown_us, live)
        total = tape.forgotten + len(tape)
        many_new, self._looked = live and total - self._looked > MANY_NEW, total
        if many_new and self._seen is not None and self._passed_over < LOOKS_PASSED_OVER:
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
        self.show_rows(tuple(self._records), self._event)
        return True

    def record(self, key: str | None) -> Record | None:
        """The event of this row, if there is one."""
        return self._records.get(key) if key is not None else None

    def record_text(self, record: Record) -> str:
        """What happened, with names in place of addresses."""
        name_of = self._session.picture.label_of
        text = describe_event(record.event, name_of)
        return one_line(text if isinstance(record.event, MemberStarted) else with_names(text, name_of))

    def _event(self, key: str) -> NearbyEvent:
        record = self._records[key]
        return NearbyEvent(record, self.record_text(record), record.at - self.shown_us, self._session.live)


def away_text(away_us: int) -> str:
    """How long before the moment that is shown, or after it."""
    return f"{away_us / 1_000:+.3g} ms" if abs(away_us) < SECOND_US else f"{away_us / SECOND_US:+.3f} s"
