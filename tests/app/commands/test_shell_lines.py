"""Lines of the shell do at the prompt what they do in a shell."""

from __future__ import annotations

import pytest

from quarterdeck.app.actions.action import EVERYTHING
from quarterdeck.app.commands.command_text import as_prompt_line, describe, lines_of
from quarterdeck.app.commands.grammar import ConsoleRequest, parse_line
from quarterdeck.backend.core.commands import Command
from tests.app.commands.test_grammar import LABELS

CONNECTION = "--connect https://10.0.0.1:5701 --ca-file ca.pem"


@pytest.mark.parametrize(
    ("line", "prompt"),
    [
        ("quarterdeck cluster do --connect http://10.0.0.1:5701 stop n1", "stop n1"),
        ("cluster do stop n1", "stop n1"),
        ("quarterdeck cluster join-list set --cluster orders --member=n1 n2 n3", "join-list n1 n2 n3"),
        ("cluster state --member n1 FROZEN", "state n1 FROZEN"),
        ("map put --map=orders k1 'two words'", "put orders k1 'two words'"),
        ("map get k1", "get default k1"),
        ("map load --rate 200 --keys 50 --for 30 --map orders", "load 200 keys=50 map=orders for=30"),
        ("member start --name=n4", "start n4"),
        ("stop n1", "stop n1"),
        ("cluster south", "cluster south"),
        ("cluster close", "cluster close"),
        ("map load", "load"),
        ("map load 200 --keys 50", "load 200 keys=50"),
        ("filter 'open", "filter 'open"),
    ],
)
def test_a_line_as_the_prompt_has_it(line: str, prompt: str) -> None:
    assert as_prompt_line(line) == prompt


@pytest.mark.parametrize(
    "typed",
    [
        "start n1", "stop n1", "kill n1", "pause n1", "cut n1 n2 one-way", "delay n1 n2 250ms heartbeat", "heal",
        "heal n1 n2", "partition n1,n2|n3", "join-list n1 n2,n3", "state n2 FROZEN", "set n1 a.b=3", "search n1",
        "put orders k1 'two words' n1", "get orders k1 n1", "remove orders k1 n1",
    ],
)  # fmt: skip
def test_each_line_that_the_console_shows_can_be_typed_into_it(typed: str) -> None:
    command = parse_line(typed, LABELS, allowed=EVERYTHING, selected="n1")
    assert not isinstance(command, ConsoleRequest)
    for line in lines_of([command], CONNECTION):
        again = parse_line(as_prompt_line(line), LABELS, allowed=EVERYTHING, selected="n1")
        assert not isinstance(again, ConsoleRequest) and _said(again) == _said(command), line


def _said(command: Command) -> str:
    return describe(command)
