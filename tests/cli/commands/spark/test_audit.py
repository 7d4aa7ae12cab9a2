"""The audit from the command line, on Spark."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commands.test_runs import PASSING
from tests.cli.conftest import Quarterdeck


def test_a_sound_run_passes(quarterdeck: Quarterdeck, quarterdeck_process: Quarterdeck, tmp_path: Path) -> None:
    """With a Spark of its own, which ends with the command."""
    file, root = tmp_path / "three.yaml", tmp_path / "journal"
    file.write_text(PASSING)
    assert quarterdeck("simulate", file, "--seed", "7", "--journal", root).returncode == 0
    result = quarterdeck_process("audit", root)
    assert result.returncode == 0, result.stderr
    audited = json.loads(result.stdout)
    assert audited["findings"] == []
    assert audited["counts"]["runs"] == 1
    assert "no violations" in result.stderr
