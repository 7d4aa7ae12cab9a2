"""The replica map in words: what it shows, what is wrong in it, one partition at length, and the content of each member.

Gaps, single copies and replicas on members that are gone are counted; a filter finds the partitions that a reader wants to see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quarterdeck.backend.boards.belief_matrix import DISSENT_GLYPH, state_word, table_text
from quarterdeck.backend.boards.replicas.replica_map import NO_CONTEXT, NO_ROW, SIGNS, ReplicaMap, ReplicaState, Row
from quarterdeck.backend.judgement.table_agreement import differs_from_master
from quarterdeck.backend.picture.events.partitions import migration_path_text
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import NO_HOLDER, TableBelief
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact, Tone, not_told
from quarterdeck.backend.picture.text.formatting import (
    NAMES_SPELT_OUT,
    Refusal,
    age_text,
    counted,
    letter_of,
    listed,
    one_line,
)

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
        suspect = {NO_HOLDER, *(number for number, cell in enumerate(row_context.plain) if cell.state != "held")}
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


DIGEST_SHOWN = 8
"""Letters of a digest that distinguish tables at a glance."""


def map_facts(picture: Picture, shown: ReplicaMap, now_us: int) -> Iterator[Fact]:
    """Whose table it is, in a line."""
    belief = picture.members.get(shown.observer)
    if belief is None or belief.table is None:
        known = any(member.table is not None for member in picture.members.values())
        unknown = picture.without("owners")
        if unknown is not None:
            yield Fact("", f"partitions are {not_told('owners', unknown.witnessed_by)}", "faint")
            return
        witnessed = any(member.witnessed_by for member in picture.members.values())
        if shown.observer and known:
            whose = f"{one_line(shown.observer)} {'has reported' if witnessed else 'has'} no table"
        else:
            whose = "no owners are reported yet" if witnessed else "no partitions yet"
        first_use = "when a client uses data for the first time"
        when = first_use if witnessed else "at the first use of data, or when asked for"
        yield Fact("", f"{whose}; they are arranged {when}", "faint")
        return
    table = belief.table
    role = "master" if belief.is_master and belief.running else "not its master's" if shown.master else "no master seen"
    yield Fact("", f"table of {one_line(shown.observer)} ({role})", "strong")
    version = f"v{table.version}, " if belief.shows("table-version") else ""
    yield Fact("", f"{version}digest {table.digest[:DIGEST_SHOWN]}, {age_text(now_us - table.since_us)} old")
    partitions = counted(shown.partitions, "partition")
    if belief.shows("backups"):
        yield Fact("", f"{partitions}, {counted(shown.width, 'replica')} each")
    else:
        yield Fact("", f"{partitions}, owners only: backups {not_told('backups', belief.witnessed_by)}", "warning")
    if shown.other_rows is not None:
        yield Fact("", f"{DISSENT_GLYPH} not the table of {one_line(shown.master)}", "warning")
    elif shown.master:
        yield Fact("", f"= the table of {one_line(shown.master)}", "good")


def census_facts(census: ReplicaCensus, source: MemberBelief | None = None) -> Iterator[Fact]:
    """Yield what is wrong in the whole table, in a line, in the words of the filter. `source` is whose table it is."""
    fine = True
    for word, state in FILTER_WORDS.items():
        partitions = len(census.partitions[state])
        if partitions:
            fine = False
            yield Fact("", f"{SIGNS[state].mark} {partitions} {word}", SIGNS[state].tone)
    if census.counting:
        yield Fact("", "… counting", "faint")
    elif fine and source is not None and not source.shows("backups"):
        yield Fact("", f"every partition has an owner; backups {NOT_REPORTED}", "plain")
    elif fine:
        yield Fact("", "✓ every replica is where it belongs", "good")


def partition_sentence(picture: Picture, shown: ReplicaMap, partition: int, index: int, now_us: int) -> str:
    """All that is known of a partition; what is said first is who holds the replica `index`."""
    row = shown.table.rows.get(partition, NO_ROW)
    cells = shown.column(partition)
    said = []
    for place in [index, *(other for other in range(len(cells)) if other != index)]:
        if place >= len(cells):
            continue
        role = "owner" if place == 0 else f"backup {place}"
        number = row[place + 1] if place + 1 < len(row) else NO_HOLDER
        who = picture.label_of(shown.table.holders[number].address) if number != NO_HOLDER else "none"
        state = cells[place].state
        plain = state == "held" or (number == NO_HOLDER and state == "vacant")
        what = "" if plain else f" ({SIGNS[state].mark} {SIGNS[state].meaning})"
        said.append(f"{role} {who}{what}")
    belief = picture.members.get(shown.observer)
    if belief is not None and not belief.shows("backups"):
        said.append(f"backups {NOT_REPORTED}")
    version = f" v{row[0]}" if belief is None or belief.shows("table-version") else ""
    text = f"p{partition}{version}: {', '.join(said)}"
    for running in shown.migrating.get(partition, ()):
        way = migration_path_text(running.begun, picture.label_of)
        how = f"{running.phase} for {age_text(now_us - running.since_us)}"
        text += f"; {SIGNS['migrating'].mark} {running.begun.type}: {way}, {how}"
    waiting = sum(len(belief.leading.planned.get(partition, ())) for belief in picture.members.values())
    if waiting:
        text += f"; {counted(waiting, 'migration')} planned"
    return one_line(text + _other_holders(picture, shown, partition))


def _other_holders(picture: Picture, shown: ReplicaMap, partition: int) -> str:
    if shown.other_rows is None:
        return ""
    other = shown.other_rows.get(partition, NO_ROW)
    row = shown.table.rows.get(partition, NO_ROW)
    if not shown.differs(row, other):
        return ""
    master = picture.members.get(shown.master)
    if master is None or master.table is None:
        return ""
    holders = [picture.label_of(holder.address) if holder else "none" for holder in master.table.row(partition)]
    return f"; {DISSENT_GLYPH} {shown.master} has v{other[0]}: {', '.join(holders)}"


@dataclass(frozen=True, slots=True)
class HolderRow:
    """What one member has, by the table that is shown, and which table it has itself."""

    letter: str
    hue: int
    name: str
    state: str
    """In a word when it is not simply a member."""
    owned: int | None
    backups: int | None
    """None where that is not known."""
    out_of_step: int
    table: str
    digest: str
    """Of its own table; behind it the member's own stamp of it, where that is known."""
    age: str
    """Of its table."""
    differs: bool
    """Whether its own table is not that of its master."""
    tone: Tone
    own: TableBelief | None
    """Its own table."""


