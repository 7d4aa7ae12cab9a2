"""The audit and the simulator say the same about random journals, each finding with its sentence;
`tests/bench/audit_agreement.py` asks about a thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.backend.pipeline.audit import audit
from tests.pipeline.rules.broken_journals import broken
from tests.pipeline.rules.oracle import in_order, told, watched
from tests.pipeline.rules.test_planted import of_run, write_run

pytestmark = pytest.mark.long

JOURNALS = 30


def test_the_audit_agrees_with_the_simulator_about_random_journals(tmp_path: Path) -> None:
    runs = {f"run-{seed}": write_run(tmp_path, f"run-{seed}", broken(seed)) for seed in range(JOURNALS)}
    result = audit([tmp_path])
    found = {run: [finding for finding in of_run(result, run) if finding.rule != "convergence"] for run in runs}
    expected = {run: watched(in_order(records)) for run, records in runs.items()}
    assert {run: told(one) for run, one in found.items()} == {run: told(one) for run, one in expected.items()}
    # The journals are worth asking about: some are sound, and many rules are broken in the others.
    assert any(not findings for findings in expected.values())
    assert len({finding.rule for findings in expected.values() for finding in findings}) >= 10
