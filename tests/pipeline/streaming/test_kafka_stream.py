"""The stream of a topic of Kafka: a real broker and Spark's connector, both from Maven, and a driver that is killed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.pipeline.rules import Finding
from tests.pipeline.rules.planted import PLANTED
from tests.pipeline.streaming.kafka_broker import kafka_broker, produce, with_connector
from tests.pipeline.streaming.test_spark_stream import LIMIT_SECONDS, PROGRAM, table_without_spark
from tests.pipeline.streaming.test_stream import REPOSITORY, of_the_whole, planted_runs
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def unlinked(found: list[bytes]) -> list[bytes]:
    """Findings without the place where the console finds the run: a topic is none."""
    bare = (msgspec.structs.replace(msgspec.json.decode(one, type=Finding), link="") for one in found)
    return sorted(map(msgspec.json.encode, bare))


def test_a_topic_is_judged_as_the_journal_also_when_the_driver_is_killed(tmp_path: Path) -> None:
    journal, findings, state = tmp_path / "journal", tmp_path / "findings", tmp_path / "state"
    names = list(PLANTED)
    environment = with_connector(tmp_path)

    def publish(some: list[str], folder: Path) -> None:
        for root in (journal, folder):
            planted_runs(root, some)
        produce(broker, folder, environment)

    with kafka_broker(tmp_path) as broker:
        where = (f"kafka://{broker}/journal", "--findings", str(findings), "--checkpoint", str(state))
        command = [*PROGRAM, *where, "--master", "local[2]"]
        publish(names[:10], tmp_path / "first")
        with (tmp_path / "said").open("wb") as said:
            driver = subprocess.Popen(command, env=environment, cwd=REPOSITORY, stdout=said, stderr=said)
            try:
                begun = state / "offsets" / "0"
                wait_until(lambda: begun.exists() or driver.poll() is not None, limit_seconds=2 * LIMIT_SECONDS)
            finally:
                driver.kill()
                driver.wait()
        assert begun.exists(), (tmp_path / "said").read_text()
        publish(names[10:15], tmp_path / "second")
        last = subprocess.run([*command, "--once"], env=environment, cwd=REPOSITORY, capture_output=True, check=False)
    assert last.returncode == 1, last.stderr.decode()
    assert unlinked(of_the_whole(journal)) == unlinked(table_without_spark(findings))
