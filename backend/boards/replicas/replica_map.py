"""The replica map: who holds which replica of which partition in one member's table.

It is made for tables of many thousand partitions: a column is made when a painter asks for it, and kept until something in it
changes. A replica is a cell: a letter for its holder, and a mark for what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import islice
from typing import Literal, NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.table_agreement import differs_from_master
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.migrations import SeenMigration
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import NO_HOLDER, TableBelief
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import letter_of

ReplicaState = Literal["held", "gap", "gone", "single", "doubtful", "behind", "migrating", "differs", "vacant"]


class ReplicaSign(NamedTuple):
    """How a state of replicas is shown."""

    mark: str
    tone: Tone
    meaning: str
    filter_word: str = ""
    """By which a reader asks for partitions with such a replica; empty for what nothing is wrong with."""


SIGNS: dict[ReplicaState, ReplicaSign] = {
    "held": ReplicaSign("", "plain", "held"),
    "gap": ReplicaSign("∅", "bad", "empty, though a member could take it", "gaps"),
    "gone": ReplicaSign("✕", "bad", "on a member that is gone", "gone"),
    "single": ReplicaSign("!", "warning", "the only copy", "single"),
    "doubtful": ReplicaSign("?", "warning", "on a member that is suspected or frozen", "doubtful"),
    "behind": ReplicaSign("~", "warning", "a backup out of step with its owner", "behind"),
    "migrating": ReplicaSign("▶", "strong", "a member gets it by a migration", "moving"),
    "differs": ReplicaSign("≠", "warning", "another holder than in the master's table", "differs"),
    "vacant": ReplicaSign("·", "faint", "empty: there are not enough members"),
}
"""The gravest first."""


class ReplicaCell(NamedTuple):
    """A replica as it is painted."""

    letter: str
    """That of the holder, or of who comes where no member is; empty without either."""
    hue: int
    """Number of the member whose letter it is, to colour it by; `NO_HOLDER` for none."""
    state: ReplicaState


Column = tuple[ReplicaCell, ...]
"""The replicas of one partition by replica index."""

EMPTY: dict[ReplicaState, ReplicaCell] = {state: ReplicaCell("", NO_HOLDER, state) for state in SIGNS}
"""Cells in which no member is."""


def suspected_with(picture: Picture, belief: MemberBelief) -> Set[Address]:
    """Whom the running members that follow the same master as `belief` suspect."""
    found: set[Address] = set()
    for other in picture.members.values():
        if other.suspicions and other.running and other.master == belief.master:
            found.update(other.suspicions)
    return found


def state_of_holder(belief: MemberBelief | None, uuid: str, *, suspected: bool) -> ReplicaState:
    """Return the state of a replica on the incarnation `uuid`; `belief` is of the member at its address, if it was seen."""
    if belief is None:
        return "doubtful" if suspected else "held"
    if belief.uuid != uuid or belief.status in ("stopped", "killed"):
        return "gone"
    return "doubtful" if suspected or belief.status == "paused" else "held"


Row = tuple[int, ...]
"""The version of a partition, then the number of the holder at each replica index."""

NO_ROW: Row = (0,)

LOOKED_UP_ALWAYS = 200
"""With more members, whom they suspect is looked up at most once a second."""


class RowContext(NamedTuple):
    """What decides how a row looks, beside what is special about its partition."""

    width: int
    """How many replica indices there are."""
    able: int
    """How many members of the observer's list could hold a replica."""
    letter_width: int
    plain: tuple[ReplicaCell, ...]
    """By number of the holder: its cell, as long as nothing is to be said of the partition."""
    living: tuple[bool, ...]
    """By number of the holder; the last place, where `NO_HOLDER` leads, is false."""
    translated: tuple[int, ...]
    """The number that each holder in the master's table has in this one; the last place is no holder's."""


NO_CONTEXT = RowContext(0, 0, 1, (), (False,), (NO_HOLDER,))


class PartitionAnomaly(NamedTuple):
    """What is special about one partition."""

    arrivals: tuple[tuple[int, int], ...] = ()
    """Replica index at which a member arrives by a migration, and the place of that one among all members."""
    behind: frozenset[int] = frozenset()
    """Numbers of the holders whose backup is out of step."""


