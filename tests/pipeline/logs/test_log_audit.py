"""Logs that give no verdict: nobody understands them."""

from pathlib import Path

import pytest

from quarterdeck.backend.hazelcast.logs.reader import NoLogs
from quarterdeck.backend.hazelcast.logs.split_parser import NOTHING_UNDERSTOOD
from quarterdeck.backend.pipeline.audit import audit

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
    assert [(Path(one.file).name, one.reason) for one in result.problems] == [("h9.log", NOTHING_UNDERSTOOD)]
