"""Each invariant notices what is planted in otherwise sound journals, and only that; the audit says what the simulator says."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.invariants import PROVEN_BY_WITNESSES
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.pipeline import audit as audit_module
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.rules import NAMES, AuditResult, Finding
from tests.pipeline.rules.oracle import told, watched
from tests.pipeline.rules.planted import PLANTED

RUNS = {what: f"planted-{number}" for number, what in enumerate(PLANTED)}
TWINS = {what: f"twin-{number}" for number, what in enumerate(PLANTED)}


def write_run(root: Path, run: str, records: list[Record]) -> list[Record]:
    renamed = [replace(record, run=run) for record in records]
    with JournalWriter(root, run, "test") as journal:
        for record in renamed:
            journal.append(record)
    return renamed


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planted")
    for what, one in PLANTED.items():
        write_run(root, RUNS[what], one.records)
        write_run(root, TWINS[what], one.twin)
    return root


@pytest.fixture(scope="module", params=["here", "on Spark"])
def result(request: pytest.FixtureRequest, root: Path) -> AuditResult:
    """Little is judged in this process, much on Spark: by the same code."""
    if request.param == "here":
        return audit([root])
    request.getfixturevalue("spark")
    with pytest.MonkeyPatch.context() as little:
        little.setattr(audit_module, "IN_PROCESS_BYTES", 0)
        return audit([root])


def of_run(result: AuditResult, run: str) -> list[Finding]:
    return [finding for finding in result.findings if finding.run == run]


def test_each_invariant_is_planted_somewhere() -> None:
    assert {finding.rule for finding in PLANTED.values()} == set(NAMES)


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_is_found_and_its_twin_is_clean(result: AuditResult, what: str) -> None:
    planted = PLANTED[what]
    found = of_run(result, RUNS[what])
    assert [finding.rule for finding in found].count(planted.rule) == 1
    [finding] = [finding for finding in found if finding.rule == planted.rule]
    last = planted.records[-1]
    assert finding.witnesses
    assert {(witness.uuid, witness.seq) for witness in finding.witnesses} <= {
        (record.uuid, record.seq) for record in planted.records
    }
    assert finding.members and finding.detail and finding.link
    if planted.rule not in ("numbering", "view agreement", "convergence"):
        assert (finding.uuid, finding.seq, finding.at) == (last.uuid, last.seq, last.at)
    clean_but_for = {finding.rule for finding in of_run(result, TWINS[what])}
    assert planted.rule not in clean_but_for


@pytest.mark.parametrize("rule", NAMES)
def test_for_each_invariant_one_journal_breaks_nothing_else(result: AuditResult, rule: str) -> None:
    alone = [
        what
        for what, planted in PLANTED.items()
        if planted.rule == rule
        and [finding.rule for finding in of_run(result, RUNS[what]) if finding.rule not in planted.companions] == [rule]
        and not of_run(result, TWINS[what])
    ]
    assert alone


@pytest.mark.parametrize("which", ["records", "twin"])
@pytest.mark.parametrize("what", PLANTED)
def test_the_audit_says_what_the_simulator_says(result: AuditResult, what: str, which: str) -> None:
    records = getattr(PLANTED[what], which)
    found = [
        finding
        for finding in of_run(result, (RUNS if which == "records" else TWINS)[what])
        if finding.rule != "convergence"
    ]
    expected = watched(records)
    assert told(found) == told(expected)
    assert {finding.witnesses for finding in found} == {violation.witnesses for violation in expected}


def test_only_incomplete_journals_have_warnings(result: AuditResult) -> None:
    for finding in result.findings:
        if finding.severity == "warning":
            assert finding.rule == "numbering" or finding.doubt == result.incomplete[finding.run]
        else:
            assert finding.run not in result.incomplete or finding.rule in PROVEN_BY_WITNESSES
