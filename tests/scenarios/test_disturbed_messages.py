"""Faults of links by kind of message and from a range, held messages, members that move; what only simulations do."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.backend.commands.check import refuse_outside_simulation
from quarterdeck.backend.commands.links import LinkConditions, conditions_for, delay_us
from quarterdeck.backend.core.commands import (
    CommandRefused,
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    HealLink,
    HoldMessages,
    KillMember,
    LoseOnLink,
    MoveMember,
    ReplayMessages,
    StartMember,
)
from quarterdeck.backend.core.link_condition import KindCondition, LinkChanged
from quarterdeck.backend.scenarios.format.reading import BadScenario, load_scenario, read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.writing import scenario_text
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.simulation.simulated_driver import SimulatedDriver, simulate
from quarterdeck.backend.training.demo_cluster import LiveDemo
from quarterdeck.backend.training.runner import OnlySimulated, run_live

SCENARIOS = Path(__file__).parent
HEAD = "title: T\nmembers: [athens, byzantium, cyrene]\n"
ENDS = ("athens",), ("byzantium",)
LINK = ("athens", "byzantium")


def read(*steps: str, head: str = HEAD) -> Scenario:
    return read_scenario(f"{head}steps:\n" + "".join(f"  - {step}\n" for step in steps), "t.yaml")


def commands(text: str) -> list[object]:
    action = read(f"do: {text}").steps[0].do
    assert action is not None
    return list(action.commands(lambda _: True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{delay: {from: athens, to: byzantium, by: 500ms..5s}}", DelayLink(*ENDS, 500_000, up_to_us=5_000_000)),
        (
            "{delay: {from: athens, to: byzantium, by: 1s, up-to: 2s, kinds: heartbeat}}",
            DelayLink(*ENDS, 1_000_000, up_to_us=2_000_000, kinds=("heartbeat",)),
        ),
        (
            "{lose: {from: athens, to: byzantium, probability: 1, kinds: [heartbeat, join-request]}}",
            LoseOnLink(*ENDS, 1, kinds=("heartbeat", "join-request")),
        ),
        (
            "{duplicate: {from: athens, to: byzantium, probability: 1, kinds: heartbeat, one-way: true}}",
            DuplicateOnLink(*ENDS, 1, True, ("heartbeat",)),
        ),
        ("{hold: {from: athens, to: byzantium}}", HoldMessages(*ENDS)),
        ("{hold: {from: athens, to: byzantium, kinds: heartbeat}}", HoldMessages(*ENDS, ("heartbeat",))),
        ("{replay: {from: athens, to: byzantium}}", ReplayMessages(*ENDS)),
        ("{heal: {from: athens, to: byzantium, only: [cut, delay]}}", HealLink(*ENDS, ("cut", "delay"))),
        ("{move: {athens: 10.0.0.9}}", MoveMember("athens", "10.0.0.9:5701")),
    ],
)
def test_actions_are_commands(text: str, expected: object) -> None:
    assert commands(text) == [expected]


def test_a_restart_elsewhere_kills_moves_and_starts() -> None:
    assert commands("{restart: {athens: '10.0.0.9:5702'}}") == [
        KillMember("athens"),
        MoveMember("athens", "10.0.0.9:5702"),
        StartMember("athens"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{delay: {from: athens, to: cyrene, by: 5s..1s}}", "step 1, do.delay: the range ends before it begins; write"),
        ("{delay: {from: athens, to: cyrene, by: 5..1s}}", "step 1, do.delay.by: '5' is not a duration"),
        ("{delay: {from: athens, to: cyrene, by: 5s, kinds: [heartbeet]}}", "did you mean heartbeat?"),
        ("{hold: {from: athens}}", "step 1, do.hold.to: is missing"),
        ("{hold: {from: athens, to: cyrene, kind: heartbeat}}", "do.hold.kind: there is no such field; did you mean"),
        ("{heal: {only: cut}}", "step 1, do.heal: says what to heal, and not where"),
        ("{heal: {from: athens, to: cyrene, only: [cutt]}}", "do.heal.only[1]: 'cutt' is not known here; write"),
        ("{restart: {athens: '10.0.0.9:99999'}}", "step 1, do.restart.athens: "),
        ("{restart: [athens, atens]}", "step 1, do.restart.atens: there is no member 'atens'; did you mean athens?"),
        ("{restart: [athens, athens]}", "step 1, do.restart: 'athens' stands there twice"),
        ("{restart: []}", "step 1, do.restart: "),
        ("{restart: [5]}", "step 1, do.restart: [5] does not fit here"),
        ("{move: {athens: '10.0.0.9:99999'}}", "step 1, do.move.athens: "),
        ("{move: {athen: 10.0.0.9}}", "step 1, do.move.athen: there is no member 'athen'"),
    ],
)
def test_mistakes_are_told_with_line_field_and_hint(text: str, problem: str) -> None:
    with pytest.raises(BadScenario) as found:
        read(f"do: {text}")
    assert str(found.value).startswith("t.yaml:4: ")
    assert problem in str(found.value)


def test_one_fault_is_healed_and_the_others_stay() -> None:
    links = LinkConditions()
    kinds = ("heartbeat",)
    links.apply(CutLink(*ENDS))
    links.apply(DelayLink(*ENDS, 7, up_to_us=9))
    links.apply(DelayLink(*ENDS, 5, kinds=kinds))
    links.apply(LoseOnLink(*ENDS, 0.5, kinds=kinds))
    links.apply(DropMessages(*ENDS, ("join-request",)))
    links.apply(HoldMessages(*ENDS, ()))
    everything, heartbeats = KindCondition("", held=True), KindCondition("heartbeat", 5, loss=0.5)
    full = LinkChanged(
        *LINK, "blackhole", 7, dropped_kinds=("join-request",), delay_up_to=9, of_kinds=(everything, heartbeats)
    )
    assert links.of(*LINK) == full
    links.apply(HealLink(*ENDS, ("cut", "drop-messages")))
    assert links.of(*LINK) == LinkChanged(*LINK, delay=7, delay_up_to=9, of_kinds=(everything, heartbeats))
    links.apply(HealLink(*ENDS, ("delay",)))
    assert links.of(*LINK) == LinkChanged(*LINK, of_kinds=(everything, KindCondition("heartbeat", loss=0.5)))
    assert [condition.kind for condition in conditions_for(links.of(*LINK), "heartbeat")] == ["", "", "heartbeat"]  # type: ignore[arg-type]
    links.apply(HealLink(*ENDS, ("lose",)))
    assert links.apply(ReplayMessages(*ENDS)) == (LinkChanged(*LINK),)
    assert links.conditions == {}


def test_a_delay_is_drawn_from_its_range() -> None:
    drawn = {delay_us(KindCondition("", 100, 200), lambda share=share: share) for share in (0.0, 0.5, 0.999)}
    assert drawn == {100, 150, 199}
    assert delay_us(KindCondition("", 100), lambda: 0.5) == 100


def test_held_messages_arrive_in_order_when_they_are_replayed() -> None:
    steps = [
        "expect: {within: 10s, one-cluster: true}",
        "do: {hold: {from: athens, to: cyrene}}",
        "do: {wait: 2s}",
        "do: {replay: {from: athens, to: cyrene}}",
        "expect: {within: 3s, one-cluster: true, event: {kind: link-changed, of_kinds: []}, never: suspicion-raised}",
    ]
    assert simulate(read(*steps), 1).passed
    lost = simulate(read(*steps[:3], "do: {wait: 3s}", "expect: {within: 3s, event: {kind: suspicion-raised}}"), 1)
    assert lost.passed, "what is held is not heard"


def test_an_address_is_one_members_only() -> None:
    driver = SimulatedDriver(read("do: heal"), 1, RunState())
    driver.start_members()
    with pytest.raises(CommandRefused, match="cyrene is already running"):
        driver.execute(MoveMember("cyrene", "10.0.0.9:5701"))
    driver.execute(KillMember("cyrene"))
    with pytest.raises(CommandRefused, match=r"127\.0\.0\.1:5701 is that of athens, which runs"):
        driver.execute(MoveMember("cyrene", "127.0.0.1:5701"))
    driver.execute(KillMember("byzantium"))
    driver.execute(MoveMember("cyrene", "127.0.0.1:5702"))
    driver.execute(StartMember("cyrene"))
    with pytest.raises(CommandRefused, match=r"127\.0\.0\.1:5702 is that of cyrene by now"):
        driver.execute(StartMember("byzantium"))
    driver.execute(MoveMember("byzantium", "127.0.0.1:5703"))
    driver.execute(StartMember("byzantium"))
    driver.advance(20_000_000)
    assert driver.world.machine("byzantium").inspect().members is not None  # type: ignore[union-attr]


FILES = ["late-join-request", "restart-elsewhere", "slow-kinds", "heal-one"]


@pytest.mark.parametrize("name", FILES)
def test_one_seed_is_one_run(name: str) -> None:
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    again = read_scenario(scenario_text(scenario), "t.yaml")
    assert again == scenario
    assert simulate(scenario, 3) == simulate(again, 3)
    assert simulate(scenario, 3).fingerprint != simulate(scenario, 4).fingerprint


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (read("say: hi", "do: {hold: {from: athens, to: cyrene}}"), "step 2 does hold"),
        (read("do: {restart: {athens: 10.0.0.9}}"), "step 1 does restart"),
        (read("do: heal", head=f"{HEAD}addresses: {{athens: 10.0.0.1}}\n"), "it gives members addresses"),
    ],
)
def test_what_is_for_simulations_is_refused_live_before_anything_starts(scenario: Scenario, why: str) -> None:
    with pytest.raises(OnlySimulated, match=why):
        run_live(scenario, lambda _: None)
    with pytest.raises(OnlySimulated, match=why):
        LiveDemo(scenario, "demo")


def test_a_command_for_simulations_is_refused_in_one_sentence() -> None:
    with pytest.raises(
        CommandRefused, match="hold is for simulated clusters only: no real member or network can do that"
    ):
        refuse_outside_simulation(HoldMessages(*ENDS))
    refuse_outside_simulation(CutLink(*ENDS))
