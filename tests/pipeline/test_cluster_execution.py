"""Audit, tables and metrics find on a standalone cluster and through Spark Connect what they find on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from quarterdeck.backend.pipeline.tables.batches import SCHEMAS
from tests.pipeline.journal_builder import JournalBuilder, write
from tests.pipeline.spark.local_clusters import clean_environment, connect_server, standalone, worker_python
from tests.pipeline.tables.golden_runs import canonical, golden_records, write_records

REPOSITORY = Path(__file__).parents[2]
LOGS = REPOSITORY / "tests" / "hazelcast" / "logs" / "data"

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

FIND = """
import json, sys
from pathlib import Path
import msgspec
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.metrics.measuring import measure
from quarterdeck.backend.pipeline.spark.session import spark_session
from quarterdeck.backend.pipeline.tables.store import update_store

root, logs, out, where = *map(Path, sys.argv[1:4]), {sys.argv[4]: sys.argv[5]}
with spark_session(**where) as spark:
    found = {
        "audit": audit([root], out / "audit", **where),
        "audit of logs": audit([logs], **where),
        "tables": update_store([root], out / "tables"),
        "tables again": update_store([root], out / "tables"),
        "metrics": measure([root], "scenario", **where),
        "metrics of tables": measure([out / "tables"], "settings", **where),
        "splits": measure([root], "run", "splits", **where),
    }
print(json.dumps(msgspec.to_builtins(found, enc_hook=str)))
"""


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A split brain, a run in which two lists bear one version, and a line that is no record."""
    root = write_records(tmp_path_factory.mktemp("elsewhere") / "journal", golden_records()["halves-seed-1"])
    broken = JournalBuilder("broken")
    broken.installs("a1", "one/1", 2, "a1 b1")
    broken.installs("b1", "one/1", 2, "a1 b1 c1")
    write(root, broken)
    (root / "loose.jsonl").write_bytes(b"torn\n")
    return root


@pytest.fixture(scope="module")
def here(journal: Path) -> dict[str, Any]:
    found = find(journal, journal.parent / "here", clean_environment(), journal.parent, "master", "local[2]")
    assert {finding["run"] for finding in found["audit"]["findings"]} == {"broken"}
    assert found["audit of logs"]["counts"]["views"] > 10
    assert {row["by"] for row in found["metrics"]["rows"]} == {"halves", "broken"}
    (split,) = found["splits"]["rows"]
    assert [side["master"] for side in split["sides"]] == ["a", "d"]
    return found


def find(
    journal: Path, out: Path, environment: Mapping[str, str], cwd: Path, option: str, address: str
) -> dict[str, Any]:
    """What all of them find, and the rows of the tables that they write."""
    done = subprocess.run(
        [sys.executable, "-c", FIND, str(journal), str(LOGS), str(out), option, address],
        env={**environment, "PYTHONPATH": str(REPOSITORY)}, cwd=cwd, capture_output=True,
        text=True, timeout=400, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    kept = {f"tables/{name}": name for name in SCHEMAS} | {f"audit/{name}": name for name in ("views", "findings")}
    return found | {place: _rows(out / place) for place in kept}


def _rows(table: Path) -> list[bytes]:
    return canonical(pyarrow.dataset.dataset(table).to_table().to_pylist())


def assert_alike(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert {name for name in wanted if found[name] != wanted[name]} == set()


def test_a_standalone_cluster_of_two_workers(tmp_path: Path, journal: Path, here: dict[str, Any]) -> None:
    environment = clean_environment(PYSPARK_PYTHON=str(worker_python(tmp_path)), SPARK_LOCAL_IP="127.0.0.1")
    with standalone(tmp_path) as master:
        assert_alike(find(journal, tmp_path / "out", environment, tmp_path, "master", master), here)


def test_spark_connect(tmp_path: Path, journal: Path, here: dict[str, Any]) -> None:
    pytest.importorskip("grpc")
    worker_python(tmp_path)
    with connect_server(tmp_path) as remote:
        assert_alike(find(journal, tmp_path / "out", clean_environment(), tmp_path, "remote", remote), here)
