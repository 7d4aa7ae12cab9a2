"""Files cut anywhere: the same is read, every line once."""

from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quarterdeck.backend.hazelcast.logs.lines import file_splits, message_assembly
from quarterdeck.backend.hazelcast.logs.lines.file_splits import SplitCounts, plan_splits, read_split
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import Message
from quarterdeck.backend.hazelcast.logs.log_set import split_offsets
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import read_logs
from tests.thoroughness import examples, long_after

DATA = Path(__file__).parent / "data"
PIECES = [
    "2026-11-21 12:27:00,403 [ INFO] [main] [c.h.i.c.ClusterService]: [10.77.0.4]:5701 [dev] [5.3.8] ",
    "Members {size:1, ver:1} [",
    "\tMember [10.77.0.4]:5701 - 31a1ee1a-d4cd-42be-8bca-27be5ff3b6c7 this",
    "]",
    "",
    "Nov 21, 2026 12:15:50 PM com.hazelcast.core.LifecycleService",
    "INFO: [10.77.0.1]:5701 [dev] [5.3.8] [10.77.0.1]:5701 is STARTING",
    "node-1  | 2026-11-21 12:27:00,403 INFO x - [10.77.0.2]:5701 [dev] [5.3.8] Starting mastership claim process...",
    "node-1  | ",
    "node-1  | \tat com.hazelcast.X.y(X.java:1)",
    "node-2  | 2026-11-21 12:27:01,403 INFO x - [10.77.0.3]:5701 [dev] [5.3.8] \u0000",
    "node-2  | Members {size:1, ver:1} [",
    "2026-11-21T12:15:50.1Z stdout P 2026-11-21 12:15:50,000 INFO x - [10.77.0.5]:5701 [dev] [5.3.8] [10.77.0",
    "2026-11-21T12:15:50.2Z stdout P .5]:5701 is",
    "2026-11-21T12:15:50.3Z stdout F  STARTED",
    "[10.77.0.6]:5701 [dev] [5.3.8] no time of its own",
    "Caused by: java.io.IOException",
    "12:15:50,003 no date",
]
LINES = st.lists(
    st.sampled_from(PIECES).map(str.encode) | st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b"")),
    max_size=40,
)


def everything(file: Path, split_bytes: int) -> tuple[list[tuple[object, ...]], int]:
    """All that is found, in order, and the number of lines that it stands for."""
    counted: list[SplitCounts] = []
    found: list[tuple[object, ...]] = []
    plan = plan_splits([file], split_bytes)
    for split in plan:
        counts = SplitCounts()
        before = sum(part.lines for part in counted)
        for message in read_split(split, UTC, counts):
            dated = isinstance(message, Message) and not message.dateless
            time = message.utc if dated and isinstance(message, Message) else None
            found.append(
                (message.offset, before + message.number, message.lines, message.text, type(message).__name__, time)
            )
        counted.append(counts)
    return sorted(found, key=str), sum(part.lines for part in counted)


CUT_OBJECT = [b"{", b"2026-11-21 12:27:00,403 [ INFO] [main] [c.h.i.c.ClusterService]: [10.77.0.4]:5701 [dev] [5.3.8] "]


@settings(max_examples=examples(300))
@example(lines=CUT_OBJECT, split_bytes=1, reach=20, ending=b"\n")
@example(lines=[*CUT_OBJECT, b"Members {size:1, ver:1} ["], split_bytes=1, reach=97, ending=b"\n")
@example(lines=[b"{", b"\xff\xfe", CUT_OBJECT[1]], split_bytes=1, reach=100, ending=b"\n")
@given(
    lines=LINES, split_bytes=st.integers(1, 400), reach=st.integers(20, 400), ending=st.sampled_from([b"\n", b"\r\n"])
)
def test_where_a_file_is_cut_makes_no_difference(
    lines: list[bytes], split_bytes: int, reach: int, ending: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("cut") / "h.log"
    file.write_bytes(ending.join(lines))
    with pytest.MonkeyPatch.context() as patch:
        for module in (message_assembly, file_splits):
            patch.setattr(module, "MAX_MESSAGE_BYTES", reach)
        patch.setattr(file_splits, "LOOK_BACK_BYTES", 3 * reach)
        whole, counted = everything(file, 1 << 30)
        parts, counted_in_parts = everything(file, split_bytes)
    assert counted == counted_in_parts == len(list(file.open("rb")))
    assert sum(int(str(record[2])) for record in whole) == counted
    assert parts == whole


@settings(max_examples=examples(100))
@given(lines=LINES)
def test_whatever_stands_in_a_file_is_read_to_its_end(
    lines: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("any") / "h.log"
    file.write_bytes(b"\n".join(lines))
    reading = read_logs([file])
    counted = sum(numbers for counts in reading.counts.values() for _, numbers in counts.values())
    assert counted == len(list(file.open("rb")))


@pytest.mark.parametrize("split_bytes", long_after(1, [1_000, 100, 5_000]))
def test_records_do_not_depend_on_the_splits(split_bytes: int) -> None:
    whole = read_logs([DATA])
    parts = read_logs([DATA], split_bytes=split_bytes)
    assert parts.records == whole.records
    assert parts.counts == whole.counts


def test_a_very_long_line_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "h.log"
    file.write_bytes(b"x" * (3 << 20) + b"\n" + PIECES[6].encode() + b"\n")
    reading = read_logs([file])
    assert [aside.line for aside in reading.quarantine] == [1, 2]
    assert reading.quarantine[1].reason == "no time is known for it"


def test_compressed_logs_are_read(tmp_path: Path) -> None:
    import gzip

    file = tmp_path / "h1.log.gz"
    file.write_bytes(gzip.compress((DATA / "split-and-merge" / "h1.log").read_bytes()))
    plain = read_logs([DATA / "split-and-merge" / "h1.log"], LogOptions(run="x"))
    assert read_logs([file], LogOptions(run="x")).records == plain.records


def test_times_without_a_date_go_over_midnight_and_over_splits(tmp_path: Path) -> None:
    said = "INFO x - [10.77.0.1]:5701 [dev] [5.3.8] [10.77.0.1]:5701 is STARTED"
    hours = [10, 22, 3, 12, 23, 1]
    file = tmp_path / "h.log"
    file.write_text("".join(f"{hour:02}:00:00,000 {said}\n" for hour in hours))
    for split_bytes in (1 << 20, 90):
        summaries = [SplitCounts() for _ in plan_splits([file], split_bytes)]
        times = []
        for split, counts in zip(plan_splits([file], split_bytes), summaries, strict=True):
            times.append(
                [
                    message.utc
                    for message in read_split(split, UTC, counts)
                    if isinstance(message, Message) and message.utc is not None
                ]
            )
        shifts = split_offsets(summaries, 0, 0)
        whole = [
            (utc + shift.dateless_us) // 3_600_000_000
            for some, shift in zip(times, shifts, strict=True)
            for utc in some
        ]
        assert whole == [10, 22, 27, 36, 47, 49]
