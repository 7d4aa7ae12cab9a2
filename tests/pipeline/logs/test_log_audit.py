"""Logs that give no verdict: nobody understands them."""

from pathlib import Path

import pytest

from quarterdeck.backend.clusters.recorded.log_lines import import_run
from quarterdeck.backend.hazelcast.logs.log_files import NoLogs
from quarterdeck.backend.hazelcast.logs.split_parser import NOTHING_UNDERSTOOD, LogOptions
from quarterdeck.backend.judgement.observations.run_reader import check_logs
from quarterdeck.backend.pipeline.audit import NOT_IN_WITNESSED_RUNS, audit
from quarterdeck.library import read_logs

RECORDING = Path(__file__).parents[2] / "hazelcast" / "logs" / "data" / "formation-and-crash"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"Once upon a time\n", b'{\n  "a": 1\n}\n'])
def test_nothing_understood_is_no_verdict(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "h1.log").write_bytes(content)
    with pytest.raises(NoLogs, match="is understood as what a member"):
        audit([tmp_path])


@pytest.mark.parametrize("content", ["", "2026-11-21 12:00:00,000 INFO org.example.App - something else\n"])
def test_a_file_among_others_that_tells_nothing_is_named(content: str, tmp_path: Path) -> None:
    for log in RECORDING.glob("*.log"):
        (tmp_path / log.name).write_bytes(log.read_bytes())
    (tmp_path / "h9.log").write_text(content)
    result = audit([tmp_path])
    assert [(Path(problem.file).name, problem.reason) for problem in result.problems] == [
        ("h9.log", NOTHING_UNDERSTOOD)
    ]


def test_a_zone_of_a_log_that_is_not_there_is_refused_wherever_logs_are_read(tmp_path: Path) -> None:
    options = LogOptions(run="r", zone="UTC, h1.log=+02:00,nosuch.log=+01:00")
    refused = "none of the logs is called 'nosuch.log'; they are called h1.log, h2.log, h3.log"
    with pytest.raises(NoLogs, match=refused):
        audit([RECORDING], log_options=options)
    with pytest.raises(NoLogs, match=refused):
        next(import_run(RECORDING, tmp_path, options))
    with pytest.raises(NoLogs, match=refused):
        read_logs(RECORDING, options)


def test_a_log_that_has_a_zone_may_come_later_where_logs_are_followed(tmp_path: Path) -> None:
    check_logs(RECORDING, LogOptions(run="r", zone="h4.log=+02:00"), follow=True)


@pytest.mark.parametrize("run", ["flapping", "split-and-merge"])
def test_a_journal_of_witnessed_members_is_judged_as_their_logs_are(run: str, tmp_path: Path) -> None:
    logs = RECORDING.parent / run
    list(import_run(logs, tmp_path, LogOptions(run=run)))
    of_logs, of_journal = audit([logs]), audit([tmp_path])
    assert [finding.rule for finding in of_journal.findings] == [finding.rule for finding in of_logs.findings] == []
    assert of_journal.counts["records"] == of_logs.counts["records"]
    assert of_journal.rules == of_logs.rules and of_journal.incomplete == {}
    ((told,), (known,)) = of_journal.not_judged, of_logs.not_judged
    assert told.rules == known.rules and told.why == NOT_IN_WITNESSED_RUNS
    assert of_journal.observations[0].headline == of_logs.observations[0].headline
    assert all(Path(line.file).suffix for observation in of_journal.observations for line in observation.evidence)
