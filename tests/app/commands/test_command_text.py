"""Every command line that the console shows is one that `quarterdeck` takes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.app.actions.registry import ACTIONS
from quarterdeck.app.commands.command_text import (
    CONNECT_PLACEHOLDER,
    connect_options,
    line_of,
    line_of_action,
    line_of_load,
    lines_of,
)
from quarterdeck.backend.clusters.traffic import Traffic, load_of
from quarterdeck.backend.commands.catalogue import CATALOGUE
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    Command,
    CutLink,
    DelayLink,
    DemoteMember,
    DropMessages,
    DuplicateOnLink,
    Heal,
    HealLink,
    HoldMessages,
    KillAt,
    KillMember,
    LoseOnLink,
    MoveMember,
    Operate,
    Partition,
    PauseMember,
    PromoteMember,
    ReplayMessages,
    ResumeMember,
    SearchClusters,
    SetJoinList,
    SetProperties,
    StartMember,
    StopCluster,
    StopMember,
    SuspectMember,
)
from quarterdeck.backend.core.operations import Get, Keys, Put, Remove, Size
from quarterdeck.cli.configuration.connection import connection_of
from quarterdeck.cli.main import app
from tests.app.fakes.fake_cluster import FakeCluster

LINES: list[tuple[Command, str]] = [
    (StartMember("athens"), "quarterdeck member start --name=athens"),
    (StopMember("athens"), "quarterdeck cluster do --cluster orders stop athens"),
    (PromoteMember("athens"), "quarterdeck cluster do --cluster orders promote athens"),
    (DemoteMember("athens"), "quarterdeck cluster do --cluster orders demote athens"),
    (StopCluster("athens"), "quarterdeck cluster do --cluster orders stop-cluster athens"),
    (SuspectMember("a", "b"), "quarterdeck cluster fault --cluster orders suspect a b"),
    (SetProperties("a", {"x": 3, "y": "z"}), "quarterdeck cluster do --cluster orders set a x=3 y=z"),
    (KillMember("athens"), "quarterdeck cluster kill --cluster orders athens"),
    (PauseMember("athens"), "quarterdeck cluster fault --cluster orders pause athens"),
    (ResumeMember("athens"), "quarterdeck cluster fault --cluster orders resume athens"),
    (Partition((("a", "b"), ("c",))), "quarterdeck cluster fault --cluster orders partition 'a,b|c'"),
    (CutLink(("a",), ("b",), one_way=True), "quarterdeck cluster fault --cluster orders cut a b one-way"),
    (DelayLink(("a",), ("b",), 250_000), "quarterdeck cluster fault --cluster orders delay a b 250ms"),
    (
        DelayLink(("a",), ("b",), 250_000, up_to_us=900_000, kinds=("heartbeat",)),
        "quarterdeck cluster fault --cluster orders delay a b 250ms 900ms heartbeat",
    ),
    (HealLink(("a",), ("b",), ("delay", "cut")), "quarterdeck cluster fault --cluster orders heal a b delay,cut"),
    (LoseOnLink(("a",), ("b",), 0.3), "quarterdeck cluster fault --cluster orders lose a b 0.3"),
    (DuplicateOnLink(("a",), ("b",), 0.3), "quarterdeck cluster fault --cluster orders duplicate a b 0.3"),
    (DropMessages(("a",), ("b",), ()), "quarterdeck cluster fault --cluster orders drop-messages a b none"),
    (Heal(), "quarterdeck cluster fault --cluster orders heal"),
    (HealLink(("a",), ("b",)), "quarterdeck cluster fault --cluster orders heal a b"),
    (SetJoinList("a", ("a", "h:5701")), "quarterdeck cluster join-list set --member=a --cluster orders a h:5701"),
    (ChangeState("a", "FROZEN"), "quarterdeck cluster state --member=a --cluster orders FROZEN"),
    (SearchClusters("a"), "quarterdeck cluster do --cluster orders search a"),
    (ArrangePartitions("a"), "quarterdeck cluster do --cluster orders arrange a"),
    (CallMap("a", Put("m", "k", b"v w")), "quarterdeck map put --map=m --cluster orders k 'v w'"),
    (CallMap("a", Get("m m", "-k")), "quarterdeck map get --map='m m' --cluster orders -- -k"),
    (CallMap("a", Remove("m", "k")), "quarterdeck map remove --map=m --cluster orders k"),
    (CallMap("a", Size("m")), "quarterdeck map size --map=m --cluster orders"),
    (CallMap("a", Keys("m")), "quarterdeck map keys --map=m --cluster orders"),
]
ONLY_HERE = (
    KillAt("a", "list-installed"),
    Operate("a"),
    HoldMessages(("a",), ("b",)),
    ReplayMessages(("a",), ("b",)),
    MoveMember("a", "h:1"),
)


def parsed(line: str) -> dict[str, Any]:
    """What the program would be given by `line`; nothing is done. Raises what it raises on bad lines."""
    program, *words = shlex.split(line)
    assert program == "quarterdeck"
    command: Any = typer.main.get_command(app)
    context = None
    while hasattr(command, "resolve_command"):
        context = command.make_context(command.name, words, parent=context)
        words = [*context._protected_args, *context.args]
        _, command, words = command.resolve_command(context, words)
    return dict(command.make_context(command.name, words, parent=context).params)


@pytest.mark.parametrize(("command", "line"), LINES, ids=lambda one: str(one)[:40])
def test_lines_of_commands(command: Command, line: str) -> None:
    assert line_of(command, "--cluster orders") == line
    given = parsed(line)
    assert given.get("cluster", "orders") == "orders"


def test_every_command_has_a_line_or_none_on_purpose() -> None:
    assert {type(command) for command in ONLY_HERE} == {row.command for row in CATALOGUE if not row.cli} - {CallMap}
    assert lines_of([*ONLY_HERE, Heal()]) == [f"quarterdeck cluster fault {CONNECT_PLACEHOLDER} heal"]


def test_a_cluster_that_only_the_console_reaches_has_no_lines() -> None:
    assert connect_options(FakeCluster(("a",), source="live")) is None
    assert lines_of([Heal(), KillMember("a")], None) == []
    assert line_of_action(next(action for action in ACTIONS if action.cli == "cluster suspicions"), None) == ""


class HalvesOfHazelcast(FakeCluster):
    """A cluster that another command reaches by several addresses and a name."""

    def connect_options(self) -> Sequence[str]:
        target = connection_of(
            connect=["hazelcast://10.0.0.1:5701,10.0.0.4"], cluster_name="my orders", address_map=["a=b"]
        )
        return ("--connect", ",".join(target.urls), *target.options())


def test_a_line_for_one_half_of_a_split_reaches_both() -> None:
    line = line_of(SetJoinList("10.0.0.4:5701", ("10.0.0.1:5701",)), connect_options(HalvesOfHazelcast(("a",))))
    given = parsed(line)
    assert list(given["connect"]) == ["hazelcast://10.0.0.1:5701,hazelcast://10.0.0.4:5701"]
    assert (given["cluster_name"], list(given["address_map"]), given["member"]) == (
        "my orders",
        ["a=b"],
        "10.0.0.4:5701",
    )


def test_words_arrive_as_they_were_meant() -> None:
    line = line_of(CallMap("a", Put("m", "--help", b"it's; rm -rf /")), "--connect http://a:5701")
    given = parsed(line)
    assert (given["key"], given["value"], given["name"]) == ("--help", "it's; rm -rf /", "m")
    assert list(given["connect"]) == ["http://a:5701"]
    assert parsed(line_of(KillMember("--all"), "--cluster x"))["name"] == "--all"
    assert parsed(line_of(StartMember("-x y")))["name"] == "-x y"


@settings(deadline=None)
@given(st.text(min_size=1).filter(lambda text: "\0" not in text), st.text(), st.text(min_size=1))
def test_no_text_breaks_a_line(key: str, value: str, name: str) -> None:
    if any(0xD800 <= ord(letter) <= 0xDFFF for letter in key + value + name):
        return
    given = parsed(line_of(CallMap("a", Put(name, key, value.encode())), "--cluster x"))
    assert (given["name"], given["key"], given["value"]) == (name, key, value)


@pytest.mark.parametrize("action", [action for action in ACTIONS if action.cli], ids=lambda one: one.id)
def test_lines_of_actions(action: Any) -> None:
    line = line_of_action(action, "--cluster orders")
    if "--help" not in line:
        parsed(line)
    assert ("--cluster orders" in line) == (action.cli.split()[0] in ("cluster", "map"))


def test_a_load_of_the_console_has_a_line_that_does_the_same() -> None:
    load = Traffic(
        FakeCluster(("a",)), load_of("2000 keys=50 bytes=300 skew=1.5 reads=0.2 map=or-ders for=90s", ["a"]), 0
    )
    given = parsed(line_of_load(load, "--cluster orders"))
    assert (given["rate"], given["keys"], given["value_bytes"], given["skew"]) == (2000, 50, 300, 1.5)
    assert (given["reads"], given["name"], given["seconds"]) == (0.2, "or-ders", 90)
    assert line_of_load(load, None) == ""


def test_an_export_has_a_line_too() -> None:
    action = next(action for action in ACTIONS if action.cli == "cluster suspicions")
    line = line_of_action(action, export="my file.csv")
    assert line == f"quarterdeck cluster suspicions {CONNECT_PLACEHOLDER} -o csv > 'my file.csv'"
    assert line_of_action(next(action for action in ACTIONS if not action.cli)) == ""
