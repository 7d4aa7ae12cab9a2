"""Where the work of a command is done: in processes of this machine, or on Spark. Importing this file imports no Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quarterdeck.backend.pipeline.spark.requirements import needing_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EngineName = Literal["auto", "here", "spark"]


class Engine(Struct, frozen=True):
    """The engine that a user has chosen, and which Spark that is."""

    name: EngineName = "auto"
    """With ``auto`` each command decides."""
    master: str = ""
    """As Spark writes it; by default that of the user's configuration, or all cores of this machine."""
    remote: str = ""
    """The ``sc://`` address of a Spark Connect server instead."""
    conf: dict[str, str] = {}
    """Options of Spark, which override the user's configuration."""

    @property
    def is_spark(self) -> bool:
        """Whether the user wants Spark, whatever the command would choose."""
        return self.name == "spark" or bool(self.master or self.remote or self.conf)


AUTO, HERE = Engine(), Engine("here")


_THREADS = r"(?:\*|[1-9]\d*)"
_MASTER = re.compile(rf"local|local\[{_THREADS}(, ?[1-9]\d*)?\]|local-cluster\[.+\]|yarn|(?:k8s|spark)://.+")
"""Masters as Spark writes them."""


def is_master(text: str) -> bool:
    """Return whether Spark understands this as a master."""
    return _MASTER.fullmatch(text) is not None


@contextmanager
def engine_session(engine: Engine, command: str) -> Iterator[SparkSession]:
    """Start Spark for the `command`, whose name its UI shows. Raises what `spark_session` raises, and `PipelineMissing`."""
    with needing_packages():
        from quarterdeck.backend.pipeline.spark import session
    conf = {"spark.app.name": f"quarterdeck {command}", **engine.conf}
    with session.spark_session(engine.master, remote=engine.remote, conf=conf) as spark:
        yield spark
