"""Writes a recording in a form, reads it, and keeps what is compared: records by member, and observations."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quarterdeck.backend.core.events import Event
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.observation import Observation
from quarterdeck.backend.judgement.observations.reader import read_logs
from tests.hazelcast.logs.forms.form import Form, reference, write
from tests.hazelcast.logs.forms.recordings import Recording, recording


@dataclass(frozen=True)
class Reading:
    """What was read of a form of a recording."""

    records: dict[str, list[tuple[int, Event]]]
    """By member, when what happened."""
    observations: tuple[Observation, ...]

    def comparable(self) -> object:
        """Return what is the same in forms that lose nothing: no files and lines, no word of zones."""
        seen = sorted(
            (one.kind, one.members, one.headline, one.start_us, one.end_us, one.is_open, one.cause)
            for one in self.observations
            if one.kind != "zones-differ"
        )
        return self.records, seen


def read_folder(folder: Path, zone: str = "") -> Reading:
    """Read the logs in a folder. Raises `NoLogs` where nothing is understood."""
    found = read_logs([folder], LogOptions(run="r", zone=zone))
    records: dict[str, list[tuple[int, Event]]] = {}
    for record in found.records:
        records.setdefault(record.member, []).append((record.utc, record.event))
    return Reading(records, tuple(one for story in found.stories for one in story.observations))


def read_form(said: Recording, form: Form) -> Reading:
    """Write a recording in a form and read it. Raises `NoLogs` where nothing is understood."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), said, form)
        return read_folder(Path(folder), form.zone)


@cache
def _plain(name: str, layout: str, ahead_s: int) -> Reading:
    return read_form(reference(recording(name), Form(layout=layout, ahead_s=ahead_s)), Form())


def plain_reading(name: str, form: Form) -> Reading:
    """Return what the plainest form says of what `form` keeps of a recording."""
    return _plain(name, form.layout, form.ahead_s)