NO_ANOMALY = PartitionAnomaly()


class ReplicaMap:
    """Follows the table of one observer. Call `follow` before anything is asked, and again when there is news."""

    def __init__(self) -> None:
        self.observer = ""
        """Whose table this is; empty while no member has one."""
        self.master = ""
        """Whose table it is compared with; empty when that is the observer's own, or none."""
        self.table = TableBelief()
        self.row_context = NO_CONTEXT
        self.revision = 0
        """Changes when a column may look different, or partitions come or go."""
        self.migrating: dict[int, list[SeenMigration]] = {}
        """By partition, the migrations under way."""
        self.anomalies: dict[int, PartitionAnomaly] = {}
        """By partition, what is special about it."""
        self.other_rows: Mapping[int, Row] | None = None
        """The rows of the master's table, if there is one that is not the same."""
        self.other_digest = ""
        """That of the master's table, while `other_rows` is there."""
        self._heat: Mapping[int, str] = {}
        self._suspected: tuple[object, Set[Address]] = (None, frozenset())
        self._columns: dict[int, tuple[Row, Row | None, Column]] = {}
        self._followed: object = None

    def follow(self, picture: Picture, observer: str = "") -> None:
        """Look at the table of `observer` in `picture`; without one, at that of the first master that has a table."""
        belief = _chosen(picture, observer)
        if belief is None or belief.table is None:
            self.observer = belief.label if belief is not None else observer
            self.master, self.table, self.other_rows = "", TableBelief(), None
            self.migrating, self.anomalies, self.row_context = {}, {}, NO_CONTEXT
            self._columns.clear()
            self._note(None)
            return
        master = picture.master_of(belief.label)
        other = master.table if master is not None and master is not belief else None
        self.observer, self.table = belief.label, belief.table
        self.master = master.label if master is not None and other is not None else ""
        if other is not None and not differs_from_master(picture, belief):
            other = None
        self.other_rows = other.rows if other is not None else None
        self.other_digest = other.digest if other is not None else ""
        self._find_anomalies(picture)
        row_context = _row_context(picture, belief, belief.table, other, self._suspected_in(picture, belief))
        if row_context != self.row_context:
            self.row_context = row_context
            self._columns.clear()
            self.revision += 1
        self._note((belief.table.version, belief.table.digest, self.other_digest, self.anomalies))

    def show_heat(self, digits: Mapping[int, str]) -> None:
        """Let these stand in place of the letters of holders, by partition; none: letters again."""
        changed = [key for key in digits.keys() | self._heat.keys() if digits.get(key) != self._heat.get(key)]
        if changed:
            self.revision += 1
        for partition in changed:
            self._columns.pop(partition, None)
        self._heat = digits

    @property
    def partitions(self) -> int:
        return self.table.partitions

    @property
    def width(self) -> int:
        """How many replica indices there are."""
        return self.row_context.width

    @property
    def letter_width(self) -> int:
        """Cells that the longest letter takes."""
        return self.row_context.letter_width

    def column(self, partition: int) -> Column:
        """Return the replicas of a partition; the very object that it was before when nothing in it has changed."""
        row = self.table.rows.get(partition, NO_ROW)
        other = self.other_rows.get(partition, NO_ROW) if self.other_rows is not None else None
        known = self._columns.get(partition)
        if known is not None and known[0] is row and known[1] is other:
            return known[2]
        column = self._make(row, other, self.anomalies.get(partition, NO_ANOMALY))
        digit = self._heat.get(partition)
        if digit is not None:
            column = tuple(cell._replace(letter=digit) if cell.letter else cell for cell in column)
        self._columns[partition] = (row, other, column)
        return column

    def differs(self, row: Row, other: Row | None) -> bool:
        """Whether the master's row of the same partition has other holders."""
        if other is None:
            return False
        translated = self.row_context.translated
        return [translated[number] for number in other[1:]] != [*row[1:]]

    def _suspected_in(self, picture: Picture, belief: MemberBelief) -> Set[Address]:
        """In a large cluster each may suspect half of the others, so it is looked up once a second only."""
        if len(picture.members) <= LOOKED_UP_ALWAYS:
            return suspected_with(picture, belief)
        asked = (belief.label, belief.master, picture.at // SECOND_US)
        if self._suspected[0] != asked:
            self._suspected = (asked, suspected_with(picture, belief))
        return self._suspected[1]

    def _note(self, followed: object) -> None:
        if followed != self._followed:
            self._followed = followed
            self.revision += 1

    def _make(self, row: Row, other: Row | None, anomalies: PartitionAnomaly) -> Column:
        row_context = self.row_context
        held = row[1:]
        single = row_context.width > 1 and sum([row_context.living[number] for number in held]) == 1
        arrivals = dict(anomalies.arrivals)
        cells: list[ReplicaCell] = []
        for index in range(row_context.width):
            number = held[index] if index < len(held) else NO_HOLDER
            its = other[index + 1] if other is not None and index + 1 < len(other) else NO_HOLDER
            if number != NO_HOLDER:
                cell = row_context.plain[number]
                if cell.state != "gone" and single:
                    cell = cell._replace(state="single")
                elif cell.state == "held" and number in anomalies.behind:
                    cell = cell._replace(state="behind")
            else:
                cell = EMPTY["gap" if index < row_context.able else "vacant"]
            if index in arrivals:
                comer = arrivals[index]
                hue = comer if cell.hue == NO_HOLDER else cell.hue
                cell = ReplicaCell(cell.letter or letter_of(comer), hue, "migrating")
            if other is not None and row_context.translated[its] != number:
                cell = cell._replace(state="differs")
            cells.append(cell)
        return tuple(cells)

    def _find_anomalies(self, picture: Picture) -> None:
        migrating: dict[int, list[SeenMigration]] = {}
        behind: dict[int, frozenset[int]] = {}
        for belief in picture.members.values():
            for running in belief.leading.running.values():
                migrating.setdefault(running.begun.partition, []).append(running)
            if belief.out_of_step:
                number = frozenset({self.table.number_of(belief.uuid)})
                for partition in belief.out_of_step:
                    behind[partition] = behind.get(partition, frozenset()) | number
        anomalies: dict[int, PartitionAnomaly] = {}
        if migrating or behind:
            places = {label: place for place, label in enumerate(picture.members)}
            for partition in migrating.keys() | behind.keys():
                arrivals = tuple(
                    (move.begun.destination_new, places.get(picture.label_of(move.begun.destination), len(places)))
                    for move in migrating.get(partition, ())
                )
                anomalies[partition] = PartitionAnomaly(arrivals, behind.get(partition, frozenset()))
        if anomalies != self.anomalies:
            for partition in anomalies.keys() | self.anomalies.keys():
                if anomalies.get(partition) != self.anomalies.get(partition):
                    self._columns.pop(partition, None)
        self.migrating, self.anomalies = migrating, anomalies


def _chosen(picture: Picture, observer: str) -> MemberBelief | None:
    if observer:
        return picture.members.get(observer)
    having = [belief for belief in picture.members.values() if belief.table is not None]
    return max(having, key=lambda belief: belief.leads and belief.running, default=None)


def _row_context(
    picture: Picture, belief: MemberBelief, table: TableBelief, other: TableBelief | None, suspected: Set[Address]
) -> RowContext:
    places = {label: place for place, label in enumerate(picture.members)}
    plain = []
    for number, holder in enumerate(table.holders):
        label = picture.label_of(holder.address)
        place = places.get(label, len(places) + number)
        state = state_of_holder(picture.members.get(label), holder.uuid, suspected=holder.address in suspected)
        plain.append(ReplicaCell(letter_of(place), place, state))
    translated = tuple(table.number_of(holder.uuid) for holder in other.holders) if other is not None else ()
    return RowContext(
        width=max((len(row) - 1 for row in islice(table.rows.values(), 1)), default=0),  # all rows are equally long
        able=sum(not member.lite for member in belief.members),
        letter_width=max((len(cell.letter) for cell in plain), default=1),
        plain=tuple(plain),
        living=(*(cell.state != "gone" for cell in plain), False),
        translated=(*translated, NO_HOLDER),
    )
