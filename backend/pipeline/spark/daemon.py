"""The process of which Spark forks its Python workers on this machine: what they need is imported once, before."""

from __future__ import annotations

import gc
import sys
from importlib import import_module

NEEDED = ("pyspark.worker", "pandas", "pyarrow", "quarterdeck.backend.pipeline.judging.group_judge")
"""PyArrow imports pandas as soon as it makes an array."""


def serve() -> None:
    """Fork a worker whenever Spark asks for one, until it ends."""
    # Spark puts its sources first, packed, and so without bytecode: to compile them took most of the time of a short job.
    sys.path.sort(key=lambda place: place.endswith(".zip"))
    for name in NEEDED:
        import_module(name)
    gc.freeze()  # a worker searches for garbage after each task
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    serve()
