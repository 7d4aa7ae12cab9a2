"""Lines of the prompt: what they become, and what is said of bad ones."""

from __future__ import annotations

import pytest

from quarterdeck.app.actions.action import EVERYTHING, READ_ONLY
from quarterdeck.app.actions.registry import ACTIONS, available_actions
from quarterdeck.app.actions.views import VIEW_NAMES
from quarterdeck.app.commands.command_text import describe, question
from quarterdeck.app.commands.grammar import BadLine, ConsoleRequest, parse_line
from quarterdeck.app.commands.prompt_lines import Vocabulary, complete_line
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    Heal,
    HealLink,
    KillAt,
    KillMember,
    LoseOnLink,
    Operate,
    Partition,
    PauseMember,
    ResumeMember,
    SearchClusters,
    SetJoinList,
    SetProperties,
    StartMember,
    StopCluster,
    StopMember,
    SuspectMember,
)
from quarterdeck.backend.core.operations import Get, Put, Remove

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
        ("heal n1 n2", HealLink(("n1",), ("n2",))),
        ("lose n1 n2 0.25", LoseOnLink(("n1",), ("n2",), 0.25)),
        ("delay n1 n2 1.5ms one-way", DelayLink(("n1",), ("n2",), 1_500, one_way=True)),
        ("duplicate n1 n2 1", DuplicateOnLink(("n1",), ("n2",), 1.0)),
        ("drop-messages n1 n2 heartbeat,join-request", DropMessages(("n1",), ("n2",), ("heartbeat", "join-request"))),
        ("drop-messages n1 n2 none", DropMessages(("n1",), ("n2",), ())),
        ("kill-at n1 claim-started", KillAt("n1", "claim-started")),
        ("kill-at n1 migration-committing after", KillAt("n1", "migration-committing", after=True)),
        ("arrange", ArrangePartitions("n4")),
        ("arrange n2", ArrangePartitions("n2")),
        ("put orders k1 v1", CallMap("n4", Put("orders", "k1", b"v1"))),
        ("put orders k1 'two words' n2", CallMap("n2", Put("orders", "k1", b"two words"))),
        ("get orders k1", CallMap("n4", Get("orders", "k1"))),
        ("get orders 'a b' [/]x", CallMap("[/]x", Get("orders", "a b"))),
        ("remove orders k1 n1", CallMap("n1", Remove("orders", "k1"))),
        ("migrations", ConsoleRequest("migrations", "migrations")),
        ("join-list n1 127.0.0.1:5701,n2", SetJoinList("n1", ("127.0.0.1:5701", "n2"))),
        ("join-list n1 [fe80::1]:5701; n2  n3", SetJoinList("n1", ("[fe80::1]:5701", "n2", "n3"))),
        ("state n1 FROZEN", ChangeState("n1", "FROZEN")),
        ("state n1 no_migration", ChangeState("n1", "NO_MIGRATION")),
        ("search n1", SearchClusters("n1")),
        (
            "delay n1 n2 1s 5s heartbeat one-way",
            DelayLink(("n1",), ("n2",), 1_000_000, True, 5_000_000, ("heartbeat",)),
        ),
        ("delay n1 n2 1s heartbeat", DelayLink(("n1",), ("n2",), 1_000_000, kinds=("heartbeat",))),
        ("heal n1 n2 delay,cut", HealLink(("n1",), ("n2",), ("delay", "cut"))),
        ("stop-cluster n1", StopCluster("n1")),
        ("suspect n1 n2", SuspectMember("n1", "n2")),
        ("set n1 a.b=3  c=x=y", SetProperties("n1", {"a.b": "3", "c": "x=y"})),
        ("operate n1", Operate("n1")),
        ("look n2", ConsoleRequest("detail", "look", "n2")),
        ("filter no heartbeat", ConsoleRequest("filter", "filter", "no heartbeat")),
        ("filter", ConsoleRequest("filter", "filter")),
        ("quit", ConsoleRequest("quit", "quit")),
        ("help", ConsoleRequest("help", "help")),
        ("stop-all", ConsoleRequest("stop-all", "stop-all")),
        ("screenshot a b.svg", ConsoleRequest("screenshot", "screenshot", "a b.svg")),
    ],
)
def test_good_lines(line: str, meant: object) -> None:
    assert parse_line(line, LABELS, allowed=EVERYTHING, selected="n4") == meant


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "nothing to do"),
        ("sttart n1", "did you mean start?"),
        ("start", "write start MEMBER"),
        ("start n22", "did you mean n2?"),
        ("kill n1 n2", "no member 'n1 n2'"),
        ("partition n1,n2", "write partition n1,n2|n3,n4,[/]x; cut n1 n2 cuts their link"),
        ("partition n1,n2,n3", "write partition n1,n2,n3|n4,[/]x"),
        ("cut n1,n2", "cut is about one link; write cut A B [one-way], or for groups partition A,B|C,D"),
        ("lose n1|n2 0.5", "lose is about one link"),
        ("partition n1|n1", "is named twice"),
        ("partition n1||n2", "which member?"),
        ("cut n1", "write cut A B"),
        ("cut n1 n1", "needs another member"),
        ("cut n1 n2 sideways", "cut takes two members"),
        ("lose n1 n2", "one word more; write lose A B"),
        ("lose n1 n2 half", "'half' is not a number"),
        ("lose n1 n2 1.5", "lies from 0 to 1"),
        ("lose n1 n2 nan", "lies from 0 to 1"),
        ("delay n1 n2 250", "write a number and us, ms or s"),
        ("drop-messages n1 n2 hartbeat", "did you mean heartbeat?"),
        ("drop-messages n1 n2 ,", "which messages?"),
        ("kill-at n1", "at which event?"),
        ("kill-at n1 claim-start", "did you mean claim-started?"),
        ("kill-at n1 claim-started before", "'before' is not a moment; write kill-at MEMBER EVENT [after]"),
        ("put orders k1", "put takes 3 words"),
        ("put orders k1 two words n1", "in quotes where they have blanks"),
        ("put orders k1 'v1", "a quote is not closed"),
        ("get orders", "write get MAP KEY [MEMBER]"),
        ("get orders k1 n22", "did you mean n2?"),
        ("get orders k1", "which member?"),
        ("arrange", "which member? write arrange [MEMBER]"),
        ("migrations now", "stands alone"),
        ("drop-messages n1 n2 heartbeat one-way", "one word more"),
        ("join-list n1", "an empty join list leads to no member"),
        ("join-list n1 10.0.0.1:99999", "'10.0.0.1:99999' is neither a member nor an address"),
        ("join-list n1 10.0.0.*", "range or wildcard"),
        ("join-list n1 n22", "did you mean n2?"),
        ("heal n1 n2 cutt", "there is no fault 'cutt'; did you mean cut?"),
        ("delay n1 n2 1s 2s 3s", "write delay A B 250ms [500ms] [KIND,KIND] [one-way]"),
        ("suspect n1", "which member? write suspect MEMBER OTHER"),
        ("suspect n1 n22", "did you mean n2?"),
        ("set n1", "which properties? write set MEMBER NAME=VALUE"),
        ("set n1 a.b 3", "'a.b' gives no property a value; write set MEMBER NAME=VALUE"),
        ("state n1", "of ACTIVE, NO_MIGRATION, FROZEN, PASSIVE"),
        ("state n1 FROZN", "did you mean FROZEN?"),
        ("state", "which member?"),
        ("heal now", "a link has two ends; write heal [A B [FAULT,FAULT]]"),
        ("quit now", "stands alone"),
    ],
)
def test_bad_lines_get_one_line_of_explanation(line: str, said: str) -> None:
    with pytest.raises(BadLine) as caught:
        parse_line(line, LABELS, allowed=EVERYTHING)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_read_only_cluster_refuses_what_changes_it() -> None:
    with pytest.raises(BadLine, match="read-only"):
        parse_line("kill n1", LABELS, allowed=READ_ONLY)
    assert parse_line("filter x", LABELS, allowed=READ_ONLY) == ConsoleRequest("filter", "filter", "x")
    assert complete_line("ki", Vocabulary(LABELS, READ_ONLY)) is None


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
        ("heal n1 ", "heal n1 n2"),
        ("heal n1 n2 ", "heal n1 n2 cut"),
        ("heal n1 n2 cut,de", "heal n1 n2 cut,delay"),
        ("state n1 F", "state n1 FROZEN"),
        ("state n1 FROZEN ", None),
        ("join-list n1 127.0.0.1:5701,n", "join-list n1 127.0.0.1:5701,n2"),
        ("lose n1 n", "lose n1 n2"),
        ("lose n1 n2 ", None),
        ("lose n1 n2 0.5 ", "lose n1 n2 0.5 one-way"),
        ("lose n1 n2 0.5 join-req", "lose n1 n2 0.5 join-request"),
        ("drop-messages n1 n2 heartbeat,join-req", "drop-messages n1 n2 heartbeat,join-request"),
        ("kill-at n1 claim-sta", "kill-at n1 claim-started"),
        ("kill-at n1 claim-started a", "kill-at n1 claim-started after"),
        ("arr", "arrange"),
        ("arrange n", "arrange n1"),
        ("put n", None),
        ("put orders k1 v1 ", "put orders k1 v1 n1"),
        ("get orders k1 n", "get orders k1 n1"),
        ("get orders n", None),
        ("quit ", None),
        ("nonsense n", None),
    ],
)
def test_completion(beginning: str, whole: str | None) -> None:
    assert complete_line(beginning, Vocabulary(LABELS, EVERYTHING)) == whole


