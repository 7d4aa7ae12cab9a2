"""Why clusters stay apart: every rule is met in simulated runs, and the edit that is proposed brings them together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.core.commands import (
    ChangeState,
    Command,
    CommandRefused,
    HealLink,
    SearchClusters,
    SetJoinList,
    StartMember,
)
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.merging.merge_blockers import CONFIGURED, FREEZES_TO_MERGE_US, MERGING_TAKES
from quarterdeck.backend.judgement.merging.why_not_merging import Pair, pairs_left_out, why_not_merging
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.scenarios.format.reading import load_scenario, read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.interpreter import Interpreter
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.simulation.simulated_driver import SimulatedDriver
from quarterdeck.backend.simulation.swarm_testing.drawing import draw_scenario
from tests.app.fakes.fake_cluster import FakeCluster, fold, formed
from tests.thoroughness import long_after

LOOK_US = SECOND_US // 20
SCENARIOS = Path(__file__).parents[2] / "scenarios"


class Reached(Exception):
    """A run has come to the moment that a test waits for."""


class Run(SimulatedDriver):
    """A scenario that can be stopped at a moment, asked, and led on by hand."""

    def __init__(self, scenario: Scenario, until: Callable[[Pair], bool] = lambda pair: False) -> None:
        self.run_state = RunState()
        super().__init__(scenario, 1, self.run_state)
        self._scenario, self._until = scenario, until
        self.ever: set[str] = set()

    def advance(self, by_us: int) -> None:
        end_us = self.world.now_us + by_us
        while self.world.now_us < end_us or not by_us:
            super().advance(min(LOOK_US, end_us - self.world.now_us))
            for pair in self.pairs():
                self.ever.add(pair.rule)
                if self._until(pair):
                    raise Reached
            if not by_us:
                return

    def play(self) -> Run:
        """All steps, or until the moment is reached."""
        try:
            Interpreter(self._scenario, self, self.run_state, seed=1).play()
        except Reached:
            self._until = lambda pair: False
        return self

    def pairs(self) -> tuple[Pair, ...]:
        return why_not_merging(self.run_state.picture, self.world.now_us)

    def pair(self) -> Pair:
        (only,) = self.pairs()
        return only

    def do(self, *commands: Command) -> None:
        for command in commands:
            self.execute(command)

    def comes_together(self, seconds: int = 60) -> bool:
        """Whether there is one master within so many seconds."""
        for _ in range(seconds * 2):
            self.advance(SECOND_US // 2)
            if len(self.run_state.picture.masters()) == 1 and not self.pairs():
                return True
        return False


def scenario(steps: str, head: str = "", members: str = "a, b, c, d, e") -> Scenario:
    return read_scenario(f"title: T\nmembers: [{members}]\n{head}steps:\n{steps}", "t.yaml")


APART = """
  - expect: {within: 15s, one-cluster: true}
  - do: {partition: [[a, b, c], [d, e]]}
  - expect: {within: 30s, masters: {b: a, e: d}, views: {a: [a, b, c], d: [d, e]}}
