"""A form that loses nothing gives the same records and observations, to the resolution of its times."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hazelcast.logs.forms.form import COLOURS, EXPORTS, LAYOUTS, LEVELS, PREFIXES, ZONE_NAMES, Form, reference
from tests.hazelcast.logs.forms.reading import plain_reading, read_form
from tests.hazelcast.logs.forms.recordings import PLACES, recording
from tests.thoroughness import examples

DATELESS = "two-members-and-threads-without-a-date.log"
"""Its times are those of 1970, which are no milliseconds since 1970 that a layout could have."""
LEAST_FALLING = 4
"""So many times in one file show in which order they stand."""

RECORDINGS = sorted(name for name in PLACES if recording(name) and name != DATELESS)
PARTS = 4
"""Tests among which recordings are divided: each has its time."""

FORMS = st.builds(
    Form,
    layout=st.sampled_from(list(LAYOUTS)),
    prefix=st.sampled_from(list(PREFIXES)),
    export=st.sampled_from(EXPORTS),
    is_falling=st.booleans(),
    encoding=st.sampled_from(["", "bom", "utf-16", "crlf", "gz"]),
    rotated=st.sampled_from([1, 2, 3, 5]),
    is_ended=st.booleans(),
    colour=st.sampled_from(list(COLOURS)),
    language=st.sampled_from(list(LEVELS)),
    zone_hours=st.sampled_from([*ZONE_NAMES, 5, 9]),
    ahead_s=st.sampled_from([0, 37]),
    is_together=st.booleans(),
).map(Form.normalized)


def check(name: str, form: Form) -> None:
    """Compare the form of a recording with its plainest one."""
    said = reference(recording(name), form)
    if form.is_falling and any(len({one.utc for one in many}) < LEAST_FALLING for many in said.values()):
        return
    assert read_form(said, form).comparable() == plain_reading(name, form).comparable()


@pytest.mark.parametrize("part", range(PARTS))
@settings(max_examples=examples(400))
@given(st.data())
def test_a_form_that_loses_nothing_changes_nothing(part: int, data: st.DataObject) -> None:
    check(data.draw(st.sampled_from(RECORDINGS[part::PARTS])), data.draw(FORMS))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["halves-apart", "paused-master"])
def test_every_layout_tells_a_whole_recording(name: str, layout: str) -> None:
    check(name, Form(layout=layout))
