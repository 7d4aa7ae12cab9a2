"""The event classes and the schemas agree, kind by kind."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet
import pytest
from msgspec import inspect
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import LongType, StringType

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions.events import TableChanged
from quarterdeck.backend.core.witnessed.events import OwnersTold
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.group_judge import judge_group
from quarterdeck.backend.pipeline.judging.lines import CONTRADICTS, TORN, NoRecord, decode_record, strange_record
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.rules import NAMES
from quarterdeck.backend.pipeline.schemas import (
    EVENT,
    EVENT_CLASSES,
    RECORD,
    SchemaConflict,
    event_struct,
)
from quarterdeck.backend.pipeline.tables.run_events import RunLines, record_columns
from tests.pipeline.journal_builder import clean_story, line

SOUND: dict[type, dict[str, object]] = {TableChanged: {"rows": [[2**62, 2**62, 1]]}, OwnersTold: {"owners": [1, 0]}}
"""What has to name the other fields."""


def sample(kind: inspect.Type) -> Any:
    """Some JSON value of this type; text is unlike any default."""
    match kind:
        case inspect.BoolType():
            return True
        case inspect.IntType(ge=least, le=most):
            assert (least, most) == (-(2**63), 2**63 - 1), "a column of a table could not hold it: declare it Int64"
            return 2**62
        case inspect.FloatType():
            return 0.25
        case inspect.StrType():
            return 'ä "quoted" \\ [fe80::1]:5701\n'
        case inspect.LiteralType(values=values):
            return values[-1]
        case inspect.UnionType(types=types):
            return sample(next(kind for kind in types if not isinstance(kind, inspect.NoneType)))
        case inspect.VarTupleType(item_type=item):
            return [sample(item), sample(item)]
        case inspect.DictType(key_type=key, value_type=value):
            return {sample(key): sample(value)}
        case inspect.StructType(fields=fields):
            return {field.encode_name: sample(field.type) for field in fields}
    raise AssertionError(kind)


def as_json(value: object) -> object:
    """A value from a row, without the columns that are null."""
    if isinstance(value, Row):
        return {name: as_json(part) for name, part in value.asDict().items() if part is not None}
    if isinstance(value, list):
        return [as_json(part) for part in value]
    return value


def test_every_kind_of_event_round_trips(spark: SparkSession, tmp_path: Path) -> None:
    wanted = [
        {
            "run": "r",
            "member": "a",
            "uuid": "u",
            "seq": seq,
            "at": seq,
            "utc": seq,
            "event": {"kind": kind.tag} | sample(kind) | SOUND.get(kind.cls, {}),
        }
        for seq, kind in enumerate(EVENT_CLASSES, start=1)
    ]
    columns = record_columns([line(msgspec.convert(row, Record)).strip() for row in wanted])
    pyarrow.parquet.write_table(columns, tmp_path / "all.parquet")
    events = spark.read.schema(RECORD).parquet(str(tmp_path / "all.parquet"))
    assert [as_json(row) for row in events.orderBy("seq").collect()] == wanted


def test_types_of_columns() -> None:
    assert RECORD["at"].dataType == LongType()
    assert EVENT["kind"].dataType == StringType()
    assert EVENT["members"].dataType.simpleString() == (
        "array<struct<address:string,uuid:string,join_version:bigint,lite:boolean,zone:string>>"
    )
    assert EVENT["reasons"].dataType.simpleString() == "map<string,string>"
    assert EVENT["loss"].dataType.simpleString() == "double"


class First(msgspec.Struct, tag_field="kind", tag="first"):
    size: int


class Second(msgspec.Struct, tag_field="kind", tag="second"):
    size: str


class Third(msgspec.Struct, tag_field="kind", tag="third"):
    size: object


def test_kinds_that_disagree_are_refused() -> None:
    with pytest.raises(SchemaConflict, match=r"Second\.size is string, in First it is bigint"):
        event_struct((struct_of(First), struct_of(Second)))
    with pytest.raises(SchemaConflict, match=r"Third\.size: CustomType has no column type"):
        event_struct((struct_of(Third),))


def struct_of(kind: type) -> inspect.StructType:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found


def lacking(kind: str) -> bytes:
    """A record of which nothing of the event is there but its kind."""
    return b'{"run":"r","member":"a","uuid":"u","seq":1,"at":1,"utc":1,"event":{"kind":"%s"}}' % kind.encode()


def test_what_may_be_null_is_not_missing() -> None:
    assert reason_of(lacking("link-changed")) == "link-changed lacks source, target"
    _, _, names = str(reason_of(lacking("migration-started"))).partition(" lacks ")
    assert "owner" in names.split(", ") and "source" not in names.split(", ")


def reason_of(raw: bytes) -> str:
    try:
        decode_record(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        with pytest.raises(NoRecord) as caught:
            strange_record(raw, problem)
        return str(caught.value)
    raise AssertionError(raw)


def test_a_line_is_no_record_for_the_same_reason_in_tables_as_in_the_audit(tmp_path: Path) -> None:
    sound = msgspec.json.encode(clean_story("r").records[0])
    no_records = [
        b"",
        b"torn",
        b'"text"',
        b"\xff\xfe",
        sound[:40],
        sound.replace(b'"seq":1', b'"seq":"one"'),
        sound.replace(b'"run"', b'"walk"'),
        sound.replace(b'"member":"a', b'"member":"\xff'),
        *(lacking(str(kind.tag)) for kind in EVENT_CLASSES if any(field.required for field in kind.fields)),
    ]
    file = tmp_path / "damaged.jsonl"
    file.write_bytes(b"\n".join([sound, *no_records, sound.replace(b'"utc":', b'"utc":1234567890123456789')]))
    lines = RunLines()
    for number, raw in enumerate(file.read_bytes().split(b"\n"), start=1):
        lines.add(raw, str(file), number, "r")
    (event,), _ = lines.events("r")
    assert event.raw == sound
    told = [row.reason for rows in lines.quarantine.values() for row in rows]
    assert sorted(told) == sorted([*map(reason_of, no_records), TORN])
    judged = judge_group([InputFile(str(file), str(file))], AuditQuestion(NAMES))
    reasons = [problem.reason for problem in judged.aside.problems if not problem.reason.startswith(CONTRADICTS)]
    assert reasons == [*map(reason_of, no_records), TORN]
