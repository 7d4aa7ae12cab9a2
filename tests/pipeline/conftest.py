"""One Spark session for all tests of the pipeline; without Spark or Java they are skipped, each saying so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing
from tests.thoroughness import QUICK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark.sql")

FEW_EVENTS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Nothing has to be moved; good plans, and compiled ones, take longer to make than they save with a few thousand rows."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from quarterdeck.backend.pipeline.spark.session import start_session

    # The quick tests have a few rows each; the long ones run under the settings that users have.
    few = settings.get_current_profile_name() == QUICK
    try:
        session = start_session(conf={"spark.ui.enabled": "false"} | (FEW_EVENTS if few else {}))
    except PipelineMissing as missing:
        pytest.skip(str(missing))
    yield session
    session.stop()
