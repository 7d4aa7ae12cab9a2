"""Every command is described once, and what each room derives from its description means that very command.

What is drawn follows the kinds of arguments, so a command that is new in the catalogue is tried here as it is.
"""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import nullcontext
from typing import Any, get_args

import msgspec
import pytest
import typer
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from quarterdeck.app.actions.action import EVERYTHING
from quarterdeck.app.actions.registry import ACTIONS, command_words
from quarterdeck.app.commands.command_text import describe, line_of, question
from quarterdeck.app.commands.grammar import parse_line
from quarterdeck.backend.clusters.remote.remote_commands import CommandTarget, requests_for
from quarterdeck.backend.commands.catalogue import CATALOGUE, ArgumentKind, CommandDescription, description_of
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.commands import BlockMode, CallMap, Command, LinkFault, SetProperties, StopMember
from quarterdeck.backend.core.events import EVENT_KINDS
from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.core.operations import Answer, Operation, PutAll
from quarterdeck.backend.scenarios.format import actions
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.values import duration_text
from quarterdeck.backend.scenarios.format.writing import scenario_text
from quarterdeck.backend.service.application import console_routes
from quarterdeck.cli.commands.cluster import actions as cluster_lines
from quarterdeck.cli.commands.map import operations as map_lines
from quarterdeck.cli.main import app
from tests.service.single_member import ADDRESS, Client, SingleMemberFace
from tests.thoroughness import examples

pytestmark = pytest.mark.hypothesis
"""As the tests' inner functions are, so that `make test-long` does all of it with more examples."""

LABELS = ("n1", "n2", "n3", "n4")
MEMBERS = {label: CommandTarget(label, ADDRESS, f"http://{label}:5701") for label in LABELS}
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)

VALUES: dict[ArgumentKind, st.SearchStrategy[Any]] = {
    "member": st.sampled_from(LABELS),
    "other member": st.sampled_from(LABELS),
    "groups": st.permutations(LABELS).map(lambda order: (tuple(order[:1]), tuple(order[1:3]), tuple(order[3:]))),
    "block mode": st.sampled_from(get_args(BlockMode)),
    "duration": st.integers(0, 10**10),
    "probability": st.floats(0, 1),
    "message kinds": st.lists(st.sampled_from(sorted(MESSAGE_KINDS)), unique=True).map(tuple),
    "link faults": st.lists(st.sampled_from(get_args(LinkFault)), unique=True).map(tuple),
    "address": st.sampled_from(["10.0.0.1:5701", "[fe80::1]:5701"]),
    "join list": st.lists(st.sampled_from([*LABELS, "10.0.0.1:5701", "[fe80::1]:5701"]), min_size=1).map(tuple),
    "cluster state": st.sampled_from(CLUSTER_STATES),
    "properties": st.fixed_dictionaries({"hazelcast.merge.next.run.delay.seconds": st.integers(1, 100).map(str)}),
    "event kind": st.sampled_from(sorted(EVENT_KINDS)),
    "flag": st.booleans(),
    "text": TEXT,
    "bytes": TEXT.map(str.encode),
    "count": st.integers(1, 100),
}

named = [pytest.param(row, id=f"{row.command.__name__} {row.tag}") for row in CATALOGUE if row.operation is not PutAll]


@st.composite
def commands(draw: st.DrawFn, description: CommandDescription) -> Command:
    """One command of this kind, between two members where it is about links."""
    ends = iter(draw(st.permutations(LABELS)))
    values = {
        argument.name: (next(ends),) if argument.kind == "members" else draw(VALUES[argument.kind])
        for argument in description.arguments
    }
    if "up_to_us" in values:  # the end of a range, or nothing
        values["up_to_us"] = draw(st.sampled_from((0, values["delay_us"] + 1 + values["up_to_us"])))
    return description.make(values)


def as_typed(command: Command) -> Command:
    """The command with the defaults of what the prompt has no words for."""
    description = description_of(command)
    typed = {argument.name for argument in description.typed}
    return description.make({name: value for name, value in description.values(command).items() if name in typed})


def test_every_command_and_every_operation_is_described_once() -> None:
    described = Counter(row.operation or row.command for row in CATALOGUE)
    assert described == Counter([arg for arg in get_args(Command) if arg is not CallMap] + list(get_args(Operation)))
    assert {row.command for row in CATALOGUE if row.operation} == {CallMap}


@pytest.mark.parametrize("description", named)
def test_a_description_names_every_argument_and_makes_the_command(description: CommandDescription) -> None:
    fields = {field.name for field in msgspec.structs.fields(description.operation or description.command)}
    assert {argument.name for argument in description.arguments} == fields | (
        {"member"} if description.operation else set()
    )

    @given(commands(description))
    def is_made(command: Command) -> None:
        assert description_of(command) is description
        assert description.make(description.values(command)) == command

    is_made()


def test_the_words_of_the_prompt_and_the_keys_are_those_of_the_catalogue() -> None:
    words = command_words(EVERYTHING)
    assert {word for word, (_, one) in words.items() if one.takes == "command"} == {
        row.word for row in CATALOGUE if row.meaning
    }
    for entry in CATALOGUE:
        if entry.key:
            action = words[entry.word][0]
            assert action.keys == entry.key and action.needs_write
    assert all(action.destructive == any(each.always_asked for each in CATALOGUE if each.word in words_of(action)) or
               action.id == "stop-all" for action in ACTIONS if action.needs_write and words_of(action))  # fmt: skip


def words_of(action: Any) -> set[str]:
    return {word.word for word in action.words if word.takes == "command"}


