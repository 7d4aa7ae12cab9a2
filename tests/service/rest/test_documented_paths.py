"""The reference of operators' paths: every path has a line to try, and every line does what it says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from quarterdeck.backend.service.application import OPERATOR_PATHS
from tests.service.rest.test_configuration import DOCUMENT
from tests.service.served_members import one_member

REFERENCE = (Path(__file__).parents[3] / "docs" / "reference" / "rest.md").read_text(encoding="utf-8")
LINES = [line.replace("\\\n", "") for line in re.findall(r"^\$ (curl (?:.*\\\n)*.*)", REFERENCE, re.MULTILINE)]


def test_every_path_has_its_line() -> None:
    for known in OPERATOR_PATHS:
        path = known.path.partition("{")[0]
        if path == known.path or path.endswith("/"):
            assert any(f"127.0.0.1:5701{path}" in line for line in LINES), path
            assert f"| `{path.removeprefix('/hazelcast/')}" in REFERENCE, path


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_every_line_works(tmp_path: Path) -> None:
    file = tmp_path / "member.yaml"
    file.write_text(DOCUMENT)
    with one_member(source=file) as member:
        for line in LINES:
            here = line.replace("127.0.0.1:5701/", f"127.0.0.1:{member.port}/").replace("curl ", "curl -sSf ", 1)
            done = subprocess.run(["bash", "-c", here], cwd=tmp_path, capture_output=True, text=True, timeout=30)
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            if done.stdout.startswith("{"):
                assert json.loads(done.stdout).get("status") in (None, "success"), line
        member.until(lambda: len(member.face.shutdowns) == 2)
