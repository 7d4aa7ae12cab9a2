"""`quarterdeck cluster fork`: a copy on disk that the console goes on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck.backend.clusters.simulated.copied_cluster import SNAPSHOT_FILE, BadCopy, CopiedCluster, read_copy
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.live.cluster.local_clusters import ProcessCluster
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.cli.commands.console import simulated_cluster
from quarterdeck.cli.commands.recording import RecordingTarget
from quarterdeck.cli.exits import CommandFailed
from tests.cli.conftest import Quarterdeck
from tests.clusters.recorded.test_recorded_cluster import read
from tests.ports import take_ports

PORT = take_ports(20)


def test_a_running_cluster_is_copied_and_gone_on_with(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    members = ProcessCluster(2, settings=Settings.of(preset="training"), base_port=PORT)
    out = tmp_path / "copy"
    try:
        members.started.result(20)
        done = quarterdeck("cluster", "fork", "--connect", f"http://127.0.0.1:{PORT}", "--out", out)
        again = quarterdeck("cluster", "fork", "--connect", f"http://127.0.0.1:{PORT}", "--out", out)
    finally:
        members.close()
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["not_told"] == {} and sorted(told["members"]) == ["n1", "n2"] and told["records"] > 5
    assert again.returncode == 2 and "exists already" in again.stderr

    recorded, _ = RecordingTarget(out).opened()
    assert len(read(recorded)) == told["records"] and recorded.run == told["run"]

    copy = simulated_cluster(out, None, None)
    assert isinstance(copy, CopiedCluster)
    picture = Picture()
    try:
        for record in (*copy.drain(), *copy.drain()):
            picture.apply(record)
        assert picture.masters() == ("n1",) and len(picture.members["n2"].members) == 2
        assert copy.now_us() >= read_copy(out).at_us > 0
        assert copy.snapshot_taken.at_us == round(told["at_seconds"] * SECOND_US)
        assert "a copy of dev" in "\n".join(copy.notes())
    finally:
        copy.close()


def test_where_nobody_is_reached_nothing_is_written(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    done = quarterdeck("cluster", "fork", "--connect", "http://127.0.0.1:1", "--out", out)
    assert done.returncode == 3 and not out.exists()


def test_what_is_no_copy_is_refused(tmp_path: Path) -> None:
    (tmp_path / SNAPSHOT_FILE).write_bytes(b"\x80\x04\x95pickle")
    with pytest.raises(BadCopy, match="not a snapshot of this version"):
        read_copy(tmp_path)
    with pytest.raises(CommandFailed, match=r"--simulate: .*not a snapshot"):
        simulated_cluster(tmp_path, None, None)
