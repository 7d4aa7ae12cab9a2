"""What this machine may lack for the pipeline; each message is one line that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

OPTIONAL_PACKAGES = ("pyspark", "py4j", "pandas", "pyarrow", "numpy")
"""What comes with the extra `pipeline`, by the names under which it is imported."""

PACKAGES_HINT = "the pipeline needs its packages: run `make pipeline`, or pip install 'quarterdeck[pipeline]'"


class PipelineMissing(RuntimeError):
    """The pipeline cannot run here until something is installed."""

    def __init__(self, message: str = PACKAGES_HINT) -> None:
        super().__init__(message)


class JavaMissing(PipelineMissing):
    """No Java that Spark can use."""


class RemoteMissing(PipelineMissing):
    """What a client of Spark Connect needs is not installed."""

    def __init__(self) -> None:
        super().__init__("a Spark Connect server needs more packages on this side: pip install 'quarterdeck[connect]'")


class SparkUnreachable(RuntimeError):
    """The Spark that was asked for does not answer, or refuses us."""


class SparkFailed(SparkUnreachable):
    """Spark broke off in the midst of work: it lost its executors, its memory or its disk, or ended."""


@contextmanager
def needing_packages() -> Iterator[None]:
    """Imports in the block need the extra `pipeline`. Raises `PipelineMissing` when it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OPTIONAL_PACKAGES:
            raise PipelineMissing() from error
        raise
