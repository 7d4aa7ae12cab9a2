"""What this machine may lack for the pipeline; each message is one line that says what to do."""

from __future__ import annotations

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
