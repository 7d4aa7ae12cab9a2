"""The options by which commands choose their engine: processes of this machine, or which Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from quarterdeck.cli.exits import BadUsage
from quarterdeck.cli.output import option

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.spark.engine import Engine

EngineOption = Annotated[
    Literal["auto", "here", "spark"],
    option("Work on Spark, or in processes of this machine, for which no Java is needed; see the manual for auto."),
]
MasterOption = Annotated[
    str,
    option(
        "Run on this Spark master, as spark://HOST:7077; by default that of spark-defaults.conf, or all cores here.",
        "URL",
    ),
]
RemoteOption = Annotated[str, option("Run through this Spark Connect server: sc://HOST:15002.", "URL")]
ConfOption = Annotated[
    list[str] | None,
    option("Set an option of Spark, as spark.executor.memory=4g; may be repeated.", "NAME=VALUE", "--conf"),
]


def chosen_engine(engine: Literal["auto", "here", "spark"], master: str, remote: str, conf: list[str] | None) -> Engine:
    """Return the engine that these options name. Raises `BadUsage` where they exclude each other."""
    from quarterdeck.backend.pipeline.spark.engine import Engine, is_master

    if master and remote:
        raise BadUsage("--master and --remote exclude each other; name one of them")
    if master and not is_master(master):
        raise BadUsage(f"--master {master}: one of local, local[N], local[*], spark://HOST:7077, yarn, k8s://…")
    options = {}
    for text in conf or ():
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise BadUsage(f"--conf {text}: write it as spark.NAME=VALUE")
        options[name] = value
    chosen = Engine(engine, master, remote, options)
    if engine == "here" and chosen.is_spark:
        raise BadUsage("--engine here needs no Spark; leave --master, --remote and --conf out")
    return chosen
