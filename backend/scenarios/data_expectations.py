"""Expectations about partitions and data, checked against the records of tables, migrations and calls.

Pure functions. The tables come from the object that the invariants share; what is missing is said in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quarterdeck.backend.core.data.events import CallFinished
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions.events import MigrationStarted
from quarterdeck.backend.invariants.invariant_checker import InvariantChecker
from quarterdeck.backend.invariants.partition_tables import PartitionTables
from quarterdeck.backend.picture.fold.belief import WORDS, Unsafety, unsafety_of
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.scenarios.expectations import running
from quarterdeck.backend.scenarios.format.scenario import Expect, ExpectedValue

NO_TABLE: dict[Unsafety, str] = {"no-table": "no member has a partition table"}


def data_missing(expect: Expect, picture: Picture, checker: InvariantChecker, records: Sequence[Record]) -> str:
    """Return the unmet parts of `expect` about partitions and data, in words; empty when all hold."""
    return "; ".join(_missing(expect, picture, checker, records))


def _missing(expect: Expect, picture: Picture, checker: InvariantChecker, records: Sequence[Record]) -> Iterator[str]:
    tables = checker.tables
    for partition, labels in expect.table.items():
        yield from _row_missing(picture, tables, partition, labels)
    if expect.safe is not None:
        found = dict(why_not_safe(picture, tables)) if tables.in_use else NO_TABLE
        reasons = "; ".join(found.values())
        if expect.safe is True and found:
            yield f"the data is not safe: {reasons}"
        elif expect.safe is not True and not found:
            yield "all data is safe"
        elif isinstance(expect.safe, str) and expect.safe not in found:
            yield f"the data is not safe for another reason: {reasons}; expected {expect.safe}"
    if expect.balanced is not None:
        problem = why_not_balanced(tables)
        if expect.balanced and problem:
            yield problem
        if not expect.balanced and not problem:
            yield "the table is balanced"
    if expect.migrations is not None:
        count = sum(isinstance(record.event, MigrationStarted) for record in records)
        if count > expect.migrations.at_most:
            yield f"{count} migrations have begun since {expect.since_text}; expected {expect.migrations.at_most} at most"
    if expect.value is not None:
        yield from _value_missing(expect.value, records, expect.since_text)


def why_not_safe(picture: Picture, tables: PartitionTables) -> Iterator[tuple[Unsafety, str]]:
    """All that keeps the data from being safe now: what the tables show, and what the members themselves are busy with.

    The health of a member calls its cluster safe by the same rules, as far as that member knows (`cluster-safe`).
    """
    found = dict(tables.unsafety())
    for label, belief in running(picture).items():
        busy = unsafety_of(belief)
        if busy is not None:
            found.setdefault(busy, f"{label}: {WORDS[busy]}")
    yield from found.items()


def why_not_balanced(tables: PartitionTables, *, leniently: bool = False) -> str:
    """Return the reasons why the one master's table is not balanced, in words; empty when it is balanced.

    With hardly more members, or groups of them, than replicas, balance may take exchanges within rows that would give up a copy
    for a while, and are not made (Avoid Data Loss on Migration, 3.2.1). Checked `leniently`, such a table is balanced enough, and
    so is none.
    """
    found = tables.imbalance(within_groups=leniently)
    if found is None:
        return "" if leniently and tables.is_without_table() else "there is no one master with a table"
    most = 1
    if leniently and found.spare_groups < 3:
        most = 2
    if found.difference <= most or (leniently and not found.spare_groups):
        return ""
    return f"the shares at replica index {found.replica_index} differ by {found.difference}; expected {most} at most"


def writes_missing(checker: InvariantChecker) -> str:
    """Why it cannot be said that no acknowledged write is lost, after every key was read; empty when none is."""
    writes = checker.writes
    for violation in checker.violations:
        if violation.invariant == writes.name:
            return violation.text
    if unread := next(writes.unreadable(), ""):
        return f"could not be read: {unread}"
    if why_uncertain := writes.why_uncertain():
        return f"cannot be judged: {why_uncertain}"
    return ""


def _row_missing(
    picture: Picture, tables: PartitionTables, partition: int, labels: Sequence[str | None]
) -> Iterator[str]:
    for label, belief in running(picture).items():
        table = tables.by_incarnation.get(belief.uuid)
        row = table.rows.get(partition) if table else None
        if row is None:
            yield f"{label} does not know who holds partition {partition}"
            continue
        holders = [None if uuid is None else tables.label(uuid) for uuid in row.holders]
        while holders and holders[-1] is None:
            holders.pop()
        wanted = list(labels)
        while wanted and wanted[-1] is None:
            wanted.pop()
        if holders != wanted:
            names = ", ".join(name or "-" for name in wanted)
            yield f"{label} has partition {partition} held by {tables.names(row.holders)}; expected {names}"


def _value_missing(wanted: ExpectedValue, records: Sequence[Record], since: str) -> Iterator[str]:
    what = f"{wanted.key} of {wanted.map}"
    ends = [record.event for record in records if isinstance(record.event, CallFinished)]
    answers = [end for end in ends if (end.operation, end.map, end.key) == ("get", wanted.map, wanted.key)]
    if not answers:
        yield f"no get of {what} has ended since {since}"
    elif answers[-1].problem:
        yield f"{what} could not be read: {answers[-1].problem}"
    elif (actual := answers[-1].value if answers[-1].found else None) != wanted.value:
        yield f"{what} was read as {_shown(actual)}; expected {_shown(wanted.value)}"


def _shown(value: str | None) -> str:
    return "nothing" if value is None else repr(value)
