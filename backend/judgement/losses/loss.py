"""A loss of data in words and as fields: partitions, maps, entries, when, with which members, and what became of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.partitions.events import ALL_LOST, lost_partitions_text
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.loss_incident import FateState
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, one_line

MEMBERS_NAMED = 3

EntriesKnown = Literal["exact", "at-most", "last-counted", "unknown"]
"""Whether the number of lost entries is exact, an upper bound, that of a count before the last writes, or not known."""

Doubt = Literal[
    "", "elsewhere", "merging", "returned", "not-reached", "entries-unknown", "apart", "started-empty", "unexplained",
]  # fmt: skip
"""Why a loss is only feared."""


class Loss(Struct, frozen=True):
    """One loss of one side of a cluster. Losses are never added to each other."""

    side: str
    """The label of the master of that side; of the first member that belongs to it while no member leads it."""
    state: FateState
    lost: frozenset[int]
    """The partitions."""
    at_most_backups: int | None
    """Maps with at most so many backups lost entries; None where no replica was left, whatever a map has."""
    maps: tuple[str, ...]
    """By name, those that lost entries; by name or pattern where only the configuration of maps is known."""
    at_us: int
    """When the data went."""
    entries: int | None
    entries_known: EntriesKnown
    because_of: tuple[str, ...]
    """The members with which the data went."""
    doubt: Doubt = ""
    held_by: tuple[str, ...] = ()
    """The members that may hold the data still."""

    @property
    def partitions(self) -> int:
        """How many were lost."""
        return len(self.lost)

    @property
    def stands(self) -> bool:
        """Whether the loss is feared or confirmed: it was neither made good nor shown to be none."""
        return self.state in ("feared", "confirmed")

    @property
    def is_confirmed(self) -> bool:
        return self.state == "confirmed"

    @property
    def what(self) -> str:
        backups = ALL_LOST if self.at_most_backups is None else self.at_most_backups
        if not self.lost:
            lost = f"entries of {one_line(listed(self.maps, MEMBERS_NAMED))}" if self.maps else "entries"
        else:
            lost = one_line(lost_partitions_text(self.partitions, backups, self.maps))
        if self.entries is None:
            return lost
        return (
            f"{lost}, {ENTRY_WORDS[self.entries_known]}{self.entries:,} entries"
            if self.entries
            else f"{lost}, without entries"
        )

    @property
    def least(self) -> str:
        """How many partitions were lost, and nothing else."""
        return counted(self.partitions, "partition") if self.lost else "entries"

    @property
    def why(self) -> str:
        """With which members the data went; empty where that is not known."""
        if not self.because_of:
            return ""
        gone = one_line(listed(self.because_of, MEMBERS_NAMED))
        return f"after {gone} {'started again' if self.doubt == 'started-empty' else 'went'}"

    @property
    def condition(self) -> str:
        """On what it depends whether the data is lost, in a few words; empty where it does not depend on anything."""
        named = one_line(listed(self.held_by, MEMBERS_NAMED))
        does = "does" if len(self.held_by) == 1 else "do"
        match self.doubt:
            case "not-reached":
                return f"lost if {named} {does} not come back"
            case "elsewhere":
                return f"lost if {named} {does} not merge back"
            case "merging":
                return f"{named} merge{'s' if len(self.held_by) == 1 else ''} the entries now"
            case "returned":
                return f"{named} merged back, with or without the entries"
            case "entries-unknown":
                return "lost if there were entries in them"
            case "apart":
                return "the other side has them without what was written here while apart"
            case "started-empty":
                return "the copies of a member that starts while nothing may migrate begin empty"
            case "unexplained":
                return "the cause is not reported"
            case "":
                return ""

    @property
    def outlook(self) -> str:
        """What became of the entries, and how long the loss is reported."""
        if self.state == "healed":
            return "healed: the replicas came back, or the other side has them"
        if self.state == "refuted":
            return "refuted: no entries were in them"
        if self.state == "confirmed":
            return "what they held is gone: no member that held it runs"
        return self.condition

    @property
    def verb(self) -> str:
        """How sure it is that the side lost the data."""
        return "maybe lost" if self.state == "feared" else "lost"

    def text(self, now_us: int) -> str:
        """Return the loss, when it was, and with which members."""
        loss_text = f"{self.what}, {age_text(max(now_us - self.at_us, 0))} ago"
        return " ".join(filter(None, (loss_text, self.why)))

    def account(self, now_us: int) -> str:
        """Return whose loss it is, all that is known of it, and what became of the data."""
        return f"{one_line(self.side)} {self.verb} {self.text(now_us)}: {self.outlook}"

    def shorter_texts(self, now_us: int) -> tuple[str, ...]:
        """Return the same with less and less of it, for where there is little room; the last is only how many partitions."""
        age = f"{age_text(max(now_us - self.at_us, 0))} ago"
        known, whole = f"{self.what}, {age}", self.text(now_us)
        if not self.condition:
            return whole, known, self.least
        return f"{whole}: {self.condition}", f"{known}: {self.condition}", known, self.least

    def as_fields(self, now_us: int) -> dict[str, object]:
        return {
            "side": self.side,
            "state": self.state,
            "partitions": self.partitions,
            "maps": list(self.maps),
            "at_most_backups": self.at_most_backups,
            "entries": self.entries,
            "entries_known": self.entries_known,
            "since_seconds": round(max(now_us - self.at_us, 0) / SECOND_US, 1),
            "because_of": list(self.because_of),
            "outlook": self.outlook,
        }


TONES: dict[FateState, Tone] = {"confirmed": "bad", "feared": "warning", "healed": "good", "refuted": "faint"}

ENTRY_WORDS: dict[EntriesKnown, str] = {"exact": "", "at-most": "at most ", "last-counted": "about ", "unknown": ""}
