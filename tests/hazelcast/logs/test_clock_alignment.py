"""Members whose logs are written in different zones and name none."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import LogRecords, read_logs

DATA = Path(__file__).parent / "data" / "split-and-merge-log4j2"
STAMP = re.compile(r"^2026-11-21 \d\d:\d\d:\d\d", re.MULTILINE)


def written(folder: Path, minutes: dict[str, int]) -> Path:
    """The recording, as if its members stood in zones so many minutes ahead of UTC."""

    def moved(log: Path) -> str:
        ahead = timedelta(minutes=minutes.get(log.stem, 0))
        return STAMP.sub(lambda found: str(datetime.fromisoformat(found[0]) + ahead), log.read_text())

    for log in sorted(DATA.glob("*.log")):
        (folder / log.name).write_text(moved(log))
    return folder


def seen(read: LogRecords) -> list[tuple[str, int, int]]:
    return [(record.member, record.at, record.utc) for record in read.records]


def zones(read: LogRecords) -> list[tuple[str, ...]]:
    return [
        observation.members
        for story in read.stories
        for observation in story.observations
        if observation.kind == "zones-differ"
    ]


@pytest.mark.parametrize("ahead", [{"h4": 330}, {"h4": 330, "h5": -480}, {"h2": 120, "h3": 345}])
def test_lists_that_two_log_put_their_clocks_right(ahead: dict[str, int], tmp_path: Path) -> None:
    read = read_logs([written(tmp_path, ahead)], LogOptions(run="r"))
    assert seen(read) == seen(read_logs([DATA], LogOptions(run="r")))
    assert zones(read) == [(f"10.77.0.{name[1]}:5701",) for name in sorted(ahead)]
    assert any("5 h 30 min ahead" in observation.headline for observation in read.stories[0].observations) == (
        "h4" in ahead
    )


def test_a_told_zone_is_believed(tmp_path: Path) -> None:
    folder = written(tmp_path, {"h4": 330})
    read = read_logs([folder], LogOptions(run="r", zone="UTC,h4.log=Asia/Kolkata"))
    assert seen(read) == seen(read_logs([DATA], LogOptions(run="r")))
    assert zones(read) == []


def test_clocks_of_one_zone_are_left_alone(tmp_path: Path) -> None:
    assert zones(read_logs([DATA])) == []


def test_where_nothing_is_common_somebody_is_asked(tmp_path: Path) -> None:
    folder = written(tmp_path, {"h4": 330})
    log = (folder / "h4.log").read_text()
    (folder / "h4.log").write_text(re.sub(r"ver:\d+", "ver:77", log))
    read = read_logs([folder], LogOptions(run="r"))
    (observation,) = (observation for observation in read.stories[0].observations if observation.kind == "zones-differ")
    assert "may be in another zone" in observation.headline and "--zone h4.log=" in observation.remedy
