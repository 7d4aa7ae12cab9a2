"""The partition tables of all members, a row each: which one it is, how many copies are left, and whether that is safe."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.boards.belief_matrix import DISSENT_GLYPH, state_word, table_text
from quarterdeck.backend.picture.boards.table_agreement import DIGEST_SHOWN, differs_from_master, table_digests
from quarterdeck.backend.picture.fold.belief import MemberBelief, unsafety_of
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.health.copy_counts import CopyCounts, TableCount
from quarterdeck.backend.picture.health.data_loss import data_losses
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Tone
from quarterdeck.backend.picture.text.formatting import counted, one_line

BUSY_WORDS = {
    "recovering": "searching the latest",
    "migrating": "migrating",
    "draining": "a member waits to leave",
    "out-of-step": "a backup out of step",
}


class TableRow(Struct, frozen=True):
    """What is known of the table of one member, each text one line."""

    label: str
    version: str = ""
    digest: str = ""
    strip: str = ""
    owned: int = 0
    backups: int = 0
    state: str = "not up"
    tone: Tone = "faint"
    differs: bool = False
    """Whether it is not the table of its master."""
    greyed: bool = True


class TableRows:
    """Makes the rows."""

    def __init__(self) -> None:
        self._counts = CopyCounts()
        self._judged = (-1, -1)
        self._lost: dict[str, int] = {}
        """By master, how many partitions its side has lost."""

    def row(self, picture: Picture, label: str, now_s: int) -> TableRow:
        belief = picture.members.get(label)
        if belief is None:
            return TableRow(one_line(label))
        gone = belief.status in ("stopped", "killed", "paused") or not belief.reached
        if belief.table is None:
            missing = differs_from_master(picture, belief, now_s * SECOND_US)
            state = NOT_REPORTED if not belief.shows("owners") else "none yet"
            state = f"{DISSENT_GLYPH} none" if missing else state_word(belief) if gone else state
            tone: Tone = "warning" if missing else "faint"
            return TableRow(one_line(label), state=state, tone=tone, differs=missing, greyed=gone)
        table = belief.table
        census = self._counts.census(picture, belief, table, now_s)
        differs = differs_from_master(picture, belief, now_s * SECOND_US)
        state, tone = _state(belief, census, differs)
        if self._judged != (picture.at, now_s):
            self._judged = picture.at, now_s
            self._lost = {
                loss.side: loss.partitions for loss in data_losses(picture, now_s * SECOND_US) if loss.entries != 0
            }
        master = picture.master_of(label) if tone == "good" and self._lost else None
        if master is not None and master.label in self._lost:
            state, tone = f"∅ {self._lost[master.label]} lost", "bad"  # all copies are there, and some are of nothing
        return TableRow(
            one_line(label), table_text(belief, "v"), table.digest[:DIGEST_SHOWN], census.strip,
            table.owned_by(belief.uuid), table.backed_up_by(belief.uuid), state_word(belief) if gone else state,
            "faint" if gone else tone, differs, gone,
        )  # fmt: skip


def table_figure(picture: Picture, labels: Sequence[str], now_us: int) -> tuple[str, Tone]:
    """How many tables there are among the running members, in a word or two."""
    digests = table_digests(picture, iter(labels), now_us)
    known = filter(None, map(picture.members.get, labels))
    without = [belief for belief in known if belief.running and belief.table is None]
    if not digests:
        return (NOT_REPORTED if any(not belief.shows("owners") for belief in without) else "none yet"), "faint"
    missing = any(belief.shows("owners") and differs_from_master(picture, belief, now_us) for belief in without)
    if len(digests) > 1 or missing:
        return f"{DISSENT_GLYPH} {counted(len(digests), 'digest')}{' and none' if missing else ''}", "warning"
    return "1 digest", "plain"


def _state(belief: MemberBelief, census: TableCount, differs: bool) -> tuple[str, Tone]:
    if census.lost:
        return f"∅ {census.lost} without {'a copy' if belief.shows('backups') else 'an owner'}", "bad"
    if census.single:
        return f"! {census.single} with one copy", "warning"
    unsafety = unsafety_of(belief)
    if unsafety == "migrating":
        return "migrating", "strong"
    if unsafety is not None:
        return BUSY_WORDS.get(unsafety, unsafety), "warning"
    if differs:
        return f"{DISSENT_GLYPH} not its master's", "warning"
    if census.fewer:
        return f"{census.fewer} with fewer copies", "warning"
    if not belief.shows("backups"):
        return f"backups {NOT_REPORTED}", "faint"
    return "✓ safe", "good"
