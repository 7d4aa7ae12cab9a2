"""What this machine may lack for the pipeline; each message is one line that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

OPTIONAL_PACKAGES = ("pyspark", "py4j", "pandas", "pyarrow", "numpy", "jinja2", "markupsafe")
"""The packages of the extra `pipeline`, by the names under which they are imported."""

PACKAGES_HINT = (
    "more packages are needed: install 'quarterdeck[spark]' with uv tool, pipx or pip; in a clone, run `make pipeline`"
)


class PipelineMissing(RuntimeError):
    """Something has to be installed before the pipeline can run here."""

    def __init__(self, message: str = PACKAGES_HINT) -> None:
        super().__init__(message)


class JavaMissing(PipelineMissing):
    """There is no Java that Spark can use."""


class RemoteMissing(PipelineMissing):
    """A package that a client of Spark Connect needs is not installed."""

    def __init__(self) -> None:
        super().__init__("a Spark Connect server needs more packages on this side: install 'quarterdeck[connect]'")


class SparkUnreachable(RuntimeError):
    """The requested Spark does not answer, or refuses the connection."""


class SparkFailed(SparkUnreachable):
    """Spark broke off in the middle of work: it lost its executors, its memory or its disk, or ended."""


@contextmanager
def needing_packages() -> Iterator[None]:
    """Raise `PipelineMissing` if an import in the block fails because the extra `pipeline` is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OPTIONAL_PACKAGES:
            raise PipelineMissing() from error
        raise
