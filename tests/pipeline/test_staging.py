"""Folders for temporary files: one that a killed process left is removed by the next one, those of living ones stay."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from quarterdeck.backend.pipeline.staging import staging_folder

PROGRAM = """
import sys, time
from quarterdeck.backend.pipeline.staging import staging_folder
with staging_folder() as folder:
    (folder / "content").write_text("much")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_leaves_goes_with_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with staging_folder() as own:
            assert left.is_dir() and own.parent == tmp_path, "its process lives"
        process.kill()
        process.wait()
        assert left.is_dir() and not own.exists()
        with staging_folder() as own:
            assert not left.exists() and own.is_dir()
    assert list(tmp_path.iterdir()) == []