"""

FORGETFUL = "settings: {hazelcast.tcp.join.previously.joined.member.address.retention.seconds: 0}\n"

STRANGERS = FORGETFUL + "join-lists: {a: [a, b], b: [a, b], c: [a, b], d: [d, e], e: [e, d]}\n"

STRANGERS_APART = "  - expect: {within: 15s, masters: {c: a, e: d}}\n  - do: {wait: 10s}\n"


# Each rule, by hand


def test_one_cluster_has_nobody_to_merge_with() -> None:
    run = Run(scenario("  - expect: {within: 15s, one-cluster: true}\n")).play()
    assert run.pairs() == () and why_not_merging(Picture(), 0) == ()


def test_cut_links_are_what_is_in_the_way() -> None:
    run = Run(scenario(APART)).play()
    pair = run.pair()
    assert (pair.smaller, pair.greater, pair.state, pair.rule) == ("d", "a", "blocked", "link-cut")
    assert pair.sentence == "links between d's cluster and a's are cut, such as that from d to a"
    assert pair.unblock is not None
    assert pair.unblock.text == "heal the links between the two (6 links both ways)"
    assert pair.unblock.commands == (HealLink(("d", "e"), ("a", "b", "c")),)
    run.do(*pair.unblock.commands)
    due = run.pair()
    assert (due.state, due.rule) == ("due", "search-due")
    assert run.comes_together()


def test_a_message_that_is_dropped_is_as_good_as_a_cut() -> None:
    steps = APART + "  - do: heal\n  - do: {drop-messages: {from: a, to: d, kinds: split-brain-answer}}\n"
    run = Run(scenario(steps)).play()
    assert run.pair().sentence.endswith("are cut, such as that from a to d")
    assert "split-brain-answer" in MERGING_TAKES


def test_neither_lists_nor_remembers_the_other() -> None:
    run = Run(scenario(STRANGERS_APART, STRANGERS)).play()
    pair = run.pair()
    assert (pair.state, pair.rule) == ("blocked", "nobody-looks")
    assert pair.sentence == (
        "neither d's cluster nor a's lists or remembers a member of the other, so they never meet; "
        "a has 3 data members and d has 2, so d merges into a"
    )
    assert pair.unblock is not None
    address = run.run_state.picture.address_of
    assert pair.unblock.text == f"add a ({address('a')}) to the join list of d's cluster"
    (command,) = pair.unblock.commands
    assert command == SetJoinList("d", tuple(str(address(member)) for member in "dea"))
    assert [change.text for change in pair.unblock.edits[0].changes] == [
        f"= d ({address('d')})",
        f"= e ({address('e')})",
        f"+ a ({address('a')})",
    ]
    assert pair.unblock.edits[0].differing == ("e",), "e lists the same in another order"
    run.do(command)
    assert run.comes_together()


def test_a_real_side_that_has_just_turned_frozen_may_be_merging() -> None:
    steps = APART + "  - do: {change-state: {d: FROZEN}}\n  - do: heal\n  - do: {wait: 8s}\n"
    run = Run(scenario(steps)).play()
    belief = run.run_state.picture.members["d"]
    belief.witnessed_by = ("client-protocol",)
    pair = run.pair()
    assert (pair.state, pair.rule) == ("waits", "freezes")
    assert pair.sentence == (
        "d's cluster is FROZEN, seen so for 7 s: a master freezes its cluster before it merges, and this may be that"
    )
    belief.cluster_state_since_us -= FREEZES_TO_MERGE_US
    assert (run.pair().state, run.pair().rule) == ("blocked", "local-state")


def test_a_frozen_side_is_made_active() -> None:
    for frozen, rule in (("d", "local-state"), ("a", "remote-state")):
        run = Run(
            scenario(APART + f"  - do: {{change-state: {{{frozen}: FROZEN}}}}\n  - do: heal\n  - do: {{wait: 8s}}\n")
        )
        pair = run.play().pair()
        assert (pair.state, pair.rule) == ("blocked", rule)
        assert pair.sentence == f"{frozen}'s cluster is FROZEN: it admits no member and does not merge"
        assert pair.unblock is not None and pair.unblock.commands == (ChangeState(frozen, "ACTIVE"),)
        run.do(*pair.unblock.commands)
        assert run.comes_together()


def test_everything_in_the_way_is_taken_out_of_it_at_once() -> None:
    steps = STRANGERS_APART + "  - do: {partition: [[a, b, c], [d, e]]}\n  - do: {change-state: {d: PASSIVE}}\n"
    run = Run(scenario(steps + "  - do: {wait: 2s}\n", STRANGERS)).play()
    pair = run.pair()
    assert pair.rule == "local-state"
    assert pair.sentence.endswith("(besides: link-cut, nobody-looks)")
    assert pair.unblock is not None
    assert [type(command) for command in pair.unblock.commands] == [ChangeState, HealLink, SetJoinList]
    run.do(*pair.unblock.commands)
    assert run.comes_together()


SIZES = {
    "data-members": ("a, b, c, d, e", "[[a, b, c], [d, e]]", "lite: []\n", "a has 3 data members and d has 2"),
    "total-members": ("a, b, c, d, e", "[[a, b, c], [d, e]]", "lite: [c]\n", "a has 3 members in total and d has 2"),
    "address": ("a, b, d, e", "[[a, b], [d, e]]", "lite: []\n", "the clusters are of equal size and d comes after a"),
}


@pytest.mark.parametrize("rule", SIZES)
def test_what_decides_between_two_that_may_merge(rule: str) -> None:
    members, sides, lite, why = SIZES[rule]
    steps = f"""
  - expect: {{within: 15s, one-cluster: true}}
  - do: {{partition: {sides}}}
  - expect: {{within: 30s, masters: {{b: a, e: d}}, views: {{a: {sides.partition("], ")[0][1:]}], d: [d, e]}}}}
  - do: heal
