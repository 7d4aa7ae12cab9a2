"""Lines of the prompt: what they become, and what is said of bad ones."""

from __future__ import annotations

import pytest

from app.actions import ACTIONS, available_actions
from app.prompt_grammar import BadLine, ConsoleRequest, complete_line, parse_line
from backend.core.commands import (
    CutLink,
    Heal,
    KillMember,
    Partition,
    PauseMember,
    ResumeMember,
    StartMember,
    StopMember,
)

LABELS = ("n1", "n2", "n3", "n4", "[/]x")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("start n2", StartMember("n2")),
        ("  stop   n2 ", StopMember("n2")),
        ("kill [/]x", KillMember("[/]x")),
        ("pause n2", PauseMember("n2")),
        ("resume n2", ResumeMember("n2")),
        ("partition n1,n2|n3,n4", Partition((("n1", "n2"), ("n3", "n4")))),
        ("partition n1 , n2 | n3", Partition((("n1", "n2"), ("n3",)))),
        ("cut n1 n2", CutLink(("n1",), ("n2",))),
        ("cut n1 n2 one-way", CutLink(("n1",), ("n2",), one_way=True)),
        ("heal", Heal()),
        ("filter no heartbeat", ConsoleRequest("filter", "no heartbeat")),
        ("filter", ConsoleRequest("filter")),
        ("quit", ConsoleRequest("quit")),
        ("help", ConsoleRequest("help")),
        ("stop-all", ConsoleRequest("stop-all")),
        ("screenshot a b.svg", ConsoleRequest("screenshot", "a b.svg")),
    ],
)
def test_good_lines(line: str, meant: object) -> None:
    assert parse_line(line, LABELS, writable=True) == meant


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "nothing to do"),
        ("strat n1", "did you mean start?"),
        ("start", "write start MEMBER"),
        ("start n22", "did you mean n2?"),
        ("kill n1 n2", "no member 'n1 n2'"),
        ("partition n1,n2", "one group is no partition"),
        ("partition n1|n1", "stands twice"),
        ("partition n1||n2", "which member?"),
        ("cut n1", "write cut A B"),
        ("cut n1 n1", "no link to itself"),
        ("cut n1 n2 sideways", "cut takes two members"),
        ("heal now", "stands alone"),
    ],
)
def test_bad_lines_get_one_line_of_explanation(line: str, said: str) -> None:
    with pytest.raises(BadLine) as caught:
        parse_line(line, LABELS, writable=True)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_read_only_cluster_refuses_what_changes_it() -> None:
    with pytest.raises(BadLine, match="read-only"):
        parse_line("kill n1", LABELS, writable=False)
    assert parse_line("filter x", LABELS, writable=False) == ConsoleRequest("filter", "x")
    assert complete_line("ki", LABELS, writable=False) is None


@pytest.mark.parametrize(
    ("beginning", "whole"),
    [
        ("", None),
        ("par", "partition"),
        ("kill ", "kill n1"),
        ("kill [", "kill [/]x"),
        ("kill n1 ", None),
        ("cut n1 ", "cut n1 n2"),
        ("cut n1 n2 o", "cut n1 n2 one-way"),
        ("partition n1,n2|", "partition n1,n2|n3"),
        ("filter n", None),
        ("nonsense n", None),
    ],
)
def test_completion(beginning: str, whole: str | None) -> None:
    assert complete_line(beginning, LABELS, writable=True) == whole


def test_no_key_means_two_things_and_none_is_forbidden() -> None:
    keys = [key for action in ACTIONS for key in action.keys.split(",")]
    assert len(keys) == len(set(keys))
    assert not {"ctrl+a", "ctrl+b", "ctrl+d", "ctrl+k"} & set(keys)
    assert not any(action.needs_write for action in available_actions(writable=False))
