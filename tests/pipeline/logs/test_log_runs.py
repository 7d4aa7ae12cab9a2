"""The recordings on Spark: the same as read in plain Python, and audited like our own journals."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.backend.judgement.observations.reader import LogRecords, read_logs
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.audit_input import resolve_input
from quarterdeck.backend.pipeline.tasks import of_log_runs

DATA = Path(__file__).parents[2] / "hazelcast" / "logs" / "data"


@pytest.mark.long
def test_spark_reads_what_plain_python_reads_and_the_audit_finds_nothing_wrong(
    spark: SparkSession, tmp_path: Path
) -> None:
    odd = tmp_path / "odd" / "h9.log"
    odd.parent.mkdir()
    unknown = "Nov 21, 2026 12:30:00 PM com.hazelcast.X\nINFO: [10.77.0.9]:5701 [dev] [5.3.8] odd\n"
    odd.write_text("stray\n" + (DATA / "migrations" / "h5.log").read_text() + unknown)
    plain = read_logs([DATA, odd])
    found = resolve_input([DATA, odd], tmp_path, "logs")
    by_run: list[LogRecords] = of_log_runs(found, lambda logs: logs, spark, split_bytes=12_000)
    assert [record for logs in by_run for record in logs.records] == plain.records
    aside = [entry for logs in by_run for entry in logs.quarantine]
    assert sorted(aside, key=lambda entry: (entry.file, entry.line)) == plain.quarantine and len(aside) == 2
    assert {file: counts for logs in by_run for file, counts in logs.counts.items()} == plain.counts
    assert tuple(story for logs in by_run for story in logs.stories) == plain.stories

    result = audit([DATA, odd])
    assert [finding.detail for finding in result.findings] == []
    assert (result.counts["quarantined"], result.counts["duplicates"]) == (2, 0)
    assert (result.counts["records"], result.counts["runs"]) == (len(plain.records), 11)
    assert result.observations == tuple(observation for story in plain.stories for observation in story.observations)
    assert audit([DATA, odd], spark=spark) == result


def test_what_the_logs_of_others_tell_is_known(spark: SparkSession, tmp_path: Path) -> None:
    """That a log ends since others removed its member stands in theirs alone."""
    data = DATA / "formation-and-crash"
    plain = read_logs([data])
    assert any(isinstance(record.event, ConnectionChanged) for record in plain.records)
    assert of_log_runs(resolve_input([data], tmp_path, "logs"), lambda logs: logs, spark) == [plain]


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
    assert [("view agreement" in judged.rules, "view order" in judged.rules) for judged in result.not_judged] == [
        (True, False)
    ]
