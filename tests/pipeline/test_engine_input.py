"""Journals under addresses: only the engine reads them, and the audit says what it says of the same files on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.metrics.measuring import measure
from tests.pipeline.journal_builder import clean_story, line
from tests.pipeline.rules.broken_journals import broken
from tests.pipeline.rules.test_planted import write_run

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "journals of [today]"
    for seed in range(4):
        write_run(root, f"run-{seed}", broken(seed))
    records = clean_story("split").records
    (root / "one-000001.jsonl").write_bytes(b"".join(map(line, records[:7])) + b"torn")
    (root / "run=split").mkdir()
    (root / "run=split" / "two-000001.jsonl").write_bytes(b"".join(map(line, records[7:])))
    return root


def test_what_the_engine_reads_is_judged_alike(spark: SparkSession, root: Path) -> None:
    """One of the runs stands in two places: its parts come together."""
    here, there = audit([root]), audit([f"file://{root}"])
    assert [msgspec.structs.replace(one, link="") for one in here.findings] == list(there.findings)
    assert there.findings
    assert (there.counts, there.incomplete) == (here.counts, here.incomplete)
    assert [(one.line, one.reason, one.number) for one in there.problems] == [
        (one.line, one.reason, one.number) for one in here.problems
    ]
    assert there.problems[0].file.startswith("file:/")


def test_what_the_engine_reads_is_measured_alike(spark: SparkSession, root: Path) -> None:
    assert measure([f"file://{root}"], "all") == measure([root], "all")


S3_CONF = """\
spark.jars {jars}
spark.hadoop.fs.s3a.endpoint http://127.0.0.1:{port}
spark.hadoop.fs.s3a.endpoint.region us-east-1
spark.hadoop.fs.s3a.path.style.access true
spark.hadoop.fs.s3a.access.key test
spark.hadoop.fs.s3a.secret.key test
"""


@pytest.mark.long
def test_a_journal_in_s3_is_audited(root: Path, tmp_path: Path) -> None:
    """Against moto's server, through Hadoop's S3A. It takes 700 MB of jars: `hadoop-aws` and what it needs, in one folder."""
    folder = os.environ.get("QUARTERDECK_S3_JARS")
    if not folder:
        pytest.skip("QUARTERDECK_S3_JARS names no folder with the jar hadoop-aws and those that it needs")
    moto, boto3 = pytest.importorskip("moto.server"), pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        port = server.get_host_and_port()[1]
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        bucket = boto3.resource("s3", endpoint_url=f"http://127.0.0.1:{port}", **keys).create_bucket(Bucket="journals")
        for file in root.rglob("*.jsonl"):
            bucket.put_object(Key=f"prod/{file.relative_to(root)}", Body=file.read_bytes())
        jars = ",".join(map(str, sorted(Path(folder).glob("*.jar"))))
        (tmp_path / "spark-defaults.conf").write_text(S3_CONF.format(jars=jars, port=port))
        program = "import sys; from quarterdeck.backend.pipeline.audit import audit; print(audit(sys.argv[1:]).counts)"
        done = subprocess.run(
            [sys.executable, "-c", program, "s3a://journals/prod"],
            env={**os.environ, "SPARK_CONF_DIR": str(tmp_path)},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        server.stop()
    assert done.stdout.strip() == str(audit([root]).counts)


def test_an_address_without_a_journal_is_told(spark: SparkSession, tmp_path: Path, root: Path) -> None:
    with pytest.raises(NoJournal, match="nothing is there that Spark can read"):
        audit([f"file://{tmp_path}/nowhere"])
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "note.txt").write_text("nothing")
    with pytest.raises(NoJournal, match="holds no journal"):
        audit([f"file://{tmp_path}/empty"])
    with pytest.raises(NoJournal, match="cannot be read together"):
        audit([root, f"file://{root}"])
