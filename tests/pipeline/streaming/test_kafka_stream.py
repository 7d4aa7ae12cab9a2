"""The stream of a topic of Kafka: a real broker and Spark's connector, both from Maven, and a driver that is killed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.pipeline.rules import Finding
from tests.pipeline.rules.planted import PLANTED
from tests.pipeline.streaming.test_spark_stream import LIMIT_SECONDS, PROGRAM, table_without_spark
from tests.pipeline.streaming.test_stream import REPOSITORY, of_the_whole, planted_runs
from tests.ports import take_ports
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"  # 4.3.0 was not to be had; this one works with Spark 4.3
BROKER = "org.apache.kafka:kafka_2.13:4.1.0"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>kafka</artifactId><version>1</version><dependencies><dependency>
<groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency></dependencies></project>"""
OF_SPARK = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
"""What Spark lacks of what the connector needs."""

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
num.partitions=2
"""
PRODUCE = """
import sys
from pyspark.sql import functions as F
from quarterdeck.backend.pipeline.spark.session import spark_session
with spark_session("local[2]") as spark:
    lines = spark.read.text(sys.argv[2:], recursiveFileLookup=True)
    rows = lines.select(F.get_json_object("value", "$.member").alias("key"), "value")
    rows.write.format("kafka").option("kafka.bootstrap.servers", sys.argv[1]).option("topic", "journal").save()
"""


def jars_of(artifact: str) -> list[Path]:
    """The jars of an artifact with those that it needs; Maven keeps them."""
    folder = REPOSITORY / "build" / "kafka" / artifact.replace(":", "_")
    if not (folder / "jars").is_dir():
        maven = shutil.which("mvn") or pytest.skip("needs Maven, for Kafka's jars")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(POM.format(*artifact.split(":")))
        command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=fetched"]
        fetched = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400, check=False)
        if fetched.returncode:
            pytest.skip(f"Maven cannot fetch {artifact}: {fetched.stdout[-200:]}")
        (folder / "fetched").rename(folder / "jars")
    return sorted((folder / "jars").glob("*.jar"))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """A broker of one process, without ZooKeeper."""
    java = shutil.which("java") or pytest.skip("needs Java 17, for a broker of Kafka")
    classes = ":".join(map(str, jars_of(BROKER)))
    port = take_ports(2)
    properties = tmp_path / "server.properties"
    properties.write_text(PROPERTIES.format(port=port, controller=port + 1, data=tmp_path / "data"))
    kafka = [java, "-Xmx512m", "-cp", classes]
    formatted = [*kafka, "kafka.tools.StorageTool", "format", "-t", "5L6g3nShT-eMCtK--X86sw", "-c", str(properties)]
    subprocess.run(formatted, check=True, capture_output=True, timeout=120)
    process = subprocess.Popen([*kafka, "kafka.Kafka", str(properties)], stdout=subprocess.DEVNULL)

    def is_open() -> bool:
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(lambda: is_open() or process.poll() is not None, limit_seconds=LIMIT_SECONDS)
        assert process.poll() is None
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """That of a program whose Spark has the connector."""
    jars = ",".join(str(jar) for jar in jars_of(CONNECTOR) if jar.name.startswith(OF_SPARK))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(f"spark.jars {jars}\n")
    return {**os.environ, "SPARK_CONF_DIR": str(tmp_path / "conf"), "PYTHONPATH": str(REPOSITORY)}


def unlinked(found: list[bytes]) -> list[bytes]:
    """Findings without the place where the console finds the run: a topic is none."""
    bare = (msgspec.structs.replace(msgspec.json.decode(one, type=Finding), link="") for one in found)
    return sorted(map(msgspec.json.encode, bare))


def test_a_topic_is_judged_as_the_journal_also_when_the_driver_is_killed(
    broker: str, environment: dict[str, str], tmp_path: Path
) -> None:
    journal, findings, state = tmp_path / "journal", tmp_path / "findings", tmp_path / "state"
    names = list(PLANTED)

    def produce(some: list[str], folder: Path) -> None:
        for root in (journal, folder):
            planted_runs(root, some)
        command = [sys.executable, "-c", PRODUCE, broker, str(folder)]
        subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True, timeout=200)

    where = (f"kafka://{broker}/journal", "--findings", str(findings), "--checkpoint", str(state))
    command = [*PROGRAM, *where, "--master", "local[2]"]
    produce(names[:10], tmp_path / "first")
    with (tmp_path / "said").open("wb") as said:
        driver = subprocess.Popen(command, env=environment, cwd=REPOSITORY, stdout=said, stderr=said)
        try:
            begun = state / "offsets" / "0"
            wait_until(lambda: begun.exists() or driver.poll() is not None, limit_seconds=2 * LIMIT_SECONDS)
        finally:
            driver.kill()
            driver.wait()
    assert begun.exists(), (tmp_path / "said").read_text()
    produce(names[10:15], tmp_path / "second")
    last = subprocess.run([*command, "--once"], env=environment, cwd=REPOSITORY, capture_output=True, check=False)
    assert last.returncode == 1, last.stderr.decode()
    assert unlinked(of_the_whole(journal)) == unlinked(table_without_spark(findings))
