"""The recordings as other collectors would have kept them: the records are the same."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

import pytest

from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.judgement.observations.run_reader import RecordsRead, read_run

DATA = Path(__file__).parent / "data"
MEMBERS = ["h1", "h2", "h3", "h4", "h5"]
RUNS = ["split-and-merge", "split-and-merge-log4j2"]
COLLECTED = "2026-11-21T12:27:55.123456789Z"


def lines_of(run: str, member: str) -> list[str]:
    return (DATA / run / f"{member}.log").read_text().splitlines()


def cri(_: str, line: str) -> str:
    if len(line) > 300:
        return f"{COLLECTED} stdout P {line[:200]}\n{COLLECTED} stdout F {line[200:]}"
    return f"{COLLECTED} stdout F {line}"


def docker_json(_: str, line: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stdout", "time": COLLECTED})


def docker_json_of_containers(member: str, line: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stdout", "time": COLLECTED, "container_name": member})


def compose(member: str, line: str) -> str:
    return f"hazelcast-{member}    | {line}"


def syslog(member: str, line: str) -> str:
    escaped = line.replace("\t", "#011")
    return f"Nov 21 12:27:56 host-{member} hazelcast[17]: {escaped}"


def syslog_5424(member: str, line: str) -> str:
    return f"<14>1 2026-11-21T12:27:56.000Z host-{member} hazelcast 17 - - {line}"


def journald(member: str, line: str) -> str:
    """As ``journalctl -o json`` prints what a service writes; a line with control characters as a list of bytes."""
    message = list(f"\x1b[32m{line}\x1b[0m".encode()) if line.startswith("\t") else line
    return json.dumps(
        {
            **{"__REALTIME_TIMESTAMP": "1795264075123456", "_HOSTNAME": f"host-{member}", "_TRANSPORT": "stdout"},
            **{"SYSLOG_IDENTIFIER": "hazelcast", "_PID": "17", "PRIORITY": "6", "MESSAGE": message},
        }
    )


def kubectl(member: str, line: str) -> str:
    return f"[pod/hz-{member}/hazelcast] {COLLECTED} {line}"


def coloured(_: str, line: str) -> str:
    return f"\x1b[32m{line}\x1b[0m\r"


def dressed(run: str, into: Path, dress: Callable[[str, str], str], *, one_file: bool) -> Path:
    """The logs of `run` with every line dressed; in one file, the members' lines take turns."""
    into.mkdir()
    wardrobe = {member: [dress(member, line) for line in lines_of(run, member)] for member in MEMBERS}
    if one_file:
        rounds: Iterator[tuple[str | None, ...]] = zip_longest(*wardrobe.values())
        text = "\n".join(line for round_of_lines in rounds for line in round_of_lines if line is not None)
        (into / "all.log").write_text(text + "\n", newline="")
    else:
        for member, lines in wardrobe.items():
            (into / f"{member}.log").write_text("\n".join(lines) + "\n", newline="")
    return into


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("dress", [cri, docker_json, coloured])
def test_files_of_containers(run: str, dress: Callable[[str, str], str], tmp_path: Path) -> None:
    reading = read_logs([dressed(run, tmp_path / "logs", dress, one_file=False)], LogOptions(run=run))
    assert reading.records == read_logs([DATA / run]).records
    assert reading.quarantine == []


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("dress", [compose, docker_json_of_containers, syslog, syslog_5424, journald, kubectl])
@pytest.mark.parametrize("split_bytes", [1 << 25, 3_000])
def test_one_file_in_which_the_members_take_turns(
    run: str, dress: Callable[[str, str], str], split_bytes: int, tmp_path: Path
) -> None:
    logs = dressed(run, tmp_path / "logs", dress, one_file=True)
    reading = read_logs([logs], LogOptions(run=run), split_bytes)
    assert reading.records == read_logs([DATA / run]).records
    assert reading.quarantine == []


@pytest.mark.parametrize("run", RUNS)
def test_one_file_with_the_members_one_after_the_other(run: str, tmp_path: Path) -> None:
    (tmp_path / "all.log").write_text("".join((DATA / run / f"{member}.log").read_text() for member in MEMBERS))
    assert read_logs([tmp_path / "all.log"], LogOptions(run=run)).records == read_logs([DATA / run]).records


