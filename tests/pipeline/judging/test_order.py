"""Records are judged in the order of causes, however their lines stand and whatever clocks say."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.group_judge import GroupVerdict, judge_group
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.rules import NAMES, Finding
from tests.pipeline.journal_builder import JournalBuilder, clean_story
from tests.pipeline.rules.broken_journals import NAMES as SCENARIOS
from tests.pipeline.rules.broken_journals import simulated

YEAR_5138_US = 10**17


def judged(*files: Iterable[Record], rules: tuple[str, ...] = NAMES) -> GroupVerdict:
    """The records as files of as many writers."""
    lines = {
        f"writer{number}-1.jsonl": [msgspec.json.encode(record) for record in file] for number, file in enumerate(files)
    }
    return judge_group([InputFile(name, name) for name in lines], AuditQuestion(rules), lambda file: lines[file.read])


def found(verdict: GroupVerdict) -> list[Finding]:
    return [finding for run in verdict.runs for finding in run.findings]


@pytest.mark.parametrize("name", SCENARIOS)
def test_shuffled_lines_of_a_sound_journal_are_sound(name: str) -> None:
    records = list(simulated(name, 0))
    assert found(judged(records)) == []
    for seed in range(3):
        shuffled = Random(seed).sample(records, len(records))
        verdict = judged(shuffled[::2], shuffled[1::2])
        assert found(verdict) == []
        assert verdict.runs[0].records == len(records)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"at": 0}, id="at 0"),
        pytest.param({"at": YEAR_5138_US}, id="at 5138"),
        pytest.param({"at": YEAR_5138_US, "utc": YEAR_5138_US}, id="both 5138"),
        pytest.param({"utc": YEAR_5138_US}, id="utc 5138"),
    ],
)
def test_a_clock_that_leaps_is_told_and_breaks_nothing(name: str, change: dict[str, int]) -> None:
    records = list(simulated(name, 0))
    begun = {record.uuid for record in records if record.seq == 1 and record.at > 0}
    lives = [place for place, one in enumerate(records) if one.seq > 2 and one.uuid in begun]
    for place in (Random(name).choice(lives), lives[-1]):
        leaping = [*records[:place], replace(records[place], **change), *records[place + 1 :]]
        [finding] = found(judged(leaping))
        assert (finding.rule, finding.severity, finding.uuid, finding.seq) == (
            "numbering",
            "warning",
            records[place].uuid,
            records[place].seq,
        )
        assert "leaps" in finding.detail


def test_the_year_is_told() -> None:
    records = list(simulated("figure-5", 0))
    place = next(place for place, one in enumerate(records) if one.seq == 5)
    records[place] = replace(records[place], utc=YEAR_5138_US)
    assert "says 5138-11-16 09:46:40" in found(judged(records))[0].detail


def test_a_clock_that_went_ahead_and_stays_there_is_told_once() -> None:
    records = list(simulated("figure-5", 0))
    life = next(record.uuid for record in records if record.seq == 20)
    later = [
        replace(record, utc=record.utc + 9_000 * SECOND_US) if record.uuid == life and record.seq > 10 else record
        for record in records
    ]
    [finding] = found(judged(later))
    assert finding.detail.startswith("the wall clock of ")
    ahead = [
        replace(record, at=record.at + 9_000 * SECOND_US) if record.uuid == life and record.seq > 10 else record
        for record in records
    ]
    [finding] = found(judged(ahead))
    assert (finding.uuid, finding.seq) == (life, 11)


def test_an_effect_whose_clock_is_slow_is_judged_after_its_cause() -> None:
    """The clock of b is behind: by their times b installs the list before its master has made it, and before it is told so."""
    story = JournalBuilder("slow")
    story.installs("a1", "one/1", 1, "a1")
    story.installs("a1", "one/1", 2, "a1 b1")
    story.installs("b1", "one/1", 2, "a1 b1")
    *before, of_b = story.records
    slow = replace(of_b, at=before[0].at - 1, because=RecordId("uuid-a1", 2))
    assert found(judged(before, [slow], rules=("view integrity", "one author", "version"))) == []
    assert [finding.member for finding in found(judged([*before, slow], rules=("lineage", "version")))] == []


def test_causes_that_wait_for_each_other_are_judged_by_time() -> None:
    story = clean_story("circle")
    first, second = story.records[1], story.records[2]
    story.records[1] = replace(first, because=RecordId(second.uuid, second.seq))
    story.records[2] = replace(second, because=RecordId(first.uuid, first.seq))
    assert judged(story.records).runs[0].records == len(story.records)


def test_lines_that_stand_twice_and_contradict_are_counted_alike_in_any_order() -> None:
    records = clean_story("twice").records
    contradiction = replace(records[3], at=records[3].at + 1, utc=records[3].utc + 1)
    for lines in ([*records, records[2], contradiction], [contradiction, *records[::-1], records[2]]):
        verdict = judged(lines, rules=("version", "numbering"))
        aside = verdict.aside
        assert (aside.duplicates, aside.contradicting, aside.quarantined) == (1, 1, 1)
        assert found(verdict) == []
        [problem] = aside.problems
        assert problem.reason.startswith("contradicts another event")


@pytest.mark.parametrize("name", SCENARIOS)
def test_groups_that_cannot_be_read_break_nothing(name: str) -> None:
    """A journal of another version, or one that somebody edited: by what members are grouped is not known then."""
    strange = {"quarterdeck.partition.group.type": "custom", "quarterdeck.partition.groups": "rack1"}
    records = [
        replace(record, event=replace(record.event, settings=strange))
        if isinstance(record.event, MemberStarted)
        else record
        for record in simulated(name, 0)
    ]
    assert found(judged(records)) == []