"""
    run = Run(scenario(steps, lite, members)).play()
    pair = run.pair()
    assert (pair.smaller, pair.greater, pair.state) == ("d", "a", "due")
    assert why in pair.sentence and pair.sentence.startswith("nothing is in the way: ")
    assert pair.unblock is not None
    (command,) = pair.unblock.commands
    assert isinstance(command, SearchClusters)
    run.do(command)
    assert run.comes_together(seconds=20)


DIFFERENT = {
    "cluster-name": {"cluster_name": "prod"},
    "partition-count": {"settings": {"hazelcast.partition.count": 5}},
    "partition-groups": {"settings": {"quarterdeck.partition.group.type": "host-aware"}},
}


@pytest.mark.parametrize("rule", DIFFERENT)
def test_clusters_that_were_configured_differently(rule: str) -> None:
    """No edit helps, and the sentence says what does."""
    wanted = dict(DIFFERENT[rule])
    run = Run(scenario("  - do: {wait: 1s}\n", "late: [d]\n", "a, b, d"))
    node = run.world.nodes["d"]
    as_it_was = node.member_configuration
    if "settings" in wanted:
        wanted["settings"] = as_it_was.settings.with_properties(wanted["settings"])  # type: ignore[arg-type]
    node.member_configuration = msgspec.structs.replace(as_it_was, join_list=(), **wanted)
    run.play()
    run.do(StartMember("d"))
    run.advance(15 * SECOND_US)
    pair = run.pair()
    assert (pair.smaller, pair.greater, pair.state, pair.rule) == ("d", "a", "blocked", rule)
    assert pair.sentence.endswith("; no edit helps: start the members of one side anew with what the other has")
    assert pair.unblock is None


def test_every_rule_about_configuration_is_known_from_what_masters_say() -> None:
    for rule in CONFIGURED:
        cluster = formed()
        cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
        why = f"the joiners differ at {cluster.address('n1')}"
        cluster.happen("n4", events.MergeVerdict(cluster.address("n1"), "cannot-merge", rule, why))
        (pair,) = why_not_merging(fold(cluster), cluster.now_us())
        assert pair.rule == rule and pair.sentence.startswith("the joiners differ at n1; no edit helps")


# Whatever is found in the acceptance scenarios


MOMENTS = [
    ("claim-a-to-f", "remote-is-my-member"),
    ("claim-a-to-f", "i-am-its-member"),
    ("heartbeat-ring", "i-am-its-member"),
    ("heartbeat-ring", "members-intersect"),
    ("one-way-cut", "given-up"),
    ("cut-racks", "link-cut"),
    ("issue-17490", "nobody-looks"),
    ("join-list-edit", "nobody-looks"),
    ("issue-18661", "search-due"),
    ("issue-20331", "search-due"),
    ("held-back-across-masters", "link-cut"),
]


@pytest.mark.parametrize(("name", "rule"), MOMENTS)
def test_what_is_proposed_brings_the_clusters_together(name: str, rule: str) -> None:
    """The run is left to itself at the first moment at which the rule is met, but for what is proposed, as often as it is."""
    run = Run(load_scenario(SCENARIOS / f"{name}.yaml"), lambda pair: pair.rule == rule).play()
    assert rule in run.ever
    for _ in range(8):
        for pair in run.pairs():
            if pair.unblock is not None and pair.state != "merging":
                run.do(*pair.unblock.commands)
                break
        if run.comes_together(seconds=15):
            break
    assert not run.pairs()


@pytest.mark.parametrize("seed", long_after(4, range(12)))
def test_random_troubles_are_undone_by_nothing_but_what_is_proposed(seed: int) -> None:
    run = Run(draw_scenario(seed, (3, 9)).scenario).play()
    for _ in range(25):
        for pair in run.pairs():
            if pair.unblock is not None and pair.state != "merging":
                for command in pair.unblock.commands:
                    with suppress(CommandRefused):  # an earlier pair's remedy may have settled it
                        run.execute(command)
        run.advance(10 * SECOND_US)
        if not run.pairs():
            break
    assert [pair.sentence for pair in run.pairs()] == []


def test_nobody_answered() -> None:
    """What the network does to the other side is not always known: here its members are frozen while they lead a cluster."""
    cluster = formed()
    cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
    silent = tuple(cluster.address(label) for label in ("n1", "n2", "n3"))
    cluster.happen("n4", events.SearchPlanned(0, 3 * SECOND_US))
    cluster.happen("n4", events.NotMerging("nobody", cause="nobody-answers", silent=silent))
    picture = fold(cluster)
    (pair,) = why_not_merging(picture, cluster.now_us())
    assert pair.rule == "search-due", "n1 may still find it"
    away = tuple(cluster.address(label) for label in ("n4", "n5"))
    cluster.happen("n1", events.NotMerging("nobody", cause="nobody-answers", silent=away))
    (pair,) = why_not_merging(fold(cluster, picture), cluster.now_us())
    assert (pair.state, pair.rule) == ("waits", "no-answer")
    assert pair.sentence.startswith("no answer came from n1, n2, n3, n4, n5 when asked last; ")
    assert pair.unblock is not None and len(pair.unblock.commands) == 1


def test_a_merge_under_way_and_one_that_has_to_wait_for_another() -> None:
    cluster = formed()
    cluster.split(["n1", "n2"], ["n4", "n5"])
    cluster.install("n3", 9, ["n3"], lineage="L3")
    cluster.happen("n4", events.MergeStarted(cluster.address("n1"), (cluster.address("n4"), cluster.address("n5"))))
    pairs = {(pair.smaller, pair.greater): pair for pair in why_not_merging(fold(cluster), cluster.now_us())}
    assert pairs["n4", "n1"].sentence == "n4's cluster is on its way into n1's"
    assert pairs["n4", "n1"].state == "merging" and pairs["n4", "n1"].unblock is None
    assert pairs["n3", "n4"].sentence == "n4's cluster is on its way into n1's first"
    assert pairs["n3", "n1"].rule == "search-due"


def test_what_keeps_a_master_busy() -> None:
    cluster = formed()
    cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
    cluster.happen("n4", events.NotMerging("its cluster is changing to PASSIVE"))
    (pair,) = why_not_merging(fold(cluster), cluster.now_us())
    assert (pair.state, pair.rule) == ("waits", "busy")
    assert pair.sentence == (
        "n4 did not look for other clusters, for its cluster is changing to PASSIVE; it looks again at its next search"
    )


def test_of_very_many_clusters_not_all_pairs_are_judged() -> None:
    cluster = FakeCluster([f"n{number}" for number in range(1, 41)])
    for place, label in enumerate(cluster.labels):
        cluster.start(label)
        cluster.install(label, place + 1, [label], lineage=label)
    picture = fold(cluster)
    assert len(why_not_merging(picture, 0)) == 100 and pairs_left_out(picture) == 40 * 39 // 2 - 100


def test_nothing_in_it_steers_a_terminal() -> None:
    cluster = FakeCluster(("\x1b[2J", "[/]x\n"))
    for place, label in enumerate(cluster.labels):
        cluster.start(label)
        cluster.install(label, place + 1, [label], lineage=label)
    cluster.happen("dev", LinkChanged("\x1b[2J", "[/]x\n", "reset"))
    for pair in why_not_merging(fold(cluster), 0):
        assert pair.sentence.isprintable() and pair.unblock is not None and pair.unblock.text.isprintable()
