"""A broker of Kafka, and Spark's connector: both from Maven, whose jars stay in `build`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import take_ports
from tests.waiting import wait_until

REPOSITORY = Path(__file__).parents[3]
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
LIMIT_SECONDS = 60.0
"""Java starts slowly on a busy machine."""


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


@contextmanager
def kafka_broker(folder: Path) -> Iterator[str]:
    """The address of a broker of one process, without ZooKeeper."""
    java = shutil.which("java") or pytest.skip("needs Java 17, for a broker of Kafka")
    classes = ":".join(map(str, jars_of(BROKER)))
    port = take_ports(2)
    properties = folder / "server.properties"
    properties.write_text(PROPERTIES.format(port=port, controller=port + 1, data=folder / "data"))
    kafka = [java, "-Xmx512m", "-cp", classes]
    formatted = [*kafka, "kafka.tools.StorageTool", "format", "-t", "5L6g3nShT-eMCtK--X86sw", "-c", str(properties)]
    subprocess.run(formatted, check=True, capture_output=True)
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


def with_connector(folder: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a program whose Spark has the connector."""
    jars = ",".join(str(jar) for jar in jars_of(CONNECTOR) if jar.name.startswith(OF_SPARK))
    conf = folder / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(f"spark.jars {jars}\n")
    return {**environment, "SPARK_CONF_DIR": str(conf), "PYTHONPATH": str(REPOSITORY)}


def produce(broker: str, journal: Path, environment: Mapping[str, str]) -> None:
    """Write all lines of a journal to the topic ``journal``, with the member as the key."""
    command = [sys.executable, "-c", PRODUCE, broker, str(journal)]
    subprocess.run(command, env=environment, cwd=journal, check=True, capture_output=True)
