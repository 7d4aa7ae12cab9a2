"""Observers get only the messages that they say they read."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.backend.hazelcast.logs.observations.story import RunObservers
from quarterdeck.backend.hazelcast.logs.reader import read_logs

DATA = Path(__file__).parents[1] / "data"


def test_an_observer_that_gets_every_message_observes_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read_logs([DATA]).stories
    for observer in RunObservers("run")._observers:
        monkeypatch.setattr(type(observer), "reads", ())
    assert read_logs([DATA]).stories == expected
    kinds = {found.kind for story in expected for found in story.observations}
    assert len(kinds) > 8
