"""The form of a file is learned from its lines: what stands before them, behind them, around them, and in which order."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.generators.log_layouts import PAGE, page
from quarterdeck.backend.hazelcast.logs.lines.file_splits import form_of
from quarterdeck.backend.hazelcast.logs.lines.form import LAYOUTS, FileForm, LogLayout
from quarterdeck.backend.hazelcast.logs.lines.form_detection import learned_form
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import FileContext, Message, MessageAssembler
from quarterdeck.backend.hazelcast.logs.log_files import NoLogs, log_files
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import LogRecords, read_logs
from quarterdeck.backend.judgement.observations.run_reader import check_logs, read_run
from tests.hazelcast.logs.test_layout import NOON, STARTED

DATA = Path(__file__).parent / "data"
RUN = DATA / "split-and-merge-log4j2"
HALF = (RUN / "h1.log").read_text()
LINES = HALF.splitlines()
PLAIN = read_logs([RUN / "h1.log"], LogOptions(run="r", date="2026-11-21"))


def messages(lines: list[str], form: FileForm) -> list[Message]:
    assembler = MessageAssembler(FileContext(form=form))
    found = [
        made for number, line in enumerate(lines) for made in assembler.add_line(number * 100, number, f"{line}\n")
    ]
    return [made for made in (*found, *assembler.end()) if isinstance(made, Message)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_every_row_of_layouts_reads_its_examples(layout: LogLayout) -> None:
    lines = [line for example in layout.examples for line in example.split("\n")]
    form = learned_form([f"{line}\n" for line in lines])
    started, removing = messages(lines, form)
    assert (started.utc, started.member, started.text, started.logger) == (
        NOON,
        "10.77.0.4:5701",
        STARTED,
        "LifecycleService",
    )
    assert started.ours and started.cluster == "dev"
    assert removing.text == "Removing Member [10.77.0.5]:5701 - 31a1ee1a-d4cd-42be-8bca-27be5ff3b6c7"


def test_the_page_shows_every_row() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m docs.generators.log_layouts"


def written(place: Path, text: str, name: str = "h1.log") -> LogRecords:
    (place / name).write_text(text)
    return read_logs([place / name], LogOptions(run="r", date="2026-11-21"))


def told(found: LogRecords) -> list[tuple[str, int, str]]:
    return [(record.member, record.at, str(record.event)) for record in found.records]


PREFIXES: dict[str, Callable[[int, str], str]] = {
    "indented": lambda _, line: f"    {line}",
    "quoted": lambda _, line: f"> {line}".rstrip(),
    "quoted twice": lambda _, line: f"> > {line}",
    "stern": lambda _, line: f"hz-0 hazelcast {line}",
    "stern with colons": lambda _, line: f"hz-0 hazelcast: {line}",
    "two pods of stern": lambda number, line: f"hz-0 hazelcast {line}",
    "grep -H": lambda _, line: f"logs/h1.log:{line}",
    "grep -Hn": lambda number, line: f"logs/h1.log:{number + 1}:{line}",
    "cat -n": lambda number, line: f"{number + 1:6}\t{line}",
    "compose indented": lambda _, line: f"      hz-1_1  | {line}",
    "a prefix of a team": lambda _, line: f"prod/eu-1/hz-0 >> {line}",
    "stern with times": lambda number, line: f"hz-0 hazelcast 2026-11-21T12:27:55.{number % 1000:03}Z {line}",
    "crlf": lambda _, line: f"{line}\r",
}


@pytest.mark.parametrize("name", PREFIXES)
def test_what_stands_before_every_line_is_found(name: str, tmp_path: Path) -> None:
    found = written(tmp_path, "".join(f"{PREFIXES[name](number, line)}\n" for number, line in enumerate(LINES)))
    assert told(found) == told(PLAIN)
    assert not found.quarantine


def test_a_layout_that_is_not_known_is_found_and_said(tmp_path: Path) -> None:
    """Only the first lines of messages have what stands before the time."""
    text = "".join(f"<<app=shop>> node#7 {line}\n" if line[:2] == "20" else f"{line}\n" for line in LINES)
    found = written(tmp_path, text)
    assert told(found) == told(PLAIN)
    assert any("layout is not known here" in note for note in found.stories[0].reading)


EXPORTS: dict[str, Callable[[list[str]], str]] = {
    "elastic": lambda lines: "".join(
        json.dumps({"_index": "x", "_source": {"@timestamp": "2026-11-21T12:30:00Z", "message": line}}) + "\n"
        for line in lines
    ),
    "loki": lambda lines: "".join(
        json.dumps({"line": line, "timestamp": "2026-11-21T12:30:00Z", "labels": {"pod": "a"}}) + "\n" for line in lines
    ),
    "gcp": lambda lines: "".join(
        json.dumps(
            {"textPayload": line, "timestamp": "2026-11-21T12:30:00Z", "resource": {"labels": {"pod_name": "a"}}}
        )
        + "\n"
        for line in lines
    ),
    "filebeat": lambda lines: "".join(
        json.dumps(
            {
                "@timestamp": "2026-11-21T12:30:00Z",
                "message": line,
                "stream": "stdout",
                "log": {"file": {"path": "/x"}},
                "host": {"name": "a"},
            }
        )
        + "\n"
        for line in lines
    ),
    "one array": lambda lines: json.dumps(
        [{"message": line, "timestamp": 1795264200000 + n} for n, line in enumerate(lines)]
    ),
    "an array, a line each": lambda lines: (
        "[" + ",\n".join(json.dumps({"message": line, "timestamp": 1795264200000}) for line in lines) + "]\n"
    ),
    "the answer of a search": lambda lines: json.dumps(
        {
            "took": 3,
            "hits": {
                "total": 9,
                "hits": [{"_source": {"message": line, "@timestamp": "2026-11-21T12:30:00Z"}} for line in lines],
            },
        }
    ),
    "the answer of Loki": lambda lines: json.dumps(
        {
            "status": "success",
            "data": {"result": [{"stream": {"pod": "a"}, "values": [["1795264200000000000", line] for line in lines]}]},
        }
    ),
    "events of CloudWatch": lambda lines: json.dumps(
        {"events": [{"timestamp": 1795264200000, "message": line} for line in lines]}
    ),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_of_log_stores_are_read(name: str, tmp_path: Path) -> None:
    found = written(tmp_path, EXPORTS[name](LINES), "export.json")
    assert told(found) == told(PLAIN)
    assert not found.quarantine


@pytest.mark.parametrize("has_names", [True, False])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_tables_are_read(has_names: bool, delimiter: str, tmp_path: Path) -> None:
    with (tmp_path / "export.csv").open("w", newline="") as file:
        rows = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        rows.writerows([["@timestamp", "host", "message"]] * has_names)
        rows.writerows(["Nov 21, 2026 @ 12:30:00.000", "a", line] for line in LINES)
    found = read_logs([tmp_path / "export.csv"], LogOptions(run="r"))
    assert told(found) == told(PLAIN)


def newest_first(number: int, line: str) -> str:
    return (
        json.dumps(
            {
                "timestamp": f"2026-11-21T12:{number // 60 % 60:02}:{number % 60:02}.{number // 3600:03}Z",
                "message": line,
            }
        )
        + "\n"
    )


def test_printed_lines_whose_newest_stand_first_are_turned_round(tmp_path: Path) -> None:
    lines = [newest_first(number, line) for number, line in enumerate(LINES)]
    found = written(tmp_path, "".join(reversed(lines)), "export.ndjson")
    assert told(found) == told(PLAIN)
    assert any("newest messages stand first" in note for note in found.stories[0].reading)


def test_messages_whose_newest_stand_first_are_sorted(tmp_path: Path) -> None:
    blocks: list[str] = []
    for line in LINES:
        if line[:2] == "20" or not blocks:
            blocks.append("")
        blocks[-1] += f"{line}\n"
    found = written(tmp_path, "".join(reversed(blocks)))
    assert [str(record.event) for record in found.records] == [str(record.event) for record in PLAIN.records]


@pytest.mark.parametrize("written_as", ["", "^[", "ESC", "\\u001b", "\\033"])
def test_colours_that_lost_their_escape(written_as: str, tmp_path: Path) -> None:
    coloured = [
        f"{written_as}[2m{line[:23]}{written_as}[0;39m{line[23:]}{written_as}[0m" if line[:2] == "20" else line
        for line in LINES
    ]
    assert told(written(tmp_path, "\n".join(coloured) + "\n")) == told(PLAIN)


def test_what_a_cut_line_ends_in_is_not_a_member(tmp_path: Path) -> None:
    said = "2026-11-21 12:15:50,000 [ INFO] [x] [c.h.i.c.MembershipManager]: [10.77.0.4]:5701 [dev] [5.3.8] "
    for end in (
        "We should merge to [10.77.0.5]:570",
        "We should merge to [10.77.0",
        "Removing Member [10.77.0.5]:5701 - 31a1ee1a-d4cd",
    ):
        with pytest.raises(NoLogs):
            list(read_run(_file(tmp_path, said + end)))
    assert list(read_run(_file(tmp_path, f"{said}We should merge to [10.77.0.5]:5701, because: x")))


def test_the_column_at_which_lines_are_cut_is_found(tmp_path: Path) -> None:
    cut = "".join(f"{line[:150]}\n" for line in LINES)
    assert form_of(str(_file(tmp_path, cut)), 0).columns == 150
    assert form_of(str(RUN / "h1.log"), 0).columns == 0


def _file(place: Path, text: str) -> Path:
    file = place / "h.log"
    file.write_text(text)
    form_of.cache_clear()
    return file


@pytest.mark.parametrize("name", ["logs.zip", "logs.tar.gz", "logs.tgz", "logs.xz", "logs.bz2", "logs.7z", "logs.tar"])
def test_archives_are_called_archives(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04 and so on")
    for place in (tmp_path / name, tmp_path):
        with pytest.raises(NoLogs, match=f"{name} is an archive: unpack it"):
            log_files([place])
    (tmp_path / "h1.log").write_text(HALF)
    assert [file.name for file in log_files([tmp_path])] == ["h1.log"]
    *_, end = read_run(tmp_path)
    assert f"{name}: it is an archive, and was not read: unpack it" in end.story.reading


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "28aug23 at noon [10.0.0.1]:5701 [dev] [5.3.8] x is y",
            "no time that is known here; the first is .*h.log:1: 28aug23",
        ),
        ("2026-11-21 12:00:00 INFO another program", "none has the prefix .*begins with: "),
    ],
)
def test_a_refusal_shows_the_first_line_and_what_is_missing(line: str, said: str, tmp_path: Path) -> None:
    file = _file(tmp_path, f"{line}\n" * 3)
    for check in (check_logs, lambda path: list(read_run(path))):
        with pytest.raises(NoLogs, match=said):
            check(file)


@pytest.mark.parametrize("zone", ["CST", "IST", "BST"])
def test_the_name_of_several_zones_is_asked_for(zone: str, tmp_path: Path) -> None:
    dated = "".join(f"{line[:23]} {zone}{line[23:]}\n" if line[:2] == "20" else f"{line}\n" for line in LINES)
    file = _file(tmp_path, dated)
    for read in (check_logs, lambda path: read_logs([path])):
        with pytest.raises(ValueError, match=f"{zone}, which is the name of several zones; say which with --zone"):
            read(file)
    assert told(read_logs([file], LogOptions(run="r", zone="UTC"))) == told(PLAIN)


def test_an_hour_that_comes_twice_in_a_known_zone(tmp_path: Path) -> None:
    said = "2026-10-25 {} [ INFO] [x] [c.h.i.c.M]: [10.77.0.4]:5701 [dev] [5.3.8] {}\n"
    text = said.format("03:59:30,000", "Removing Member [10.77.0.5]:5701 - 31a1ee1a-d4cd-42be-8bca-27be5ff3b6c7")
    text += said.format("03:01:30,000", "We should merge to [10.77.0.6]:5701, because: x")
    records = read_logs([_file(tmp_path, text)], LogOptions(run="r", zone="Europe/Athens")).records
    assert records[-1].at - records[0].at == 120_000_000


def test_folders_are_one_run_unless_a_member_logs_in_several(tmp_path: Path) -> None:
    for host in ("h1", "h2"):
        (tmp_path / host).mkdir()
        (tmp_path / host / "hazelcast.log").write_text((RUN / f"{host}.log").read_text())
    assert {record.run for record in read_logs([tmp_path]).records} == {tmp_path.name}
    (tmp_path / "h2" / "other.log").write_text(HALF)
    assert {record.run for record in read_logs([tmp_path]).records} == {"h1", "h2"}


def test_folders_of_several_clusters_are_several_runs(tmp_path: Path) -> None:
    for host, cluster in (("h1", "dev"), ("h2", "prod")):
        (tmp_path / host).mkdir()
        text = (RUN / f"{host}.log").read_text()
        (tmp_path / host / "hazelcast.log").write_text(text.replace(f"[{CLUSTER}]", f"[{cluster}]"))
    assert {record.run for record in read_logs([tmp_path]).records} == {"h1", "h2"}


CLUSTER = HALF.partition("]:5701 [")[2].partition("]")[0]