@pytest.mark.parametrize("run", RUNS)
def test_rotated_files(run: str, tmp_path: Path) -> None:
    """The newest file has the plain name, as log4j2 leaves it."""
    for member in MEMBERS:
        lines = (DATA / run / f"{member}.log").read_text().splitlines(keepends=True)
        heads = [place for place, line in enumerate(lines) if line.startswith(("Nov 21", "2026-"))]
        cut = heads[len(heads) // 2]
        (tmp_path / f"{member}.log.1").write_text("".join(lines[:cut]))
        (tmp_path / f"{member}.log").write_text("".join(lines[cut:]))
    assert read_logs([tmp_path], LogOptions(run=run)).records == read_logs([DATA / run]).records


@pytest.mark.parametrize("run", RUNS)
def test_files_that_were_rotated_inside_a_member_list(run: str, tmp_path: Path) -> None:
    """The end of one file and the beginning of the next are one list, for who reads all and for who reads events only."""
    for member in MEMBERS:
        lines = (DATA / run / f"{member}.log").read_text().splitlines(keepends=True)
        lists = [place for place, line in enumerate(lines) if "Members {size:" in line]
        cut = lists[len(lists) // 2] + 2
        (tmp_path / f"{member}.log.1").write_text("".join(lines[:cut]))
        (tmp_path / f"{member}.log").write_text("".join(lines[cut:]))
    expected = read_logs([DATA / run]).records
    read = read_logs([tmp_path], LogOptions(run=run))
    assert (read.records, read.quarantine) == (expected, [])
    skimmed = [record for news in read_run(tmp_path) if isinstance(news, RecordsRead) for record in news.records]
    assert len(skimmed) == len(expected)


def test_times_of_a_known_zone(tmp_path: Path) -> None:
    run = "split-and-merge-log4j2"
    (tmp_path / "h4.log").write_text((DATA / run / "h4.log").read_text().replace("2026-11-21 12:2", "2026-11-21 14:2"))
    plain = read_logs([DATA / run / "h4.log"]).records
    shifted = read_logs([tmp_path / "h4.log"], LogOptions(run=run, zone="Europe/Athens")).records
    assert [(record.uuid, record.seq, record.at, record.utc) for record in shifted] == [
        (record.uuid, record.seq, record.at, record.utc) for record in plain
    ]


def test_a_container_engine_tells_the_zone(tmp_path: Path) -> None:
    line = "2026-11-21 23:27:50,000 INFO x - [10.77.0.1]:5701 [dev] [5.3.8] [10.77.0.1]:5701 is STARTING"
    (tmp_path / "a.log").write_text(cri("", line.replace("21 23", "22 01")) + "\n" + docker_json("", line) + "\n")
    utcs = [datetime.fromtimestamp(record.utc / 1e6, UTC).isoformat() for record in read_logs([tmp_path]).records]
    assert utcs == ["2026-11-21T12:27:50+00:00"] * len(utcs)


@pytest.mark.parametrize("date", ["", "2026-11-21"])
def test_times_without_a_date(date: str, tmp_path: Path) -> None:
    """As log4j's own default prints them; the date is that of the file, or given."""
    run = "split-and-merge-log4j2"
    file = tmp_path / "h4.log"
    file.write_text((DATA / run / "h4.log").read_text().replace("\n2026-11-21 12", "\n12").removeprefix("2026-11-21 "))
    end = datetime(2026, 11, 21, 13, 0, tzinfo=UTC).timestamp()
    os.utime(file, (end, end) if not date else (0, 0))
    records = read_logs([file], LogOptions(run=run, date=date)).records
    assert records == read_logs([DATA / run / "h4.log"]).records


def test_a_wrong_option_says_so(tmp_path: Path) -> None:
    (tmp_path / "h4.log").write_text("x\n")
    with pytest.raises(ValueError, match="zone: 'Nowhere'"):
        read_logs([tmp_path], LogOptions(zone="Nowhere"))
    with pytest.raises(ValueError, match="date: 'tomorrow'"):
        read_logs([tmp_path], LogOptions(date="tomorrow"))
