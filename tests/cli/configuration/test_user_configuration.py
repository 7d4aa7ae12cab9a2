"""The section `console:` of the configuration file, and `quarterdeck keys` and `paths`, which tell what came of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck.app.console_state import ConsoleSettings
from quarterdeck.backend.documents.yaml_document import BadDocument
from quarterdeck.cli.configuration.user_configuration import UserConfiguration
from tests.cli.conftest import Quarterdeck

WHOLE = """\
clusters:
  - label: orders
    urls: [http://a:5701]
console:
  theme: high-contrast
  mouse: off
  clock: utc
  keys:
    kill: ctrl+k
    stop: [x, delete]
    screenshot: []
    overview: [1, /]
    filter: f3
  aliases:
    halves: :partition athens,byzantium|cyrene
"""


def configured(tmp_path: Path, text: str) -> UserConfiguration:
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return UserConfiguration(file)


def test_everything_in_it_is_read(tmp_path: Path) -> None:
    configuration = configured(tmp_path, WHOLE)
    assert list(configuration.profiles) == ["orders"]
    assert configuration.console() == ConsoleSettings(
        theme="high-contrast",
        mouse=False,
        clock="utc",
        keys={"kill": "ctrl+k", "stop": "x,delete", "screenshot": "", "overview": "1,slash", "filter": "f3"},
        aliases={"halves": "partition athens,byzantium|cyrene"},
    )


@pytest.mark.parametrize("text", ["", "console:\n", "console: {}\n", "clusters: []\n"])
def test_without_it_there_are_defaults(tmp_path: Path, text: str) -> None:
    assert configured(tmp_path, text).console() == ConsoleSettings()
    assert UserConfiguration(tmp_path / "nowhere.yaml").console() == ConsoleSettings()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("console:\n  them: dark\n", ":2: console.them: there is no such field; did you mean theme?"),
        ("console: [dark]\n", ":1: console: ['dark'] does not fit here; write fields"),
        ("console:\n  theme: drak\n", ":2: console.theme: there is no theme 'drak'; themes are dark, light"),
        ("console:\n  mouse: perhaps\n", ":2: console.mouse: 'perhaps' does not fit here"),
        ("console:\n  clock: moon\n", ":2: console.clock: 'moon' is not known here; write 'auto', 'run' or 'utc'"),
        ("console:\n  keys:\n    kil: z\n", ":3: console.keys.kil: there is no such action; did you mean kill?"),
        ("console:\n  keys:\n    kill: x\n", ":3: console.keys.kill: x is the key of 'stop' already"),
        ("console:\n  keys:\n    stop: f2\n    kill: shift+k\n", ":4: console.keys.kill[1]: 'shift+k' never arrives"),
        ("console:\n  keys:\n    kill: [z, ctrl+q]\n", ":3: console.keys.kill: ^q leaves the console"),
        ("console:\n  keys:\n    kill: {a: b}\n", "console.keys.kill[1]"),
        ("console:\n  aliases:\n    stop: kill\n", ":3: console.aliases.stop: stop is a command already"),
        ("console:\n  aliases:\n    k9: kll athens\n", ":3: console.aliases.k9: 'kll' is not a command"),
        ("console:\n  aliases:\n    a b: help\n", ":3: console.aliases.a b: 'a b' is not a word"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_field(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadDocument) as caught:
        configured(tmp_path, text).console()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_alias_is_spelt_out() -> None:
    settings = ConsoleSettings(aliases={"halves": "partition a|b", "k": "kill"})
    assert settings.expand_alias("halves") == "partition a|b"
    assert settings.expand_alias("k athens") == "kill athens"
    assert settings.expand_alias("kill k") == "kill k"


def configure(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "config" / "quarterdeck" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_a_bad_section_stops_the_console_and_nothing_else(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file = configure(tmp_path, "console:\n  theme: drak\n")
    for command in (["console", "--members", "1"], ["keys"]):
        done = quarterdeck(*command)
        assert done.returncode == 2
        assert f"{file}:2: console.theme: there is no theme 'drak'" in done.stderr
        assert done.stderr.count("\n") == 1
    assert quarterdeck("paths").returncode == 0


def test_keys_are_listed_as_they_are(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    configure(tmp_path, "console:\n  keys:\n    kill: ctrl+k\n")
    done = quarterdeck("keys", "-o", "json")
    assert done.returncode == 0, done.stderr
    rows = {row["action"]: row for row in json.loads(done.stdout)}
    assert (rows["kill"]["keys"], rows["kill"]["changed"]) == ("^k", True)
    assert (rows["stop"]["keys"], rows["stop"]["changed"]) == ("x", False)
    assert quarterdeck("keys").stdout.splitlines()[0].split() == [
        "action",
        "keys",
        "views",
        "group",
        "meaning",
        "changed",
        "words",
    ]


def test_paths_name_everything_that_is_kept(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    done = quarterdeck("paths", "-o", "json")
    places = {row["what"]: row["path"] for row in json.loads(done.stdout)}
    assert set(places) >= {"config", "configuration file", "state", "console state", "journals", "cache"}
    assert all(path.startswith(str(tmp_path)) for path in places.values())