def test_no_key_means_two_things_and_none_is_forbidden() -> None:
    for view in ("everywhere", *VIEW_NAMES):  # a view's own keys may mean something else elsewhere
        owners = [action for action in ACTIONS if (view in action.views if view != "everywhere" else not action.views)]
        keys = [key for action in owners for key in action.keys.split(",") if key]
        assert len(keys) == len(set(keys)), view
    keys = [key for action in ACTIONS for key in action.keys.split(",") if key]
    words = [word.word for action in ACTIONS for word in action.words]
    assert len(words) == len(set(words))
    assert not {"ctrl+a", "ctrl+b", "ctrl+d", "ctrl+k"} & set(keys)
    assert not any(action.needs_write for action in available_actions(READ_ONLY))


@pytest.mark.parametrize("delay_us", [0, 1_500, 1_234_567, 10_000_000_000])
def test_a_delay_is_told_to_the_microsecond(delay_us: int) -> None:
    command = DelayLink(("n1",), ("n2",), delay_us)
    assert parse_line(describe(command), LABELS, allowed=EVERYTHING) == command


def test_questions_name_the_deed_and_whom_it_is_done_to() -> None:
    assert question([KillMember("n1"), KillMember("n2")]) == ("Kill n1, n2?", "Kill")
    assert question([ChangeState("n1", "FROZEN")]) == ("Change the cluster of n1 to FROZEN?", "Change")
    assert question([CutLink(("n1",), ("n2",))]) == ("Do this: cut n1 n2?", "Do")
    assert question([HealLink(("n1",), ("n2",)), HealLink(("n1",), ("n3",))]) == (
        "Do all of this?\nheal n1 n2\nheal n1 n3", "Do",
    )  # fmt: skip
    assert question([SearchClusters("n1")]) == ("Let n1 look for other clusters, and merge?", "Search")
