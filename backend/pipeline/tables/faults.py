"""A table of all that was done to a cluster from outside, from its beginning to its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter

from quarterdeck.backend.pipeline.tables.columns import schema
from quarterdeck.backend.pipeline.tables.run_events import JournalTable, Row, RunEvents, followed

FAULTS = schema(
    """
    run
    fault string kill, pause or link
    member string label of the member that was killed or paused; null for a link
    source string label of the member from which the link leads
    target string label of the member to which the link leads
    from_at bigint microseconds on the run's clock
    to_at bigint when it was mended or changed; null while it lasted, and for a kill
    blocked string blackhole or reset; empty while the link only got worse
    delay bigint microseconds added to each message
    loss double probability that a message is dropped
    duplicate double probability that a message arrives twice
    dropped_kinds array<string> kinds of messages that are dropped always
    worse_kinds array<string> kinds of messages that are delayed, lost, doubled or held apart from others
    """
)

OF_MEMBERS = ("process-paused", "process-resumed", "process-killed")
LINK = "blocked delay loss duplicate dropped_kinds"
FIELDS = f"kind target source {LINK} delay_up_to of_kinds"


def faults(events: RunEvents) -> list[Row]:
    """Make one row for each kill, pause and condition of a link."""
    return [*_of_members(events), *_of_links(events)]


def _of_members(events: RunEvents) -> Iterator[Row]:
    for row, following in _each_followed(events.rows(OF_MEMBERS, "run at seq", "kind target"), "target"):
        if row["kind"] != "process-resumed":
            fault = "kill" if row["kind"] == "process-killed" else "pause"
            to_at = following["at"] if following is not None and fault == "pause" else None
            yield {"run": row["run"], "fault": fault, "member": row["target"], "from_at": row["at"], "to_at": to_at}


def _of_links(events: RunEvents) -> Iterator[Row]:
    rows = events.rows(("link-changed",), "run at seq", f"source target {LINK} delay_up_to of_kinds")
    for row, following in _each_followed(rows, "source", "target"):
        worse = [condition["kind"] for condition in row["of_kinds"] or ()]
        if worse or any(row[name] for name in (*LINK.split(), "delay_up_to")):
            to_at = None if following is None else following["at"]
            yield row | {"fault": "link", "from_at": row["at"], "to_at": to_at, "worse_kinds": worse}


def _each_followed(rows: list[Row], *what: str) -> Iterator[tuple[Row, Row | None]]:
    """Yield each row with the next one of the same run that is about the same."""
    by_what = defaultdict(list)
    of_one = itemgetter("run", *what)
    for row in sorted(rows, key=itemgetter("at", "seq")):
        by_what[of_one(row)].append(row)
    for in_order in by_what.values():
        yield from followed(in_order)


FAULT_TABLE = JournalTable(
    "faults", FAULTS, FIELDS, (*OF_MEMBERS, "link-changed"), faults, "what was done to the cluster from outside"
)
