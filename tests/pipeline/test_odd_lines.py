"""Lines that look like records and are none: audit, tables, streams and readers set aside the same ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck.backend.commands.check import check
from quarterdeck.backend.core.commands import CommandRefused, DelayLink
from quarterdeck.backend.journal.reader import read_journal
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.judging.lines import TORN
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.pipeline.journal_builder import clean_story, line, write

RECORD = json.loads(line(clean_story("odd").records[3]))
LIST = json.loads(line(clean_story("odd").records[0]))
HOLDERS = [{"address": "a:1", "uuid": "u"}]


def with_event(event: dict[str, object]) -> bytes:
    return json.dumps(RECORD | {"event": event}).encode()


def with_table(rows: list[list[int]]) -> bytes:
    changed = {"table_version": 1, "digest": "d", "partitions": 1, "author": "u", "cause": "published"}
    return with_event({"kind": "table-changed", "holders": HOLDERS, "rows": rows, **changed})


ODD = {
    "nested-deeply": b"[" * 100_000,
    "a-field-nested-deeply": line(clean_story("odd").records[3])[:-2] + b',"later":' + b"[" * 100_000,
    "a-number-of-65-bits": json.dumps(RECORD | {"seq": 1 << 63}).encode(),
    "a-time-of-65-bits": json.dumps(RECORD | {"at": -(1 << 63) - 1}).encode(),
    "a-number-of-65-bits-in-its-event": json.dumps(LIST | {"event": LIST["event"] | {"version": 1 << 63}}).encode(),
    "a-row-without-its-holder": with_table([[0, 1, 0, 1]]),
    "a-row-of-a-negative-holder": with_table([[0, 1, 0, -2]]),
    "a-row-without-an-owner": with_table([[0, 1]]),
    "an-owner-that-is-not-there": with_event(
        {"kind": "owners-told", "holders": HOLDERS, "owners": [0, 1], "digest": "d"}
    ),
}


def test_no_command_makes_a_record_that_is_none() -> None:
    for delay_us, up_to_us in ((1 << 63, 0), (0, 1 << 63)):
        with pytest.raises(CommandRefused, match="longer than a record can say"):
            check(DelayLink(("n1",), ("n2",), delay_us, up_to_us=up_to_us), ("n1", "n2"), lambda _: "running")


@pytest.mark.parametrize("name", ODD)
def test_an_odd_line_is_set_aside_everywhere(tmp_path: Path, name: str) -> None:
    root = write(tmp_path / "journal", clean_story("odd"))
    (root / "run=odd" / "odd-000001.jsonl").write_bytes(ODD[name] + b"\n")
    result = audit([root])
    assert [(problem.line, problem.reason) for problem in result.problems] == [(ODD[name].decode(), TORN)]
    update_store([root], tmp_path / "tables")
    assert audit([tmp_path / "tables"]).counts | {"files": 2} == result.counts
    journal = read_journal(root)
    assert len(list(journal)) == result.counts["records"]
    assert [problem.file.name for problem in journal.problems] == ["odd-000001.jsonl"]
