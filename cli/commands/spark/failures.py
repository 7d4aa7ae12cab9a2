"""How commands end for which Spark is not there, or ends in the midst of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from quarterdeck.cli.exits import ExitCode, failing_as


@contextmanager
def failing_without_spark(*bad_input: type[Exception]) -> Iterator[None]:
    """One sentence and exit code 3 where Spark, its Java or what its executors need is missing or ends.

    With 2 the command ends where packages are missing here, and for `bad_input`.
    """
    from quarterdeck.backend.pipeline.spark.requirements import JavaMissing, PipelineMissing, SparkUnreachable

    with (
        failing_as(ExitCode.BAD_INPUT, PipelineMissing, *bad_input),
        failing_as(ExitCode.UNREACHABLE, SparkUnreachable, JavaMissing),
    ):
        yield
