"""What a scenario says of single members: settings, cluster name, join list; in each of their incarnations."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import KillMember, StartMember
from quarterdeck.backend.scenarios.format.reading import BadScenario, read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.simulation.simulated_driver import SimulatedDriver, simulate

HEAD = "title: T\nmembers: [athens, byzantium, cyrene]\n"
STEPS = "steps: [expect: {within: 20s, one-cluster: true}]\n"


def read(text: str) -> Scenario:
    return read_scenario(HEAD + text + STEPS, "t.yaml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("member-settings: {athen: {}}\n", "t.yaml:3: member-settings.athen: there is no member 'athen'; did you mean"),
        (
            "member-settings:\n  athens:\n    hazelcast.heartbeat.intervall.seconds: 1\n",
            "t.yaml:5: member-settings.athens.hazelcast.heartbeat.intervall.seconds: there is no such property; did you",
        ),
        ("member-settings: {athens: {hazelcast.max.no.heartbeat.seconds: 0.5}}\n", "is not longer than the heartbeat"),
        ("member-settings: {athens: {hazelcast.max.no.heartbeat.seconds: [1]}}\n", "[1] is not a single value"),
        ("cluster-names: {troy: blue}\n", "t.yaml:3: cluster-names.troy: there is no member 'troy'"),
        ("cluster-names: {athens: ''}\n", "t.yaml:3: cluster-names.athens"),
        (
            "join-lists: {athens: [byzanti]}\n",
            "join-lists.athens[1]: there is no member 'byzanti'; did you mean byzantium?",
        ),
        ("join-lists: {athens: [10.0.0.*]}\n", "join-lists.athens[1]: '10.0.0.*' is a range or wildcard"),
        ("join-lists: {athens: ['10.0.0.1:99999']}\n", "t.yaml:3: join-lists.athens[1]: "),
    ],
)
def test_mistakes_are_told_with_line_field_and_hint(text: str, problem: str) -> None:
    with pytest.raises(BadScenario) as found:
        read(text)
    assert problem in str(found.value)


def test_settings_and_cluster_name_are_those_of_every_incarnation() -> None:
    scenario = read(
        "settings: {hazelcast.max.no.heartbeat.seconds: 9}\ncluster-names: {cyrene: blue}\n"
        "member-settings: {cyrene: {hazelcast.partition.count: 7}}\n"
    )
    driver = SimulatedDriver(scenario, 1, RunState())
    driver.start_members()
    for _ in range(2):
        own, other = driver.world.machine("cyrene"), driver.world.machine("athens")
        assert own is not None and other is not None
        assert (own.inspect().settings.partition_count, own.inspect().settings.max_no_heartbeat_us) == (7, 9_000_000)
        assert other.inspect().settings.partition_count == 271
        assert own.inspect().members is not None and len(own.inspect().members.members) == 1
        driver.execute(KillMember("cyrene"))
        driver.execute(StartMember("cyrene"))
        driver.advance(20_000_000)


def test_a_host_in_a_join_list_stands_for_its_first_ports() -> None:
    scenario = read("join-lists: {cyrene: [127.0.0.1, athens, 10.0.0.9, '[fe80::1]:5701']}\n")
    driver = SimulatedDriver(scenario, 1, RunState())
    assert driver.world.nodes["cyrene"].member_configuration.join_list == tuple(
        map(
            Address,
            (
                *("127.0.0.1:5701", "127.0.0.1:5702", "127.0.0.1:5703"),
                *("10.0.0.9:5701", "10.0.0.9:5702", "10.0.0.9:5703", "[fe80::1]:5701"),
            ),
        )
    )


@pytest.mark.parametrize(
    "text",
    [
        "join-lists: {cyrene: [127.0.0.1, 10.0.0.9]}\n",
        "cluster-names: {cyrene: blue}\nmember-settings: {byzantium: {hazelcast.heartbeat.interval.seconds: 2}}\n",
    ],
)
def test_one_seed_is_one_run_and_what_is_said_of_members_changes_it(text: str) -> None:
    scenario, plain = read(text), read("")
    assert simulate(scenario, 5) == simulate(read(text), 5)
    assert simulate(scenario, 5).fingerprint != simulate(plain, 5).fingerprint
