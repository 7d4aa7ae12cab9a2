"""Files that are not as the product writes them: packed and torn, of UTF-16, JSON as people print it, empty."""

import gzip
import json
from pathlib import Path

import pytest

from quarterdeck.backend.hazelcast.logs.lines.file_splits import TORN
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import NO_HEAD
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import LogRecords, read_logs

DATA = Path(__file__).parent / "data" / "split-and-merge-log4j2"
RUN = LogOptions(run="r")


def written(folder: Path, encoding: str) -> LogRecords:
    for log in sorted(DATA.glob("*.log")):
        (folder / log.name).write_bytes(log.read_text().encode(encoding))
    return read_logs([folder], RUN)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_other_encodings_of_unicode_are_read(encoding: str, tmp_path: Path) -> None:
    read = written(tmp_path, encoding)
    plain = read_logs([DATA], RUN)
    assert read.records == plain.records
    assert [[line.line for line in story.observations[0].evidence] for story in read.stories] == [
        [line.line for line in story.observations[0].evidence] for story in plain.stories
    ]


def as_json(text: str, indent: int | None) -> list[str]:
    """The messages of a log in the JSON layout of log4j2."""
    objects = []
    for line in text.replace("\n\t", "\\t").replace("\n]", "\\]").replace("\n\n", "\\n").splitlines():
        if line[:4] != "2026":
            continue
        stamp, rest = line[:23].replace(",", ".").replace(" ", "T"), line[24:]
        message = rest.partition("]: ")[2].replace("\\t", "\n\t").replace("\\]", "\n]").replace("\\n", "\n\n")
        objects.append({"timestamp": f"{stamp}Z", "level": "INFO", "loggerName": "com.hazelcast.X", "message": message})
    return [json.dumps(value, indent=indent) for value in objects]


@pytest.mark.parametrize("glue", ["\n", ",\n"])
@pytest.mark.parametrize("split_bytes", [1 << 25, 3000])
def test_json_over_many_lines_is_what_it_is_on_one(glue: str, split_bytes: int, tmp_path: Path) -> None:
    for folder, indent in (("flat", None), ("printed", 2)):
        (tmp_path / folder).mkdir()
        for log in sorted(DATA.glob("*.log")):
            (tmp_path / folder / log.name).write_text(glue.join(as_json(log.read_text(), indent)) + "\n")
    flat = read_logs([tmp_path / "flat"], RUN, split_bytes)
    printed = read_logs([tmp_path / "printed"], RUN, split_bytes)
    assert len(printed.records) > 60 and printed.records == flat.records
    assert printed.quarantine == []
    for file, counts in printed.counts.items():
        assert sum(lines for _, lines in counts.values()) == len(Path(file).read_text().splitlines())


def test_a_brace_that_opens_nothing_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "h1.log").write_text("{\n" + (DATA / "h1.log").read_text())
    read = read_logs([tmp_path], RUN)
    assert len(read.records) == len(read_logs([DATA / "h1.log"], RUN).records)
    assert [(entry.line, entry.reason) for entry in read.quarantine] == [(1, NO_HEAD)]


def test_a_torn_packed_file_is_read_to_the_tear(tmp_path: Path) -> None:
    whole = gzip.compress((DATA / "h4.log").read_bytes())
    (tmp_path / "h4.log.gz").write_bytes(whole[: len(whole) * 2 // 3])
    read = read_logs([tmp_path], RUN)
    assert 0 < len(read.records) < len(read_logs([DATA / "h4.log"], RUN).records)
    assert [(entry.file.name, entry.reason) for entry in read.quarantine] == [("h4.log.gz", TORN)]
