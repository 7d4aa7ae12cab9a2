"""What stands out in a run: splits and merges, claims, and the faults that were made. They are marks on a strip of time."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed
from quarterdeck.backend.picture.events.catalogue import ROWS
from quarterdeck.backend.picture.events.event_row import LandmarkLane
from quarterdeck.backend.picture.replay.tape import Tape
from quarterdeck.backend.picture.text.fact import Tone

MOST_LANDMARKS = 2_000
"""How many of the latest are remembered."""

RECORDS_AT_ONCE = 50_000

HANDOVER_US = 1_000_000
"""Two witnessed masters within this time are no split: a list of the next one is heard before the end of the one before."""


NOTED: frozenset[type] = frozenset((
    MemberWitnessed, events.MemberStarted, events.MemberStopped, events.JoinFailed, events.MemberMerging,
    events.ListInstalled, events.MasterChanged, ProcessKilled, ProcessPaused, ProcessResumed, ConnectionChanged,
))  # fmt: skip
"""What says which member leads or is frozen."""


class Landmark(NamedTuple):
    """A moment that stands out. `times`: how many of its kind there are in the same moment."""

    at_us: int
    lane: LandmarkLane
    letter: str
    tone: Tone
    text: str
    times: int = 1


class Landmarks:
    """The landmarks of a tape, found as it grows."""

    def __init__(self) -> None:
        self.marks: deque[Landmark] = deque(maxlen=MOST_LANDMARKS)
        """In order of time."""
        self.taken = 0
        """How many records since the beginning of the run it has followed."""
        self._addresses: dict[str, Address] = {}
        self._masters: set[str] = set()
        """Labels of the members that lead in their own belief."""
        self._frozen: set[str] = set()
        self._unreached: set[str] = set()
        """Labels of the witnessed members of which nothing is heard now: what they believe is not known."""
        self._split_us: int | None = None
        self._logged: set[str] = set()
        """Incarnations that are known from logs alone."""
        self._witnessed: set[str] = set()
        """Incarnations of which a witness records."""

    def follow(self, tape: Tape) -> None:
        """Follow what is new on the tape; of very much only a part, and the rest at the next calls."""
        if self.taken < tape.forgotten:
            self._begin_at(tape)
        fresh = tape.since(self.taken, RECORDS_AT_ONCE)
        self.taken += len(fresh)
        for record in fresh:
            kind = type(record.event)
            landmark = ROWS[kind].landmark
            mark = landmark(record.event, record.member) if landmark is not None else None
            if mark is not None and (mark.lane != "observed" or record.uuid in self._logged):
                self._add(record, *mark)
            if kind in NOTED:
                self._note(record)
        while self.marks and self.marks[0].at_us < tape.start_us:
            self.marks.popleft()

    def _begin_at(self, tape: Tape) -> None:
        """Begin at the start of the tape. What came before is not remembered, except which members led."""
        picture = tape.picture_at(tape.start_us)
        self.taken = tape.forgotten
        self._addresses = {label: belief.address for label, belief in picture.members.items()}
        self._frozen = {label for label, belief in picture.members.items() if belief.status == "paused"}
        self._unreached = {label for label, belief in picture.members.items() if not belief.reached}
        self._witnessed = {belief.uuid for belief in picture.members.values() if belief.witnessed_by}
        self._masters = {
            label
            for label, belief in picture.members.items()
            if belief.is_master and belief.status in ("member", "paused")
        }
        self._split_us = tape.start_us if len(self._leading) > 1 else None

    def _add(self, record: Record, lane: LandmarkLane, letter: str, tone: Tone, text: str) -> None:
        latest = self.marks[-1] if self.marks else None
        if latest is not None and latest[:4] == (record.at, lane, letter, tone):
            self.marks[-1] = latest._replace(times=latest.times + 1)
        else:
            self.marks.append(Landmark(record.at, lane, letter, tone, text))

    @property
    def _leading(self) -> list[str]:
        return sorted(self._masters - self._frozen - self._unreached)

    def _change(
        self,
        record: Record,
        label: str,
        *,
        leads: bool | None = None,
        frozen: bool | None = None,
        unreached: bool | None = None,
        merges: bool = True,
    ) -> None:
        """Note which members lead, are frozen or out of reach. Two masters that run are a split.

        It ends when one of them is left, in a merge only if `merges`. A witnessed master that is out of reach may lead on.
        """
        for which, labels in ((leads, self._masters), (frozen, self._frozen), (unreached, self._unreached)):
            if which is not None:
                (labels.add if which else labels.discard)(label)
        if self._split_us is None:
            if len(self._leading) > 1:
                self._split_us = record.at
                self._add(record, "splits", "S", "bad", f"two masters: {', '.join(self._leading)}")
            return
        handed_over = record.uuid in self._witnessed and record.at - self._split_us < HANDOVER_US
        if handed_over and len(self._leading) < 2:  # the end of one was heard after the list of the next
            self._split_us = None
            if self.marks and self.marks[-1].letter == "S":
                self.marks.pop()
        elif len(self._masters - self._frozen) < 2:
            self._split_us = None
            if merges:
                self._add(record, "splits", "M", "good", f"one master: {', '.join(self._leading)}")

    def _note(self, record: Record) -> None:
        label = record.member
        match record.event:
            case events.ListInstalled(master=master, members=members):
                if label not in self._addresses:
                    own = next((member.address for member in members if member.uuid == record.uuid), None)
                    if own is not None:
                        self._addresses[label] = own
                self._change(record, label, leads=master == self._addresses.get(label))
            case events.MasterChanged(master):
                self._change(record, label, leads=master == self._addresses.get(label))
            case events.MemberStarted(address):
                self._addresses[label] = address
                proven = bool(record.event.merged_from) or record.uuid not in self._witnessed
                self._change(record, label, leads=False, frozen=False, merges=proven)
            case events.MemberStopped() | events.JoinFailed() | events.MemberMerging():
                self._change(record, label, leads=False, frozen=False)
            case ProcessKilled(target):
                self._change(record, target, leads=False, frozen=False)
            case ProcessPaused(target):
                self._change(record, target, frozen=True)
            case ProcessResumed(target):
                self._change(record, target, frozen=False)
            case ConnectionChanged(state) if record.uuid not in self._logged:
                self._change(record, label, unreached=state != "connected")
            case ConnectionChanged("gone" | "silent"):  # its log is over: it leads no more, as far as is known
                self._change(record, label, leads=False, frozen=False)
            case MemberWitnessed(sources):
                self._witnessed.add(record.uuid)
                if sources == ("logs",):
                    self._logged.add(record.uuid)


OBSERVED_LEGEND = (
    "S split  M merged  C claim  D done  A abandoned  O observed  m migrations  E a log ends  ! violation  B bookmark"
)
"""The same where what is observed stands in the place of faults."""

LEGEND = (
    "S split  M merged  C claim  D done  A abandoned  K killed  P paused  R resumed  L link bad  H link healed  "
    "! violation  B bookmark"
)
"""What the letters mean, for people."""