@pytest.mark.parametrize("description", [param for param in named if param.values[0].word in command_words(EVERYTHING)])
def test_the_line_of_a_command_means_it(description: CommandDescription) -> None:
    @given(commands(description))
    def reads_back(command: Command) -> None:
        command = as_typed(command)
        assert parse_line(describe(command), LABELS, allowed=EVERYTHING) == command
        text, verb = question([command])
        assert text.endswith("?") and "{" not in text and verb

    reads_back()


# Command lines

PROGRAM = typer.main.get_command(app)


def run(line: str) -> None:
    program, *words = shlex.split(line)
    assert program == "quarterdeck"
    PROGRAM(words, standalone_mode=False)


class Session:
    """What a command line asks of the cluster that it has reached."""

    connections = dict.fromkeys(LABELS)

    def member(self, wanted: str, what: str) -> str:
        return wanted


class OfMaps:
    """A session that keeps the operations that it is asked for."""

    def __init__(self, asked: list[Command]) -> None:
        self._asked = asked

    def load(self, name: str, entries: int) -> dict[str, object]:
        return {"problem": ""}

    def ask(self, operation: Operation) -> Answer:
        self._asked.append(CallMap("", operation))
        return Answer()


@pytest.mark.parametrize(
    "description", [param for param in named if param.values[0].cli and param.values[0].tag not in ("start", "call")]
)
def test_the_command_line_of_a_command_does_it(
    description: CommandDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Command] = []
    monkeypatch.setattr(cluster_lines, "_do", lambda _, command_for, *__: asked.append(command_for(Session())))
    monkeypatch.setattr(map_lines, "map_session", lambda *_, **__: nullcontext(OfMaps(asked)))

    @settings(max_examples=examples(25))
    @given(commands(description))
    def is_done(command: Command) -> None:
        command = as_typed(command)
        asked.clear()
        run(line_of(command, "--connect http://n1:5701"))
        wanted = msgspec.structs.replace(command, member="") if isinstance(command, CallMap) else command
        assert asked == [wanted]

    is_done()


# Scenarios


def written(description: CommandDescription, command: Command) -> object:
    """What stands in a scenario behind the name of the action."""
    values = description.values(command)
    plain = {argument.key: in_yaml(argument.kind, values[argument.name]) for argument in description.arguments}
    details = [detail.key for detail in description.details]
    if description.target != "member" or description.operation is not None:
        return plain
    if not details:
        return [values["member"]]
    return {values["member"]: plain[details[0]] if len(details) == 1 else {key: plain[key] for key in details}}


def in_yaml(kind: ArgumentKind, value: Any) -> object:
    match kind:
        case "duration":
            return duration_text(value)
        case "bytes":
            return value.decode()
        case _:
            return msgspec.to_builtins(value)


class QuotingDumper(yaml.SafeDumper):
    """Quotes every text. The library knows YAML 1.1, and so writes `0E0` without quotes, which is a number in YAML 1.2."""


QuotingDumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, '"'))


@pytest.mark.parametrize(
    "description", [param for param in named if param.values[0].tag in (*actions.ACTIONS, "heal-link")]
)
def test_the_action_of_a_scenario_is_the_command(description: CommandDescription) -> None:
    @settings(max_examples=examples(25))
    @given(commands(description))
    def is_read(command: Command) -> None:
        action = {
            description.word if description.tag == "heal-link" else description.tag: written(description, command)
        }
        tree = {"title": "t", "summary": "s", "members": list(LABELS), "steps": [{"do": action}]}
        text = yaml.dump(tree, Dumper=QuotingDumper)
        scenario = read_scenario(text, "t.yaml")
        (step,) = scenario.steps
        assert step.do is not None and list(step.do.commands(lambda _: True)) == [command]
        assert "{" not in (step.do.text() if not description.operation else "")
        assert read_scenario(scenario_text(scenario), "t.yaml") == scenario

    is_read()


# HTTP


class AskedFace(SingleMemberFace):
    """Does nothing of what it is asked, and remembers it."""

    async def do(self, command: Command, caller: Any) -> None:
        self.asked.append(command)

    async def reconfigure(self, properties: dict[str, Any], caller: Any) -> None:
        self.asked.append(SetProperties(self.label, properties))

    def shut_down(self, caller: Any, *, whole_cluster: bool = False) -> None:
        self.asked.append(StopMember(self.label))


@pytest.mark.parametrize("description", [param for param in named if param.values[0].http is not None])
def test_the_request_for_a_command_asks_a_member_for_it(description: CommandDescription) -> None:
    face = AskedFace()
    client = Client(Starlette(routes=console_routes(face)))
    members = {label: one._replace(label="n1") for label, one in MEMBERS.items()}

    @settings(max_examples=examples(25))
    @given(commands(description))
    def is_asked(command: Command) -> None:
        if "member" in msgspec.structs.asdict(command):
            command = msgspec.structs.replace(command, member="n1")
        if "addresses" in msgspec.structs.asdict(command):
            command = msgspec.structs.replace(command, addresses=(ADDRESS,))
        if "suspect" in msgspec.structs.asdict(command):
            command = msgspec.structs.replace(command, suspect=ADDRESS)
        for request in requests_for(command, members):
            face.asked.clear()
            answer = client.request(
                request.http.method, f"/quarterdeck/v1{request.http.path}", json=request.http.body or {}
            )
            assert answer.is_success, answer.text
            (asked,) = face.asked
            if description.target in ("links", "groups"):  # each member is told of its part: test_remote_commands
                assert msgspec.to_builtins(asked) == msgspec.to_builtins(request.http.body)
            else:
                assert asked == command

    is_asked()
