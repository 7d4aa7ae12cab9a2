"""`quarterdeck cluster` and `record` on members of Hazelcast: the same rows as for ours, null for what is not reported."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import typer.main

from quarterdeck.backend.clusters.recorded.recorded_cluster import RecordedCluster
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.cli.exits import CommandFailed, ExitCode
from quarterdeck.cli.main import app
from tests.clusters.hazelcast.fake_cluster import FakeCluster, fake_cluster
from tests.hazelcast.wire.fake_member import agree

PROGRAM = typer.main.get_command(app)


def run(members: FakeCluster, *words: str) -> None:
    PROGRAM([*words, "--connect", f"hazelcast://{members.addresses[0]}"], standalone_mode=False)


def told(capsys: pytest.CaptureFixture[str], members: FakeCluster, *words: str) -> Any:
    run(members, "cluster", *words, "-o", "json")
    return json.loads(capsys.readouterr().out)


def test_an_accepted_size_is_kept_in_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "size"
    with fake_cluster(2) as members:
        with pytest.raises(CommandFailed) as unkept:
            run(members, "cluster", "expect", "1")
        assert unkept.value.exit_code == ExitCode.BAD_INPUT
        run(members, "cluster", "expect", "1", "--size-file", str(file))
        assert file.read_text() == "1\n"
        file.write_text("some\n")
        with pytest.raises(CommandFailed) as unreadable:
            run(members, "cluster", "status", "--size-file", str(file))
        assert unreadable.value.exit_code == ExitCode.BAD_INPUT
        file.write_text("4\n")
        status = told(capsys, members, "status", "--size-file", str(file))
        assert status["watched_seconds"] is not None, "who was there before is not known"
        conclusions = {conclusion["question"]: conclusion for conclusion in status["conclusions"]}
        assert conclusions["one-cluster"]["answer"] == "yes"
        assert conclusions["lists-agree"]["evidence"][0]["of"] == list(members.addresses)


def test_questions_are_answered_as_by_members_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_cluster(2) as members:
        a, b = members.addresses
        status = told(capsys, members, "status")
        assert (status["agreed"], status["masters"], status["states"]) == (True, [a], {"ACTIVE": 2})
        assert status["sentence"] == "healthy · 2 members agree · backups unknown"
        assert (status["whole"], status["data_safe"], status["data_lost"]) == (True, None, None)
        run(members, "cluster", "status", "--check")
        assert capsys.readouterr().out.startswith("healthy · 2 members agree · backups unknown\n")
        assert status["tables"][0]["version"] is None
        assert sorted(status["tables"][0]["held_by"]) == sorted((a, b))
        assert {row["member"]: row["list_version"] for row in told(capsys, members, "lists")} == {a: 1, b: 1}
        assert {row["cluster_state"] for row in told(capsys, members, "state")} == {"ACTIVE"}
        stored = {"map.ownedEntryCount#orders": 5, "map.getCount#orders": 9, "map.hits#orders": 9}
        members.members[0].metrics |= {"memory.usedHeap": 38_000_000, **stored}
        rows = told(capsys, members, "members")
        assert {row["node_state"] for row in rows} == {None}
        heaps = {row["member"]: row["metrics"]["heap_used_bytes"] for row in rows}
        assert heaps == {a: 38_000_000, b: None}, "what is not reported is no 0"
        data = {row["member"]: row["data"] for row in rows}
        assert data[b] is None and data[a]["maps"][0]["map"] == "orders"
        assert (data[a]["entries"], data[a]["reads_per_second"], data[a]["hits_per_second"]) == (5, None, None)
        table = told(capsys, members, "table", "--to", "1")
        assert [(row["version"], row["replicas"]) for row in table] == [(None, [a]), (None, [b])]
        assert told(capsys, members, "why-not-merging")[0]["obstacles"] is None
        with pytest.raises(CommandFailed) as refused:
            run(members, "cluster", "status", "--cluster-name", "other")
        assert refused.value.exit_code == ExitCode.REFUSED
        assert {row["reason"] for row in told(capsys, members, "suspicions")} == {"not reported: give logs with --logs"}
        (row,) = told(capsys, members, "migrations")
        assert (row["leader"], row["state"], row["partition"]) == (a, None, None)
        with pytest.raises(CommandFailed, match="cannot be asked this"):
            run(members, "cluster", "fork", "--out", "copy")


def test_a_member_on_no_list_whose_host_refuses_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_cluster(3) as members:
        a, b, killed = members.members
        for member in (a, b):
            member.join_list = members.addresses
        members.do(lambda: agree([a, b], 2))
        members.stop(killed)
        status = told(capsys, members, "status")
        assert (status["agreed"], status["unreached"], status["whole"]) == (True, [], True)
        *_, row = told(capsys, members, "members")
        assert (row["member"], row["why"]) == (killed.address, "no process listens there")
        (why,) = told(capsys, members, "why-not-merging")
        assert "is not known" not in why["sentence"] and why["remedy_lines"] == []


def test_a_state_is_changed(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_cluster(1) as members:
        run(members, "cluster", "state", "FROZEN")
        assert members.members[0].state.state == "FROZEN"


def test_which_member_owns_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_cluster(2) as members:
        a = members.addresses[0]
        (row,) = told(capsys, members, "owner", "orders", "17")
        assert (row["map"], row["key"], row["master"]) == ("orders", "17", a)
        (shown,) = told(capsys, members, "table", "--from", str(row["partition"]), "--to", str(row["partition"]))
        assert [row["owner"]] == shown["replicas"]
        (number,) = told(capsys, members, "owner", "orders", "17", "int")
        assert number["partition"] != row["partition"]
        for wrong in (("17", "float"), ("x", "int")):
            with pytest.raises(CommandFailed) as refused:
                run(members, "cluster", "owner", "orders", *wrong)
            assert refused.value.exit_code == ExitCode.BAD_INPUT


def test_all_members_are_stopped_only_by_who_names_the_cluster(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_cluster(1) as members:
        stop = ("cluster", "do", "stop-cluster", members.addresses[0])
        monkeypatch.setattr("sys.stdin", io.StringIO("dev"))
        with pytest.raises(CommandFailed, match="with --confirm dev") as unasked:
            run(members, *stop)
        assert unasked.value.exit_code == ExitCode.BAD_INPUT
        with pytest.raises(CommandFailed, match="nothing was done"):
            run(members, *stop, "--confirm", "prod")
        run(members, *stop, "--confirm", "dev")
        assert "done" in capsys.readouterr().err


def test_what_is_recorded_is_a_journal(tmp_path: Path) -> None:
    with fake_cluster(2) as members:
        run(members, "record", "--out", str(tmp_path), "--for", "1")
    recorded = RecordedCluster(tmp_path)
    records = recorded.drain()
    assert {record.member for record in records if isinstance(record.event, ListInstalled)} == set(members.addresses)
    assert not list((tmp_path / "_open").iterdir())
