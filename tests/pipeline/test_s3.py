"""Journals, tables, members' logs and what an audit writes in S3: moto's server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.pipeline.journal_builder import JournalBuilder, clean_story, write
from tests.pipeline.s3_bucket import s3_bucket

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

REPOSITORY = Path(__file__).parents[2]
LOGS = REPOSITORY / "tests" / "hazelcast" / "logs" / "data" / "flapping"
CONF = """\
spark.hadoop.fs.s3a.endpoint {endpoint}
spark.hadoop.fs.s3a.endpoint.region us-east-1
spark.hadoop.fs.s3a.path.style.access true
spark.hadoop.fs.s3a.access.key test
spark.hadoop.fs.s3a.secret.key test
"""
PROGRAM = """
import json
import msgspec
import pyarrow.parquet
import quarterdeck
from quarterdeck.backend.pipeline.address import address_of
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.metrics.measuring import measure
from quarterdeck.backend.pipeline.spark.session import spark_session
from quarterdeck.backend.pipeline.tables.store import update_store

journals, tables, out, logs = (f"s3a://bucket/{name}" for name in ("journals", "tables", "audit", "logs"))
with spark_session() as spark:
    found = {
        "first": update_store([journals], tables),
        "again": update_store([journals], tables),
        "journals": audit([journals], out),
        "on spark": audit([journals], spark=spark).findings,
        "logs": audit([logs]),
        "tables": audit([tables]),
        "metrics": measure([tables], "all").rows == measure([journals], "all").rows,
        "views": spark.table(quarterdeck.spark.register(spark, tables)[0]).count(),
        "written": sum(
            pyarrow.parquet.read_metadata(file.place.open()).num_rows for file in address_of(f"{out}/findings").files()
        ),
    }
print(json.dumps(msgspec.to_builtins(found)))
"""


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    broken = JournalBuilder("broken")
    broken.installs("a1", "one/1", 2, "a1 b1")
    broken.installs("b1", "one/1", 2, "a1 b1 c1")
    return write(tmp_path / "journals", broken, clean_story("calm"))


@pytest.fixture
def environment(journal: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """That of a program whose Spark finds a bucket with the journal in it."""
    with s3_bucket() as (endpoint, bucket):
        for file in journal.rglob("*.jsonl"):
            bucket.put_object(Key=f"journals/{file.relative_to(journal)}", Body=file.read_bytes())
        for file in LOGS.glob("*.log"):
            bucket.put_object(Key=f"logs/{file.name}", Body=file.read_bytes())
        (tmp_path / "spark-defaults.conf").write_text(CONF.format(endpoint=endpoint))
        yield {**os.environ, "SPARK_CONF_DIR": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}


def found_in(environment: dict[str, str], folder: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_what_is_read_and_written_in_s3(environment: dict[str, str], journal: Path, tmp_path: Path) -> None:
    found, here = found_in(environment, tmp_path), audit([journal])
    assert (found["first"]["files_read"], found["first"]["runs"]) == (2, ["broken", "calm"])
    assert (found["again"]["files_read"], found["again"]["files_known"]) == (0, 2)
    assert found["journals"]["counts"] == here.counts
    assert [finding["detail"] for finding in found["tables"]["findings"]] == [
        finding.detail for finding in here.findings
    ]
    assert [finding["detail"] for finding in found["on spark"]] == [finding.detail for finding in here.findings]
    assert found["metrics"]
    of_logs = audit([LOGS])
    assert found["logs"]["counts"] == of_logs.counts
    assert [observation["headline"] for observation in found["logs"]["observations"]] == [
        seen.headline for seen in of_logs.observations
    ]
    assert (found["views"], found["written"]) == (here.counts["records"], len(here.findings))


WRITE = "import sys; from quarterdeck.backend.pipeline.tables.store import update_store; update_store(sys.argv[2:], sys.argv[1])"
COUNT = """
import json
import msgspec
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.tables.store import update_store
again = update_store(["s3a://bucket/journals"], "s3a://bucket/both")
print(json.dumps([again.tables, again.files_read, audit(["s3a://bucket/both"]).counts]))
"""


def test_several_writers_at_once_in_s3(environment: dict[str, str], journal: Path, tmp_path: Path) -> None:
    def python(*arguments: str) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([sys.executable, "-c", *arguments], env=environment, cwd=tmp_path, **pipes)  # type: ignore[call-overload, no-any-return]

    journals = [f"s3a://bucket/journals/run={run}" for run in ("broken", "calm", "calm")]
    writers = [python(WRITE, "s3a://bucket/both", path) for path in journals]
    for writer in writers:
        _, problem = writer.communicate()
        assert writer.returncode == 0, problem
    checked, problem = (reader := python(COUNT)).communicate()
    assert reader.returncode == 0, problem
    tables, files_read, counts = json.loads(checked)
    here = update_store([journal], tmp_path / "here")
    assert (tables, files_read) == (here.tables, 0)
    assert counts["records"] == audit([journal]).counts["records"]
