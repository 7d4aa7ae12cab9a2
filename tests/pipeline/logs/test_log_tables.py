"""The recordings on Spark: the same as read in plain Python, and audited like our own journals."""

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.backend.hazelcast.logs.reader import log_files, read_logs
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.judging.spark_tasks import judge_logs_on_spark
from quarterdeck.backend.pipeline.judging.whole_judge import judge_log_records
from quarterdeck.backend.pipeline.log_tables import COVERAGE, QUARANTINE, read_product_logs
from quarterdeck.backend.pipeline.rules import NAMES
from quarterdeck.backend.pipeline.schemas import RECORD

DATA = Path(__file__).parents[2] / "hazelcast" / "logs" / "data"


@pytest.mark.long
def test_spark_tells_what_plain_python_tells_and_the_audit_finds_nothing_wrong(
    spark: SparkSession, tmp_path: Path
) -> None:
    odd = tmp_path / "odd" / "h9.log"
    odd.parent.mkdir()
    unknown = "Nov 21, 2026 12:30:00 PM com.hazelcast.X\nINFO: [10.77.0.9]:5701 [dev] [5.3.8] odd\n"
    odd.write_text("stray\n" + (DATA / "migrations" / "h5.log").read_text() + unknown)
    plain = read_logs([DATA, odd])
    logs = read_product_logs(spark, log_files([DATA, odd]), split_bytes=12_000)
    try:
        assert [field.name for field in logs.records.schema] == [field.name for field in RECORD]
        assert logs.quarantine.schema == QUARANTINE and logs.coverage.schema == COVERAGE
        raws = [row.json for row in logs.stories.where("what = 'Record'").collect()]
        assert sorted(raws) == sorted(msgspec.json.encode(record).decode() for record in plain.records)
        installed = logs.records.where("event.kind = 'list-installed' and size(event.members) > 0").count()
        assert installed == sum('"list-installed"' in raw for raw in raws)
        asides = {(Path(row.file), row.line, row.raw, row.reason) for row in logs.quarantine.collect()}
        assert asides == {(aside.file, aside.line, aside.text, aside.reason) for aside in plain.quarantine}
        assert len(asides) == 2
        counts: dict[str, dict[str, tuple[int, int]]] = {}
        for row in logs.coverage.collect():
            counts.setdefault(row.file, {})[row.what] = (row.messages, row.lines)
        assert counts == plain.counts
        stories = [one.story for one in judge_logs_on_spark(logs.stories, AuditQuestion(NAMES))]
    finally:
        logs.release()

    result = audit([DATA, odd])
    assert [finding.detail for finding in result.findings] == []
    assert (result.counts["quarantined"], result.counts["duplicates"]) == (2, 0)
    assert (result.counts["records"], result.counts["runs"]) == (len(plain.records), 11)
    assert [story.run for story in stories] == [story.run for story in plain.stories]
    assert stories == list(plain.stories)
    assert result.observations == tuple(one for story in plain.stories for one in story.observations)


def test_what_the_logs_of_others_tell_is_known_in_every_number_of_tasks(spark: SparkSession) -> None:
    """That a log ends since others removed its member stands in theirs alone."""
    data = DATA / "formation-and-crash"
    plain = read_logs([data])
    assert any(isinstance(one.event, ConnectionChanged) for one in plain.records)
    tasks = spark.conf.get("spark.sql.shuffle.partitions") or "2"
    spark.conf.set("spark.sql.shuffle.partitions", "8")
    logs = read_product_logs(spark, log_files([data]))
    try:
        (judged,) = judge_logs_on_spark(logs.stories, AuditQuestion(NAMES))
        assert [judged.verdict] == judge_log_records(plain.records, AuditQuestion(NAMES))
        assert [judged.story] == list(plain.stories)
    finally:
        logs.release()
        spark.conf.set("spark.sql.shuffle.partitions", tasks)


@pytest.mark.long
def test_the_audit_judges_logs_of_members_that_disagree(spark: SparkSession, tmp_path: Path) -> None:
    """One version of one master with two contents is a violation; halves that use the same version numbers are none."""

    def line(host: int, block: str) -> str:
        return (
            f"2026-11-21 12:00:0{host},000 INFO c.h.i.c.ClusterService - [10.0.0.{host}]:5701 [dev] [5.3.8] {block}\n"
        )

    def block(version: int, hosts: str, this: str) -> str:
        members = []
        for host in hosts:
            itself = " this" if host == this else ""
            members.append(f"Member [10.0.0.{host}]:5701 - {host * 8}-0000-4000-8000-{host * 12}{itself}")
        return f"\n\nMembers {{size:{len(hosts)}, ver:{version}}} [\n\t" + "\n\t".join(members) + "\n]\n"

    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "h1.log").write_text(line(1, block(3, "1234", "1")) + line(1, block(4, "12", "1")))
    (logs / "h2.log").write_text(line(2, block(3, "1234", "2")) + line(2, block(4, "12", "2")))
    (logs / "h3.log").write_text(line(3, block(3, "1234", "3")) + line(3, block(4, "34", "3")))
    (logs / "h4.log").write_text(line(4, block(3, "124", "4")) + line(4, block(4, "34", "4")))
    result = audit([logs])
    found = {(finding.rule, finding.member, finding.severity) for finding in result.findings}
    assert found == {("unique content", "10.0.0.4:5701", "violation")}
    assert [("view agreement" in one.rules, "view order" in one.rules) for one in result.not_judged] == [(True, False)]
