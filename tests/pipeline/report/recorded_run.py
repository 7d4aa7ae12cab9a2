"""A simulated run with everything that a report shows, and one violation planted in it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from quarterdeck.backend.core.events import JournalChanged, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.scenarios.format.reading import load_scenario
from quarterdeck.backend.simulation.simulated_driver import simulate

SCENARIO = Path(__file__).with_name("everything.yaml")
SEED = 3
RUN = f"everything-seed-{SEED}"
OLD_VERSION = 2


class RecordList(list[Record]):
    """Takes records like a journal."""


def everything() -> list[Record]:
    records = RecordList()
    outcome = simulate(load_scenario(SCENARIO), SEED, records, run=RUN)
    assert outcome.passed, outcome
    return records


def planted(records: list[Record]) -> list[Record]:
    """The last list that delphi installs gets a version that it had long before; and a journal can be written again."""
    place = max(
        number
        for number, record in enumerate(records)
        if record.member == "delphi" and isinstance(record.event, ListInstalled)
    )
    record = records[place]
    assert isinstance(record.event, ListInstalled)
    changed = replace(record, event=replace(record.event, version=OLD_VERSION))
    done = max((record for record in records if isinstance(record.event, LinkChanged)), key=lambda one: one.seq)
    last = max(record.seq for record in records if record.uuid == done.uuid)
    written_again = replace(done, seq=last + 1, at=records[-1].at, event=JournalChanged("athens", "", 0))
    return [*records[:place], changed, *records[place + 1 :], written_again]


def written(root: Path, records: list[Record]) -> Path:
    with JournalWriter(root, records[0].run, "test") as journal:
        for record in records:
            journal.append(record)
    return root
