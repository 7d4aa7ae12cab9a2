"""What the documents show can be typed: commands and their options exist, curl lines have a path, YAML is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer.main
from ruamel.yaml import YAML

from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.service.configuration.sources import read_member_file
from quarterdeck.cli.main import app
from tests.project.shown_code import (
    DOCUMENTS,
    Shown,
    blocks,
    command_lines,
    quarterdeck_lines,
    words_of,
)

LINES = list(dict.fromkeys(quarterdeck_lines()))
CURL = list(command_lines(re.compile("curl ")))
YAML_BLOCKS = [Shown(document, block) for document in DOCUMENTS for block in blocks(document, "yaml")]
COMMANDS: Any = typer.main.get_command(app)


def test_the_documents_show_something() -> None:
    assert len(LINES) > 60 and len(CURL) > 15 and len(YAML_BLOCKS) > 8


@pytest.mark.parametrize("shown", LINES, ids=str)
def test_commands_exist_and_have_the_options_that_are_shown(shown: Shown) -> None:
    command, arguments = command_of(words_of(shown.text)[1:])
    if command.allow_extra_args or command.context_settings.get("allow_extra_args"):  # it hands them on
        return
    given = positional(command, arguments, shown)
    wanted = [param for param in command.params if param.param_type_name == "argument"]
    most = (
        sum(parameter.nargs for parameter in wanted) if all(parameter.nargs > 0 for parameter in wanted) else len(given)
    )
    assert len(given) <= most, f"{command.name} takes {most} arguments"
    if shown.whole and not inner_commands(command):
        assert len(given) >= sum(parameter.required for parameter in wanted), f"{command.name} needs more arguments"


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that `words` name, and what follows."""
    command = COMMANDS
    while (inner := inner_commands(command)) and words and not words[0].startswith("-"):
        named = {word: found for word in words[0].split("|") if (found := inner.get(word))}
        assert named, f"there is no command {words[0]!r}"
        command, words = next(iter(named.values())), words[1:]
    return command, words


def inner_commands(command: Any) -> dict[str, Any]:
    """Of a group, its commands by name."""
    return getattr(command, "commands", {})


def positional(command: Any, words: list[str], shown: Shown) -> list[str]:
    """What of `words` is no option and no value of one."""
    options = {name: param for param in command.params for name in (*param.opts, *param.secondary_opts)}
    given, waiting = [], False
    for word in words:
        name, has_value, _ = word.partition("=")
        if waiting:
            waiting = False
        elif word.startswith("-") and len(word) > 1:
            if name in ("--help", "-h"):
                continue
            assert name in options, f"{shown}: {command.name} has no option {name}"
            option = options[name]
            waiting = not has_value and not getattr(option, "is_flag", False) and not getattr(option, "count", False)
        else:
            given.append(word)
    return given


@pytest.mark.parametrize("shown", CURL, ids=str)
def test_members_have_the_paths_that_curl_is_shown_to_ask(shown: Shown, paths: list[re.Pattern[str]]) -> None:
    (address,) = [word for word in words_of(shown.text) if word.startswith(("http://", "https://"))]
    path = urlsplit(address).path
    assert any(pattern.fullmatch(path) for pattern in paths), f"no member serves {path}"


@pytest.fixture(scope="module")
def paths() -> list[re.Pattern[str]]:
    from quarterdeck.backend.member_api.answers import ROOT
    from quarterdeck.backend.service.application import OPERATOR_PATHS, ROUTERS

    inner = [ROOT + str(getattr(route, "path", "")) for router in ROUTERS for route in router.routes]
    known = [*(path.path for path in OPERATOR_PATHS), *inner, "/metrics"]
    with_names = [re.sub(r"\{\w+\}", "[^/]+", re.sub(r"\{\w+:\w+\}", ".+", path)) for path in known]
    return [re.compile(path) for path in with_names]


@pytest.mark.parametrize("shown", YAML_BLOCKS, ids=str)
def test_yaml_is_read(shown: Shown, tmp_path: Path) -> None:
    data = YAML(typ="safe").load(shown.text)
    if isinstance(data, dict) and {"hazelcast", "quarterdeck"} & set(data):
        read_member_file(shown.text, "shown", tmp_path)
    elif isinstance(data, dict) and "steps" in data and "title" in data:
        read_scenario(shown.text, "shown")
