"""What many say of a run between them is what one says who reads all of it, whatever was done to its journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.reader import read_logs
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging import division
from quarterdeck.backend.pipeline.judging.group_judge import GroupVerdict, judge_group
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.rules import NAMES, by_weight
from tests.pipeline.journal_builder import JournalBuilder
from tests.pipeline.rules.broken_journals import NAMES as SCENARIOS
from tests.pipeline.rules.broken_journals import broken, simulated

LOGS = Path(__file__).parents[2] / "hazelcast" / "logs" / "data"
MANY_SEEDS = 300


def divided(files: dict[str, list[bytes]], question: AuditQuestion, count: int) -> GroupVerdict:
    """What `count` shares say, each file having been read apart, as engines bring rows together."""

    def read(file: InputFile) -> list[bytes]:
        return files[file.read]

    rows = [row for name in files for row in division.read_rows([InputFile(name, name)], read)]
    shared = list(division.judge_incarnations(sorted(rows, key=lambda row: row[:7]), question, count))
    return division.together(division.judge_shares(sorted(shared, key=lambda row: row[:6]), question, count))


def undivided(files: dict[str, list[bytes]], question: AuditQuestion) -> GroupVerdict:
    return judge_group([InputFile(name, name) for name in files], question, lambda file: files[file.read])


def comparable(verdict: GroupVerdict) -> dict[str, object]:
    """Findings in the order of an audit, and everything beside them."""
    runs = sorted(verdict.runs, key=lambda one: one.run)
    told = [replace(run, findings=tuple(by_weight(run.findings))) for run in runs]
    problems = sorted((one.file, one.number, one.reason) for one in verdict.problems)
    counts = (verdict.lines, verdict.duplicates, verdict.contradicting, verdict.quarantined)
    return {"runs": told, "problems": problems, "counts": counts}


def damaged(seed: int) -> dict[str, list[bytes]]:
    """A random journal of several writers, with lines that are doubled, lost, moved, torn, or told by clocks that leap."""
    rng = Random(seed)
    records = broken(seed) if rng.random() < 0.7 else list(simulated(rng.choice(SCENARIOS), rng.randrange(4)))
    for _ in range(rng.choice((0, 0, 1, 3))):
        place = rng.randrange(len(records))
        records[place] = _strange(rng, records, records[place])
    writers = rng.randrange(1, 4)
    by_life = {uuid: rng.randrange(writers) for uuid in dict.fromkeys(one.uuid for one in records)}
    files: dict[str, list[bytes]] = {f"writer{number}-1.jsonl": [] for number in range(writers)}
    for record in records:
        files[f"writer{by_life[record.uuid]}-1.jsonl"].append(msgspec.json.encode(record))
    for lines in files.values():
        for _ in range(rng.choice((0, 0, 1, 3)) if lines else 0):
            _damage(rng, lines)
    if rng.random() < 0.15:
        for lines in files.values():
            rng.shuffle(lines)
    return files


def _strange(rng: Random, records: Sequence[Record], record: Record) -> Record:
    match rng.randrange(4):
        case 0:
            return replace(record, at=rng.choice((0, record.at + 10_000, record.at - 10_000, 10**17)))
        case 1:
            return replace(record, utc=record.utc + rng.choice((-1, 1)) * 4_000_000_000)
        case 2:
            other = rng.choice(records)
            return replace(record, because=RecordId(other.uuid, other.seq))
        case _:
            return replace(record, because=RecordId("nobody", 3))


def _damage(rng: Random, lines: list[bytes]) -> None:
    place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(6):
        case 0:
            lines.insert(other, lines[place])
        case 1 if len(lines) > 1:
            del lines[place]
        case 2:
            lines[place] = lines[place][: rng.randrange(len(lines[place]))]
        case 3:
            lines[place], lines[other] = lines[other], lines[place]
        case 4:
            lines[place] = lines[place].replace(b'"kind":"', b'"kind":"un', 1)
        case _:
            lines.insert(other, lines[place].replace(b'"utc":', b'"utc":1', 1))


def check(seed: int) -> None:
    rng = Random(seed)
    files = damaged(seed)
    question = AuditQuestion(NAMES if rng.random() < 0.8 else tuple(sorted(rng.sample(NAMES, 5))))
    expected = comparable(undivided(files, question))
    for count in (1, rng.randrange(2, 6)):
        assert comparable(divided(files, question, count)) == expected


@given(st.integers(0, 1_000_000))
def test_what_many_say_is_what_one_says(seed: int) -> None:
    check(seed)


def test_only_the_first_content_of_a_list_says_who_is_silent() -> None:
    story = JournalBuilder("broken")
    story.installs("a1", "one/1", 2, "a1 b1")
    story.installs("b1", "one/1", 2, "a1 b1 c1")
    files = {"test-000001.jsonl": [msgspec.json.encode(one) for one in story.records]}
    assert comparable(divided(files, AuditQuestion(NAMES), 3)) == comparable(undivided(files, AuditQuestion(NAMES)))


@pytest.mark.long
@pytest.mark.parametrize("begin", range(0, MANY_SEEDS, 50))
def test_the_same_of_many_journals(begin: int) -> None:
    for seed in range(begin, begin + 50):
        check(seed)


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_observed_in_a_witnessed_run_does_not_depend_on_its_division(count: int) -> None:
    records = sorted(read_logs([LOGS / "split-and-merge"]).records, key=lambda record: record.at)
    files = {"w-00000001.jsonl": [msgspec.json.encode(record) for record in records]}
    question = AuditQuestion(NAMES)
    whole = undivided(files, question)
    ((run,), (same,)) = whole.runs, divided(files, question, count).runs
    assert run.story is not None and [one.kind for one in run.story.observations] == ["halves-apart"]
    assert same.story == run.story
