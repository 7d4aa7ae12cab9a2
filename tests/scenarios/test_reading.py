"""Every mistake in a scenario file is one error with file, line, field and hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.backend.core.commands import (
    ChangeState,
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    Heal,
    HealLink,
    KillMember,
    LoseOnLink,
    Operate,
    Partition,
    SearchClusters,
    SetJoinList,
    StartMember,
    StopCluster,
    StopMember,
    SuspectMember,
)
from quarterdeck.backend.scenarios.format.reading import BadScenario, load_scenario, read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.values import duration_text, parse_duration

HEAD = "title: T\nmembers: [athens, byzantium, cyrene]\n"


def read(text: str) -> Scenario:
    return read_scenario(text, "t.yaml")


def step(text: str) -> Scenario:
    return read(f"{HEAD}steps:\n  - {text}\n")


def commands(text: str, running: bool = True) -> list[object]:
    action = step(f"do: {text}").steps[0].do
    assert action is not None
    return list(action.commands(lambda label: running))


def test_the_format_of_the_design_is_read() -> None:
    scenario = read(
        "title: Split brain\nsummary: Two halves.\nmembers: [athens, byzantium, cyrene, delphi, euphesus]\n"
        "settings: {hazelcast.heartbeat.interval.seconds: 1, hazelcast.max.no.heartbeat.seconds: 5}\n"
        "join-lists: {delphi: [athens]}\nsteps:\n  - say: |\n      Some *markdown*.\n"
        "  - do: {partition: [[athens, byzantium, cyrene], [delphi, euphesus]]}\n"
        "  - expect:\n      within: 20s\n      views: {delphi: [delphi, euphesus]}\n      masters: {euphesus: delphi}\n"
        "  - do: heal\n  - expect: {within: 60s, one-cluster: true, version-at-least: 7}\n"
    )
    assert scenario.timing().max_no_heartbeat_us == 5_000_000
    assert scenario.join_lists == {"delphi": ("athens",)}
    assert [next(iter(step.model_fields_set)) for step in scenario.steps] == ["say", "do", "expect", "do", "expect"]
    expect = scenario.steps[4].expect
    assert expect is not None and expect.within_us == 60_000_000 and expect.version_at_least == 7


def test_members_may_be_a_number() -> None:
    assert read("title: T\nmembers: 3\nsteps: [{do: {kill: n2}}]\n").members == ("n1", "n2", "n3")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{start: athens}", [StartMember("athens")]),
        ("{stop: [athens, cyrene]}", [StopMember("athens"), StopMember("cyrene")]),
        ("{stop-cluster: athens}", [StopCluster("athens")]),
        ("{suspect: {athens: cyrene}}", [SuspectMember("athens", "cyrene")]),
        ("{restart: athens}", [KillMember("athens"), StartMember("athens")]),
        ("{partition: [[athens], [byzantium, cyrene]]}", [Partition((("athens",), ("byzantium", "cyrene")))]),
        (
            "{cut: {from: athens, to: [byzantium], one-way: true, mode: reset}}",
            [CutLink(("athens",), ("byzantium",), True, "reset")],
        ),
        ("{delay: {from: athens, to: byzantium, by: 50ms}}", [DelayLink(("athens",), ("byzantium",), 50_000)]),
        (
            "{lose: {from: athens, to: byzantium, probability: 0.5}}",
            [LoseOnLink(("athens",), ("byzantium",), 0.5)],
        ),
        (
            "{duplicate: {from: athens, to: byzantium, probability: 0.5, one-way: true}}",
            [DuplicateOnLink(("athens",), ("byzantium",), 0.5, True)],
        ),
        (
            "{drop-messages: {from: athens, to: byzantium, kinds: heartbeat}}",
            [DropMessages(("athens",), ("byzantium",), ("heartbeat",))],
        ),
        ("{drop-messages: {from: athens, to: cyrene, kinds: []}}", [DropMessages(("athens",), ("cyrene",), ())]),
        ("{set-join-list: {athens: [cyrene, '10.0.0.1:5701']}}", [SetJoinList("athens", ("cyrene", "10.0.0.1:5701"))]),
        ("{change-state: {athens: FROZEN}}", [ChangeState("athens", "FROZEN")]),
        ("{search: athens}", [SearchClusters("athens")]),
        ("{operate: [athens, cyrene]}", [Operate("athens"), Operate("cyrene")]),
        ("heal", [Heal()]),
        ("{heal: {from: athens, to: byzantium}}", [HealLink(("athens",), ("byzantium",))]),
        ("{wait: 2s}", []),
    ],
)
def test_actions_compile_to_commands(text: str, expected: list[object]) -> None:
    assert commands(text) == expected


def test_a_restart_does_not_kill_what_does_not_run() -> None:
    assert commands("{restart: athens}", running=False) == [StartMember("athens")]


@pytest.mark.parametrize(
    ("text", "duration_us"), [("20s", 20_000_000), ("500ms", 500_000), ("2m", 120_000_000), ("1.5 s", 1_500_000)]
)
def test_durations(text: str, duration_us: int) -> None:
    assert parse_duration(text) == duration_us
    assert parse_duration(duration_text(duration_us)) == duration_us


BAD_STEPS = [
    ("do: {cutt: {from: athens, to: cyrene}}", "step 1, do.cutt: there is no such action; did you mean cut?"),
    ("do: helo", "step 1, do.helo: there is no such action; did you mean heal?"),
    ("do: kill", "step 1, do: kill needs to know whom"),
    ("do:", "step 1: says, does and expects nothing"),
    ("do: {kill: athens, stop: cyrene}", "step 1, do: holds not exactly one action"),
    ("do: {kill: atens}", "step 1, do.kill[1]: there is no member 'atens'; did you mean athens?"),
    ("do: {suspect: {athens: atens}}", "step 1, do.suspect.athens: there is no member 'atens'; did you mean athens?"),
    ("do: suspect", "step 1, do: suspect needs to know whom; write {suspect: {athens: byzantium}}"),
    ("do: {stop-cluster: []}", "step 1, do.stop-cluster: has 0 entries"),
    ("do: {kill: []}", "step 1, do.kill: has 0 entries"),
    ("do: {cut: {from: athens}}", "step 1, do.cut.to: is missing"),
    (
        "do: {cut: {from: athens, to: cyrene, oneway: true}}",
        "do.cut.oneway: there is no such field; did you mean one-way",
    ),
    ("do: {cut: {from: athens, to: cyrene, mode: hole}}", "step 1, do.cut.mode: 'hole' is not known here"),
    ("do: {delay: {from: athens, to: cyrene, by: 50}}", "step 1, do.delay.by: 50 is not a duration"),
    ("do: {lose: {from: athens, to: cyrene, probability: 2}}", "step 1, do.lose.probability: 2 does not fit here"),
    ("do: {partition: [[athens], [athens, cyrene]]}", "step 1, do.partition: 'athens' stands there twice"),
    ("do: {partition: [[athens]]}", "do.partition.groups: has 1 entries; at least 2"),
    ("do: {partition: [[athens], [delfi]]}", "there is no member 'delfi'"),
    ("do: {heal: {from: athens}}", "step 1, do.heal: names one end only"),
    ("do: change-state", "step 1, do: change-state needs to know whom; write {change-state: {athens: FROZEN}}"),
    ("do: {change-state: {atens: FROZEN}}", "do.change-state.atens: there is no member 'atens'"),
    ("do: {change-state: {athens: FROZE}}", "do.change-state.athens: 'FROZE' is not known here; write"),
    ("do: {set-join-list: {athens: []}}", "do.set-join-list.athens: has 0 entries"),
    ("do: {drop-mesages: {}}", "there is no such action; did you mean drop-messages?"),
    (
        "do: {drop-messages: {from: athens, to: cyrene, kinds: [heartbeet]}}",
        "no message 'heartbeet'; did you mean heartb",
    ),
    ("do: {drop-messages: {from: athens, to: cyrene, kinds: [], one-way: true}}", "there is no such field"),
    ("expect: {state: {athens: ACTIV}}", "step 1, expect.state.athens: 'ACTIV' is not known here"),
    ("expect: {heldback: [athens]}", "there is no such expectation; did you mean held-back?"),
    ("do: {wait: soon}", "step 1, do.wait: 'soon' is not a duration"),
    ("expect: {view: {athens: [athens]}}", "step 1, expect.view: there is no such expectation; did you mean views?"),
    ("expect: {within: 5s}", "step 1, expect: expects nothing"),
    ("expect: {views: {delfi: [athens]}}", "step 1, expect.views.delfi: there is no member 'delfi'"),
    ("expect: {versions: {athens: new}}", "step 1, expect.versions.athens: 'new' does not fit here"),
    ("expect: {one-cluster: perhaps}", "step 1, expect.one-cluster: 'perhaps' does not fit here"),
    (
        "expect: {event: {kind: list-instaled}}",
        "expect.event.kind: there is no event 'list-instaled'; did you mean list-in",
    ),
    ("expect: {event: {kind: [1]}}", "expect.event.kind: there is no event [1]"),
    (
        "expect: {event: {kind: list-installed, vrsion: 3}}",
        "expect.event.vrsion: list-installed has no such field; did you",
    ),
    ("expect: {event: {suspect: athens}}", "step 1, expect.event: names no kind"),
    ("expect: {never: suspicion}", "there is no event 'suspicion'"),
    ("tell: hello", "step 1, tell: there is no such kind of step"),
    ("say: 5", "step 1, say: 5 is not a text"),
    ("heal", "step 1: 'heal' does not fit here"),
]


@pytest.mark.parametrize(("text", "problem"), BAD_STEPS, ids=[text for text, _ in BAD_STEPS])
def test_bad_steps_name_line_field_and_hint(text: str, problem: str) -> None:
    with pytest.raises(BadScenario) as failure:
        step(text)
    assert str(failure.value).startswith("t.yaml:4: ")
    assert problem in str(failure.value)


BAD_FILES = [
    ("", "t.yaml:1: is not a scenario"),
    ("- a\n", "t.yaml:1: is not a scenario"),
    ("title: [\n", "is not YAML"),
    ("title: T\ntitle: U\n", "t.yaml:2: is not YAML: found duplicate key"),
    ("title: \x00", "t.yaml:1: is not YAML"),
    ("title: T\nmembers: 2\n", "t.yaml:1: steps: is missing"),
    ("title: T\nmembers: 0\nsteps: []\n", "t.yaml:2: members: 0 is not a possible number"),
    ("title: T\nmembers: [a, a]\nsteps: []\n", "t.yaml:2: members: 'a' stands there twice"),
    ("title: T\nmembers:\n  - a\n  - 5\n", "t.yaml:4: members[2]: 5 is not a text"),
    ("title: T\nmembers: [a b]\n", "t.yaml:2: members[1]: 'a b' is no label"),
    ("title: T\nmembers: true\n", "t.yaml:2: members: True does not fit here; write a list"),
    (f"{HEAD}setings: {{}}\nsteps: [do: heal]\n", "t.yaml:3: setings: there is no such field; did you mean settings?"),
    (f"{HEAD}join-lists:\n  athens: [troy]\nsteps: [do: heal]\n", "t.yaml:4: join-lists.athens[1]: there is no member"),
    (
        f"{HEAD}settings:\n  hazelcast.heartbeat.intervall.seconds: 1\nsteps: [do: heal]\n",
        "t.yaml:4: settings.hazelcast.heartbeat.intervall.seconds: there is no such property; did you mean hazelcast.",
    ),
    (
        f"{HEAD}settings:\n  hazelcast.heartbeat.interval.seconds: fast\nsteps: [do: heal]\n",
        "t.yaml:4: settings.hazelcast.heartbeat.interval.seconds: 'fast' is not a number of seconds",
    ),
    (f"{HEAD}settings: {{hazelcast.max.no.heartbeat.seconds: 0.5}}\nsteps: [do: heal]\n", "t.yaml:3: settings."),
    (f"{HEAD}settings: {{hazelcast.max.no.heartbeat.seconds: [1]}}\nsteps: [do: heal]\n", "[1] is not a single value"),
    (f"{HEAD}late: [troy]\nsteps: [do: heal]\n", "t.yaml:3: late[1]: there is no member 'troy'"),
    (
        f"{HEAD}latency: {{modell: uniform}}\nsteps: [do: heal]\n",
        "latency.modell: there is no such field; did you mean model?",
    ),
    (f"{HEAD}latency: {{least: 2s, most: 1s}}\nsteps: [do: heal]\n", "t.yaml:3: latency: messages take some time"),
    (
        f"{HEAD}clocks:\n  athens: {{rat: 2}}\nsteps: [do: heal]\n",
        "t.yaml:4: clocks.athens.rat: there is no such field; did",
    ),
    (
        f"{HEAD}clocks: {{athens: {{jumps: [{{at: 2s, bye: 1s, by: 1s}}]}}}}\nsteps: [do: heal]\n",
        "did you mean by?",
    ),
    (f"title: {'[' * 400}{']' * 400}\n", "is nested more than 20 deep"),
    (f"title: {'[' * 30}{']' * 30}\n", "is nested more than 20 deep"),
    (f"{HEAD}steps:\n  - do:\n      cut:\n        from: athens\n        to: troy\n", "t.yaml:7: step 1, do.cut.to[1]"),
    (
        f"{HEAD}steps:\n  - do:\n      partition:\n        - [athens]\n        - [troy]\n",
        "t.yaml:7: step 1, do.partition",
    ),
]


@pytest.mark.parametrize(("text", "problem"), BAD_FILES)
def test_bad_files_name_line_field_and_hint(text: str, problem: str) -> None:
    with pytest.raises(BadScenario) as failure:
        read(text)
    assert problem in str(failure.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="cannot be read: No such file"):
        load_scenario(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadScenario, match="is not UTF-8 text"):
        load_scenario(tmp_path / "binary.yaml")
