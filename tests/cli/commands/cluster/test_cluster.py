"""`quarterdeck cluster` and its kin, as people run them, against members that are only their HTTP faces."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import ALL_LOST, Holder, MigrationStarted, PartitionLost
from quarterdeck.backend.member_api.beliefs import Table
from tests.cli.conftest import Quarterdeck
from tests.clusters.remote.fake_members import FakeMember, form, serving


@pytest.fixture
def cities() -> Iterator[tuple[FakeMember, FakeMember]]:
    members = FakeMember("athens"), FakeMember("byzantium")
    form(*members)
    with serving(*members):
        yield members


def configure(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "config" / "quarterdeck" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return file


def rows(done: subprocess.CompletedProcess[str]) -> list[Any]:
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_status_says_whether_the_members_agree(
    quarterdeck_process: Quarterdeck, cities: tuple[FakeMember, ...]
) -> None:
    athens, byzantium = cities
    done = quarterdeck_process("cluster", "status", "--connect", athens.url, "-o", "json", "--check")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["agreed"] is True
    assert told["sentence"].startswith("healthy · 2 members agree · ")
    assert (told["whole"], told["data_lost"]) == (True, None) and "data_safe" in told
    assert told["masters"] == ["athens"]
    assert told["lists"] == [
        {"version": 2, "master": "athens", "members": ["athens", "byzantium"], "held_by": ["athens", "byzantium"]}
    ]
    byzantium.vanish()
    done = quarterdeck_process("cluster", "status", "--connect", athens.url, "-o", "json", "--check")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["unreached"] == [byzantium.address]
    assert told["sentence"].startswith(f"degraded · {byzantium.address} gone") and told["whole"] is False


def test_members_are_rows_and_who_is_not_reached_is_one_too(
    quarterdeck: Quarterdeck, cities: tuple[FakeMember, ...]
) -> None:
    athens, byzantium = cities
    byzantium.vanish()
    told = rows(quarterdeck("cluster", "members", "--connect", athens.address, "-o", "json"))
    assert [(row["member"], row["reached"]) for row in told] == [("athens", True), (byzantium.address, False)]
    assert told[0]["master"] == "athens"
    assert told[1]["why"]


def test_nobody_there_is_exit_code_3(quarterdeck: Quarterdeck) -> None:
    nobody = FakeMember("nobody")
    for arguments in (
        ["cluster", "members", "--connect", nobody.url],
        ["cluster", "kill", "athens", "--connect", nobody.url],
        ["map", "size", "--url", nobody.url],
    ):
        done = quarterdeck(*arguments)
        assert done.returncode == 3, done.stderr
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["cluster", "status"], "which cluster? give --connect URL of a member, or --cluster NAME"),
        (["cluster", "status", "--connect", "http://a/b"], "something after the port"),
        (["cluster", "status", "--connect", "http://hugo:secret@a:1"], "has a name or password in it"),
        (["cluster", "status", "--cluster", "orders"], "config.yaml has none"),
        (
            ["cluster", "status", "--connect", "a", "--password-file", "/no/such"],
            "--password-file: /no/such: No such file",
        ),
        (["cluster", "fault", "explode", "--connect", "a"], "there is no fault 'explode'"),
        (["cluster", "state", "sleepy", "--connect", "a"], "there is no state 'sleepy'"),
        (["console", "--write"], "--write is for a running cluster"),
        (["console", "--connect", "a"], "no terminal here"),
    ],
)
def test_bad_input_is_one_line_and_code_2(quarterdeck: Quarterdeck, arguments: list[str], told: str) -> None:
    done = quarterdeck(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert "secret" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_profile_says_all_of_it(quarterdeck: Quarterdeck, cities: tuple[FakeMember, ...], tmp_path: Path) -> None:
    athens, byzantium = cities
    for city in cities:
        city.authorization = "Bearer open-sesame"
    (tmp_path / "token").write_text("open-sesame\n")
    configure(
        tmp_path,
        f"clusters:\n  - label: orders\n    urls: [{athens.address}]\n    environment: PROD\n    read-only: true\n"
        "    token-file: ~/token\n",
    )
    done = quarterdeck("cluster", "status", "--cluster", "orders", "-o", "json")
    assert json.loads(done.stdout)["environment"] == "PROD"
    done = quarterdeck("cluster", "kill", "byzantium", "--cluster", "orders")
    assert (done.returncode, byzantium.asked) == (4, [])
    assert "the profile of orders is read-only" in done.stderr
    done = quarterdeck("console", "--cluster", "orders", "--write")
    assert done.returncode == 4
    done = quarterdeck("cluster", "status", "--connect", athens.url)
    assert done.returncode == 4
    assert "who are you?" in done.stderr
    done = quarterdeck("cluster", "status", "--connect", athens.url, QUARTERDECK_TOKEN="open-sesame")
    assert done.returncode == 0, done.stderr


PROFILE = "clusters:\n  - label: a\n    urls: [b]\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("clusters:\n  - label: a\n", "config.yaml:2: clusters[1].urls: is missing"),
        (
            f"{PROFILE}    read-onli: true\n",
            ":4: clusters[1].read-onli: there is no such field; did you mean read-only?",
        ),
        ("clusters:\n  - label: a\n    urls: ['http://b/c']\n", ":3: clusters[1].urls: 'http://b/c' has something"),
        (f"{PROFILE}  - {{label: a, urls: [c]}}\n", ":4: clusters[2].label: 'a' is the label of another"),
        ("cluster: []\n", ":1: cluster: there is no such field; did you mean clusters?"),
        ("- a\n", "is no configuration"),
    ],
)
def test_what_is_wrong_with_a_profile_is_said_with_file_line_and_field(
    quarterdeck: Quarterdeck, tmp_path: Path, text: str, told: str
) -> None:
    file = configure(tmp_path, text)
    done = quarterdeck("cluster", "status", "--cluster", "a")
    assert done.returncode == 2
    assert str(file) in done.stderr
    assert told in done.stderr


def test_join_lists_are_read_and_set(quarterdeck: Quarterdeck, cities: tuple[FakeMember, ...]) -> None:
    athens, byzantium = cities
    told = rows(quarterdeck("cluster", "join-list", "get", "--connect", athens.url, "-o", "json"))
    assert [row["join_list"] for row in told] == [["athens", "byzantium"]] * 2
    done = quarterdeck("cluster", "join-list", "set", "athens", "10.0.0.1:5701", "--connect", byzantium.url)
    assert done.returncode == 0, done.stderr
    assert athens.asked == [("PUT", "/join-list", {"addresses": [athens.address, "10.0.0.1:5701"]})]
    byzantium.install(3, (byzantium,))
    done = quarterdeck("cluster", "join-list", "set", "athens", "--connect", athens.url)
    assert done.returncode == 2
    assert "several clusters, led by athens, byzantium" in done.stderr
    done = quarterdeck("cluster", "join-list", "set", "athens", "--connect", athens.url, "--member", "byzantium")
    assert byzantium.asked == [("PUT", "/join-list", {"addresses": [athens.address]})]


def test_states_and_faults(quarterdeck: Quarterdeck, cities: tuple[FakeMember, ...]) -> None:
    athens, byzantium = cities
    told = rows(quarterdeck("cluster", "state", "--connect", athens.url, "-o", "json"))
    assert [row["cluster_state"] for row in told] == ["ACTIVE", "ACTIVE"]
    assert quarterdeck("cluster", "state", "frozen", "--connect", athens.url).returncode == 0
    assert athens.asked.pop() == ("POST", "/state", {"state": "FROZEN"})
    assert quarterdeck("cluster", "fault", "partition", "athens", "|", "byzantium", "--url", athens.url).returncode == 0
    assert quarterdeck("cluster", "fault", "delay", "athens", "byzantium", "50ms", "--url", athens.url).returncode == 0
    assert [body["do"] for _, _, body in athens.asked] == ["cut", "delay"]
    assert quarterdeck("cluster", "kill", "byzantium", "--url", athens.url).returncode == 0
    assert byzantium.asked[-1][:2] == ("POST", "/faults/kill")
    byzantium.replies["POST", "/faults/pause"] = (403, {"message": "this member was started without --allow-faults"})
    done = quarterdeck("cluster", "fault", "pause", "byzantium", "--url", athens.url)
    assert (done.returncode, done.stdout) == (4, "")
    assert "without --allow-faults" in done.stderr
    assert quarterdeck("cluster", "fault", "resume", "byzantium", "--url", athens.url).returncode == 0
    athens.replies["GET", "/table"] = (400, {"message": "from: is no number\x1b[2J", "hint": ""})
    done = quarterdeck("cluster", "table", "--url", athens.url)
    assert done.returncode == 2
    assert "from: is no number\N{REPLACEMENT CHARACTER}[2J" in done.stderr
    done = quarterdeck("cluster", "table", "--from", "3", "--to", "1", "--url", athens.url)
    assert (done.returncode, done.stderr) == (2, "quarterdeck: --to 1: is before --from 3\n")
    done = quarterdeck("cluster", "fault", "cut", "athens", "sparta", "--url", athens.url)
    assert done.returncode == 2
    assert "there is no member 'sparta'" in done.stderr


def test_tables_suspicions_migrations_and_reasons_have_names(
    quarterdeck: Quarterdeck, cities: tuple[FakeMember, ...]
) -> None:
    athens, byzantium = cities
    holders = tuple(Holder(city.address, city.uuid) for city in cities)
    content = Table(7, "ab", 3, 2, holders, ((0, 1, 0, 1), (1, 1, 1, -1), (2, 1, 0, -1)), None)
    athens.replies["GET", "/table"] = byzantium.replies["GET", "/table"] = (200, content)
    told = rows(quarterdeck("cluster", "table", "--connect", athens.url, "-o", "json"))
    assert told[1] == {"partition": 1, "version": 1, "replicas": ["byzantium", None]}
    (row,) = rows(quarterdeck("cluster", "owner", "orders", "17", "--connect", athens.url, "-o", "json"))
    assert (row["master"], row["owner"]) == ("athens", told[row["partition"]]["replicas"][0])
    reason = f"no heartbeat of {byzantium.address}"
    athens.happen(events.SuspicionRaised(byzantium.address, byzantium.uuid, reason))
    (row,) = rows(quarterdeck("cluster", "suspicions", "--connect", athens.url, "-o", "json"))
    assert (row["observer"], row["about"], row["reason"]) == ("athens", "byzantium", "no heartbeat of byzantium")
    places = (byzantium.address, 0, -1, athens.address, -1, 0, byzantium.address)
    athens.happen(MigrationStarted("m1", 3, "MOVE", 1, *places, available=2, replicas_wanted=2, unavoidable=False))
    (row,) = rows(quarterdeck("cluster", "migrations", "--connect", athens.url, "-o", "json"))
    assert (row["state"], row["source"], row["destination"]) == ("copying", "byzantium", "athens")
    athens.happen(events.NotMerging(f"{byzantium.address} is silent"))
    (row,) = rows(quarterdeck("cluster", "why", "--connect", athens.url, "-o", "json"))
    assert (row["member"], row["sentence"], row["remedy"]) == ("athens", "byzantium is silent", None)
    assert (row["obstacles"], row["master"]) == (
        [{"remote": None, "reason": f"{byzantium.address} is silent", "cause": "unknown", "silent": []}],
        "athens",
    )
    assert row["verdicts"] == [] and row["delay"] is None


def test_a_member_that_has_lost_its_beginning_still_says_where_it_stands(
    quarterdeck: Quarterdeck, cities: tuple[FakeMember, ...]
) -> None:
    athens, byzantium = cities
    athens.happen(events.SuspicionRaised(byzantium.address, byzantium.uuid, "no heartbeat"))
    athens.lost_before = 2
    (row,) = rows(quarterdeck("cluster", "why", "--connect", athens.url, "-o", "json"))
    assert (row["member"], row["is_master"], row["join_list"]) == ("athens", True, athens.join_list)
    (row,) = rows(quarterdeck("cluster", "suspicions", "--connect", athens.url, "-o", "json"))
    assert (row["observer"], row["about"]) == ("athens", "byzantium")


def test_watch_prints_records_of_all_members(quarterdeck: Quarterdeck, cities: tuple[FakeMember, ...]) -> None:
    athens, byzantium = cities
    athens.happen(events.SuspicionRaised(byzantium.address, byzantium.uuid, "no heartbeat"))
    done = quarterdeck("cluster", "watch", "--connect", athens.url, "--limit", "5", "-o", "jsonl")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert len(told) == 5
    assert {row["member"] for row in told} == {"athens", "byzantium"}
    assert "athens is connected" in done.stderr
    done = quarterdeck("cluster", "watch", "--connect", athens.url, "--limit", "5")
    assert "suspects byzantium: no heartbeat" in done.stdout
    athens.happen(PartitionLost(7, ALL_LOST))
    done = quarterdeck("cluster", "watch", "--connect", athens.url, "--new", "--for", "0.5")
    assert (done.returncode, done.stdout) == (0, "")
    assert re.search(r"maybe lost 1 partition, \d+ s ago", done.stderr)


def test_maps_of_a_running_cluster(quarterdeck: Quarterdeck, cities: tuple[FakeMember, ...]) -> None:
    athens, _ = cities
    athens.replies["GET", "/maps/default/fr"] = (200, {"key": "fr", "found": True, "value": "paris"})
    athens.replies["PUT", "/maps/default/fr"] = (409, {"status": "fail", "message": "too few members", "hint": ""})
    done = quarterdeck("map", "get", "fr", "--url", athens.url)
    assert json.loads(done.stdout)["value"] == "paris", done.stderr
    done = quarterdeck("map", "put", "fr", "lyon", "--url", athens.url)
    assert done.returncode == 1
    assert json.loads(done.stdout)["problem"] == "too few members"
    athens.replies["GET", "/maps/default/fr"] = (403, {"status": "fail", "message": "not for you", "hint": ""})
    done = quarterdeck("map", "get", "fr", "--url", athens.url)
    assert (done.returncode, done.stdout) == (4, "")
