"""Model files: what may stand in them, and what is said of what may not."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.commands import KillMember, Partition, StartMember
from quarterdeck.backend.simulation.model_checking.model import Bounds
from quarterdeck.backend.simulation.model_checking.reading import BadModel, load_model, read_model, shipped_models

RICH = """\
title: Something is done.
members: [a, b]
later: [c]
settings: {hazelcast.max.no.heartbeat.seconds: 2}
join-lists: {c: [a]}
before:
  - partition: [[a], [b]]
commands:
  - start: c
  - restart: b
prompt: [heartbeat, master-confirmation]
bounds: {drops: 1, late: 2, ticks: 7}
"""


def test_everything_that_may_stand_in_a_file_is_read() -> None:
    model = read_model(RICH, "rich.yaml", "rich")
    assert (model.name, model.title, model.labels) == ("rich", "Something is done.", ("a", "b", "c"))
    assert model.before == (Partition((("a",), ("b",))),)
    assert model.commands == (StartMember("c"), KillMember("b"), StartMember("b"))
    assert model.bounds == Bounds(drops=1, late=2, ticks=7)
    assert model.prompt == ("heartbeat", "master-confirmation")


@pytest.mark.parametrize(
    ("line", "by", "problem"),
    [
        ("members: [a, b]", "memers: [a, b]", r"rich\.yaml:2: memers: "),
        ("start: c", "start: d", r"rich\.yaml:9: commands\[1\]\.start\[1\]: there is no member 'd'"),
        (
            "start: c",
            "wait: 3s",
            r"rich\.yaml:9: commands\[1\]: wait is not a command; a model's clock goes on by itself",
        ),
        (
            "start: c",
            "delay: {from: a, to: b, by: 1s}",
            r"commands\[1\]: delay is nothing that a model can do; delays, losses",
        ),
        ("start: c", "pause: a", r"commands\[1\]: pause is nothing that a model can do"),
        ("start: c", "cut: {from: a, to: b, mode: reset}", r"commands\[1\]: a model's links are cut without a word"),
        ("drops: 1", "drops: -1", r"rich\.yaml:12: bounds\.drops: "),
        ("later: [c]", "later: [c, a]", r"rich\.yaml:3: later: a is among the members already; name each once"),
        ("hazelcast.max.no.heartbeat.seconds", "hazelcast.max.no.hartbeat.seconds", r"rich\.yaml:4: settings\."),
        ("members: [a, b]", "members: [a, b, d, e, f, g, h, i]", r"9 members cannot be looked through; give 1 to 8"),
    ],
)
def test_one_clear_error_names_file_line_and_field(line: str, by: str, problem: str) -> None:
    with pytest.raises(BadModel, match=problem):
        read_model(RICH.replace(line, by), "rich.yaml", "rich")


def test_an_unknown_name_is_told_with_a_suggestion() -> None:
    with pytest.raises(BadModel, match=r"there is no such model and no such file; did you mean claim\?"):
        load_model("claims")


def test_every_shipped_model_says_what_it_is_about() -> None:
    assert len(shipped_models()) >= 8
    titles = {load_model(name).title for name in shipped_models()}
    assert len(titles) == len(shipped_models())
