"""Whether the audit, the audit of streams and the simulator's own invariant checker agree about random
journals, finding by finding.

``--journals`` says about how many; see `tests/pipeline/rules/broken_journals.py` for what they are.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.streaming.journal_follower import FindingsFile, JournalFollower, StreamCheckpoint
from tests.pipeline.rules.broken_journals import broken
from tests.pipeline.rules.oracle import Told, in_order, told, watched

MOST_SHOWN = 20


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--journals", type=int, default=20)
    arguments.add_argument("--first", type=int, default=0, help="the first seed")
    options = arguments.parse_args()
    seeds = range(options.first, options.first + options.journals)
    runs = {f"run-{seed}": broken(seed) for seed in seeds}
    with tempfile.TemporaryDirectory(prefix="quarterdeck-agreement-") as folder:
        for run, records in runs.items():
            with JournalWriter(Path(folder), run, "test") as journal:
                for record in records:
                    journal.append(record)
        began_s = time.monotonic()
        result = audit([Path(folder)])
        audit_s = time.monotonic() - began_s
        began_s = time.monotonic()
        streamed = by_stream(Path(folder), runs)
        stream_s = time.monotonic() - began_s
    began_s = time.monotonic()
    expected = {run: told(watched(in_order(records))) for run, records in runs.items()}
    watch_s = time.monotonic() - began_s
    found: dict[str, list[Told]] = {run: [] for run in runs}
    for run in runs:
        mine = [finding for finding in result.findings if finding.run == run and finding.rule != "convergence"]
        found[run] = list(told(mine))
    differ = [run for run in runs if not found[run] == streamed[run] == expected[run]]
    for run in differ[:MOST_SHOWN]:
        print(
            run, "only the audit:", [finding for finding in found[run] if finding not in expected[run]], file=sys.stderr
        )
        print(
            run,
            "only the simulator:",
            [finding for finding in expected[run] if finding not in found[run]],
            file=sys.stderr,
        )
        print(
            run,
            "only the stream:",
            [finding for finding in streamed[run] if finding not in expected[run]],
            file=sys.stderr,
        )
        print(
            run,
            "not the stream:",
            [finding for finding in expected[run] if finding not in streamed[run]],
            file=sys.stderr,
        )
    rules = Counter(finding[0] for findings in expected.values() for finding in findings)
    print(
        json.dumps(
            {
                "journals": len(runs),
                "records": result.counts["records"],
                "sound": sum(not findings for findings in expected.values()),
                "findings": sum(rules.values()),
                "rules_broken": len(rules),
                "differ": len(differ),
                "audit_s": round(audit_s, 1),
                "stream_s": round(stream_s, 1),
                "watch_s": round(watch_s, 1),
            }
        )
    )
    sys.exit(1 if differ else 0)


def by_stream(root: Path, runs: Iterable[str]) -> dict[str, list[Told]]:
    """What the audit of streams finds."""
    findings = FindingsFile(root / "findings.jsonl")
    follower = JournalFollower(
        root, StreamCheckpoint(root / "_stream", root), findings, lambda change: None, lambda text: None
    )
    follower.look(0, at_once=True)
    return {run: told(findings.of_run(run)) for run in runs}


if __name__ == "__main__":
    main()
