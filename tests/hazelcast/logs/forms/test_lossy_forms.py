"""A form that loses lines gives something weaker: nothing new is claimed, and nothing that was unknown becomes sure.

Single lines that are lost within a file leave no trace, and are not tried: a suspicion whose end is lost seems to last.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.backend.hazelcast.logs.log_files import NoLogs
from tests.hazelcast.logs.forms.form import Form, put, reference, written
from tests.hazelcast.logs.forms.reading import plain_reading, read_folder
from tests.hazelcast.logs.forms.recordings import recording
from tests.hazelcast.logs.forms.test_lossless_forms import RECORDINGS
from tests.hazelcast.logs.forms.weaker import weaker

Messages = list[tuple[int, list[str]]]
"""Messages with their times, each with its lines."""
Lines = list[tuple[int, str]]


def _lines(messages: Messages) -> Lines:
    return [(utc, line) for utc, lines in messages for line in lines]


def _head(messages: Messages, chance: Random) -> Lines:
    lines = _lines(messages)
    return lines[: 1 + int(len(lines) * chance.random())]


def _tail(messages: Messages, chance: Random) -> Lines:
    lines = _lines(messages)
    return lines[int(len(lines) * chance.random()) :]


def _first_lines(messages: Messages, chance: Random) -> Lines:
    return [(utc, lines[0]) for utc, lines in messages]


def _columns(messages: Messages, chance: Random) -> Lines:
    columns = chance.choice([120, 150, 200])
    return [(utc, line[:columns]) for utc, line in _lines(messages)]


def _all(messages: Messages, chance: Random) -> Lines:
    return _lines(messages)


LOSSES: dict[str, Callable[[Messages, Random], Lines]] = {
    "head": _head,
    "tail": _tail,
    "bodies of lists": _first_lines,
    "columns": _columns,
    "a member's log": _all,
}


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=30, derandomize=True)
@given(st.sampled_from(RECORDINGS), st.sampled_from(["log4j2", "jdk"]), st.integers(0, 1 << 16))
def test_a_form_that_loses_lines_is_weaker(loss: str, name: str, layout: str, seed: int) -> None:
    chance, form = Random(seed), Form(layout=layout)
    files = reference(recording(name), form)
    if loss == "a member's log" and len(files) > 1:
        del files[chance.choice(sorted(files))]
    with tempfile.TemporaryDirectory() as folder:
        for file, said in files.items():
            lines = LOSSES[loss]([(one.utc, written(one, form)) for one in said], chance)
            put(Path(folder) / file, [(utc, [line]) for utc, line in lines], form)
        try:
            less = read_folder(Path(folder))
        except NoLogs:
            return
    assert not weaker(less, plain_reading(name, form))
