"""A line of a file of findings."""

from __future__ import annotations

import json


def line(seq: int, run: str = "run-1") -> bytes:
    found = {
        "rule": "version", "severity": "violation", "run": run, "member": "athens", "uuid": "u", "seq": seq, "at": 5,
        "detail": "went back", "witnesses": [{"uuid": "u", "seq": seq}],
    }  # fmt: skip
    return json.dumps(found).encode() + b"\n"
