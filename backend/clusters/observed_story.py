"""The observations of members of Hazelcast, for people: as notes, as marks on a strip of time, and among the questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.observations.observation import Observation
from quarterdeck.backend.judgement.observations.partitions import MigrationRound
from quarterdeck.backend.judgement.observations.story import LogStory
from quarterdeck.backend.judgement.observations.wording import lasted
from quarterdeck.backend.picture.replay.timeline import Landmark
from quarterdeck.backend.picture.text.fact import Fact, Tone
from quarterdeck.backend.picture.text.formatting import age_text, counted, one_line

OBSERVATIONS_NOTED = 6
_BAD = frozenset(("full-stop", "halves-apart", "lone-master", "partition-lost"))


def latest_observations(story: LogStory, now_us: int) -> list[Observation]:
    """Return the observations up to now, the latest first."""
    return sorted((seen for seen in story.observations if seen.start_us <= now_us), key=lambda seen: -seen.start_us)


def story_facts(story: LogStory, now_us: int) -> Iterator[Fact]:
    """Answer with the observations up to now, the latest first; a remedy follows each that goes on."""
    heading = "what was observed"
    begun = latest_observations(story, now_us)
    if not begun:
        nothing = "nothing that these logs show" if story.account else "nothing out of the ordinary"
        yield Fact(heading, nothing, "faint")
        yield from (Fact("", one_line(sentence), "faint") for sentence in story.account if sentence[:9] == "Not known")
    for place, seen in enumerate(begun[:OBSERVATIONS_NOTED]):
        goes_on = seen.is_open or seen.end_us > now_us
        tone: Tone = "faint" if not goes_on else "bad" if seen.kind in _BAD else "warning"
        ago = age_text(max(now_us - seen.start_us, 0))
        yield Fact("" if place else heading, one_line(f"{ago} ago: {seen.headline}"), tone)
        if goes_on:
            yield Fact("", one_line(f"usually: {seen.cause} What helps: {seen.remedy}"), "plain")
    if (more := len(begun) - OBSERVATIONS_NOTED) > 0:
        yield Fact("", f"and {more} more before; the audit lists them", "faint")


def story_landmarks(story: LogStory) -> list[Landmark]:
    """Return the observations as marks on a strip of time: where each begins, and the rounds of migrations."""
    marks = (
        Landmark(max(0, seen.start_us), "observed", "O", "bad" if seen.kind in _BAD else "warning", seen.headline)
        for seen in story.observations
    )
    rounds = (Landmark(moves.start_us, "observed", "m", "plain", round_text(moves)) for moves in story.migrations)
    return [*marks, *rounds]


def story_notes(story: LogStory) -> list[str]:
    """How much is observed, and the first of it."""
    seen = story.observations
    firsts = [(observed.headline, observed.evidence[0]) for observed in seen if observed.evidence]
    lines = [f"{headline} ({Path(line.file).name}:{line.line})" for headline, line in firsts]
    found = [f"{counted(len(seen), 'observation')} in the logs", *lines[:OBSERVATIONS_NOTED]] if seen else []
    return [*(story.account or found), *story.reading]


def round_text(moves: MigrationRound, now_us: int | None = None) -> str:
    """Return a round of migrations in words, as far as it had come at `now_us`."""
    began = f"{moves.start_us / SECOND_US:.1f} s  {moves.master} planned {counted(moves.planned, 'migration')}"
    if moves.end_us is None:
        return f"{began}; no end is logged"
    if now_us is not None and moves.end_us > now_us:
        return f"{began}; they go on"
    took = f"all done {lasted(moves.end_us - moves.start_us)} later"
    return f"{began}; {took if moves.completed is None else f'{moves.completed} completed, {took}'}"
