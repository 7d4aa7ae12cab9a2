"""What is wrong in a whole table, counted: gaps, single copies, replicas on members that are gone.

A filter finds the partitions that a reader wants to see.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import NO_HOLDER
from quarterdeck.backend.picture.replicas.replica_cell import SIGNS, ReplicaState
from quarterdeck.backend.picture.replicas.replica_map import NO_CONTEXT, NO_ROW, ReplicaMap, Row
from quarterdeck.backend.picture.text.formatting import NAMES_SPELT_OUT, listed, one_line
from quarterdeck.backend.picture.text.refusal import Refusal

COUNTED_A_TIME = 10_000
"""Rows that are counted at one time: so long a painter may be kept waiting."""

FILTER_WORDS: dict[str, ReplicaState] = {sign.filter_word: state for state, sign in SIGNS.items() if sign.filter_word}
"""What a reader may ask for, the worst first."""

FILTER_HINT = f"{', '.join(FILTER_WORDS)}, member NAME, p12 or p10-40"

RANGE = re.compile(r"p?(\d+)(?:\s*(?:-|\.\.)\s*p?(\d+))?")


class BadFilter(Refusal):
    """A filter of the map that cannot be understood; says what can be."""


class ReplicaCensus:
    """Counts the rows of a map, and finds the partitions that a filter asks for."""

    def __init__(self, shown: ReplicaMap) -> None:
        self._map = shown
        self.partitions: dict[ReplicaState, set[int]] = {state: set() for state in FILTER_WORDS.values()}
        """The partitions with a cell in this state, as far as they are counted."""
        self.revision = 0
        """Changes with `partitions`, and with the table."""
        self._counted: list[tuple[Row | None, Row | None]] = []
        self._next = 0
        self._row_context = NO_CONTEXT
        self._stamp: object = None
        self._found: tuple[str, int, Sequence[int]] = ("", -1, range(0))

    @property
    def counting(self) -> bool:
        """Whether a part of the table is still to be counted."""
        return self._next < len(self._counted)

    def count(self) -> None:
        """Count what has changed since; while `counting`, call it again for the rest."""
        shown = self._map
        if shown.row_context != self._row_context or len(self._counted) != shown.partitions:
            self._row_context = shown.row_context
            self._counted = [(None, None)] * shown.partitions
            self._next = 0
            for found in self.partitions.values():
                found.clear()
            self.revision += 1
        changed = self._changed_rows()
        self._count_rows(changed)
        anomalies: dict[ReplicaState, set[int]] = {
            "migrating": set(shown.migrating),
            "behind": {partition for partition, anomaly in shown.anomalies.items() if anomaly.behind},
        }
        if changed or any(self.partitions[state] != found for state, found in anomalies.items()):
            self.partitions.update(anomalies)
            self.revision += 1

    def found(self, picture: Picture, filter_text: str) -> Sequence[int]:
        """Return the partitions to show, in order; all when nothing is asked for.

        Raises:
            BadFilter: The filter cannot be read.
        """
        text = filter_text.strip().casefold()
        if not text:
            return range(self._map.partitions)
        if self._found[:2] != (text, self.revision):
            self._found = (text, self.revision, self._look_for(picture, text))
        return self._found[2]

    def _changed_rows(self) -> list[int]:
        rows, others, counted = self._map.table.rows, self._map.other_rows, self._counted
        stamp = (self._map.table.version, self._map.table.digest, self._map.other_digest)
        if self.counting:
            last = min(self._next + COUNTED_A_TIME, len(counted))
            changed = list(range(self._next, last))
            self._next = last
            return changed
        if stamp == self._stamp:
            return []
        self._stamp = stamp
        if others is None:
            return [place for place, (row, other) in enumerate(counted) if row is not rows.get(place, NO_ROW) or other]
        return [
            place
            for place, (row, other) in enumerate(counted)
            if row is not rows.get(place, NO_ROW) or other is not others.get(place, NO_ROW)
        ]

    def _count_rows(self, partitions: Sequence[int]) -> None:
        shown, row_context = self._map, self._row_context
        rows, others, found = shown.table.rows, shown.other_rows, self.partitions
        rowwise = [found[state] for state in ("gap", "gone", "doubtful", "single", "differs")]
        suspect = frozenset(number for number, cell in enumerate(row_context.plain) if cell.state != "held") | {
            NO_HOLDER
        }
        full = min(row_context.width, row_context.able)
        for partition in partitions:
            row = rows.get(partition, NO_ROW)
            other = others.get(partition, NO_ROW) if others is not None else None
            self._counted[partition] = row, other
            held = row[1:]
            if other is None and len(held) >= full and suspect.isdisjoint(held):
                for partitions_of_state in rowwise:
                    partitions_of_state.discard(partition)
                continue
            states = {row_context.plain[number].state for number in held if number != NO_HOLDER}
            there = (
                NO_HOLDER in held[: row_context.able] or len(held) < full,
                "gone" in states,
                "doubtful" in states,
                row_context.width > 1 and sum([row_context.living[number] for number in held]) == 1,
                shown.differs(row, other),
            )
            for partitions_of_state, is_there in zip(rowwise, there, strict=True):
                if is_there:
                    partitions_of_state.add(partition)
                else:
                    partitions_of_state.discard(partition)

    def _look_for(self, picture: Picture, text: str) -> Sequence[int]:
        word, _, rest = text.partition(" ")
        state = next((known for name, known in FILTER_WORDS.items() if word and name.startswith(word)), None)
        if word == "member":
            return self._held_by(picture, rest.strip())
        span = RANGE.fullmatch(text)
        if span is not None:
            first, last = int(span[1]), int(span[2] or span[1])
            return range(min(first, self._map.partitions), min(last + 1, self._map.partitions))
        if state is not None and not rest:
            return sorted(self.partitions[state])
        raise BadFilter(f"the map cannot be filtered by {text!r}; use {FILTER_HINT}")

    def _held_by(self, picture: Picture, name: str) -> Sequence[int]:
        labels = [member for member in picture.members if member.casefold().startswith(name)] if name else []
        exact = [label for label in labels if label.casefold() == name]
        if len(exact or labels) != 1:
            problem = "several members begin with" if labels else "there is no member"
            known = [one_line(belief) for belief in labels or picture.members]
            raise BadFilter(f"{problem} {name!r}; use one of {listed(known, NAMES_SPELT_OUT)}")
        address = picture.members[(exact or labels)[0]].address
        table = self._map.table
        numbers = {number for number, holder in enumerate(table.holders) if holder.address == address}
        return sorted(partition for partition, row in table.rows.items() if not numbers.isdisjoint(row[1:]))