def holder_row(picture: Picture, shown: ReplicaMap, label: str, place: int, now_us: int) -> HolderRow:
    """Return the row of a member that appeared at `place` in the order of all members."""
    belief = picture.members[label]
    table, own = shown.table, belief.table
    source = picture.members.get(shown.observer) or belief
    differs = differs_from_master(picture, belief, now_us)
    mark = f"{DISSENT_GLYPH} " if differs else ""
    gone = belief.status in ("stopped", "killed")
    tone: Tone = "faint" if gone else "warning" if not belief.running else "plain"
    stamp = f"{belief.state_stamp & 0xFFFFFFFFFFFFFFFF:016x}"[:DIGEST_SHOWN] if belief.state_stamp is not None else ""
    digest = own.digest[:DIGEST_SHOWN] if own is not None else ""
    return HolderRow(
        letter=letter_of(place),
        hue=place,
        name=one_line(label),
        state=state_word(belief),
        owned=table.owned_by(belief.uuid) if source.table is not None or source.shows("owners") else None,
        backups=table.backed_up_by(belief.uuid) if source.shows("backups") else None,
        out_of_step=len(belief.out_of_step),
        table=f"{mark}{table_text(belief, 'v') or 'none'}",
        digest=f"{digest}/{stamp}" if stamp else digest,
        age=age_text(now_us - own.since_us) if own is not None else "",
        differs=differs,
        tone=tone,
        own=own,
    )


def holders(picture: Picture, shown: ReplicaMap) -> Sequence[str]:
    """Return the members that have a table or stand in this one, in the order of their letters.

    Members that ended and hold nothing are left out.
    """
    return [
        label
        for label, belief in picture.members.items()
        if belief.status not in ("stopped", "killed")
        or shown.table.owned_by(belief.uuid)
        or shown.table.backed_up_by(belief.uuid)
    ]
