"""One Spark session for all tests of the pipeline; without Spark or Java they are skipped, each saying so."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing
from tests.thoroughness import QUICK

pyspark_sql = pytest.importorskip("pyspark.sql")


@pytest.fixture(scope="session")
def spark() -> Iterator["pyspark_sql.SparkSession"]:
    from quarterdeck.backend.pipeline.spark.session import start_session
    from quarterdeck.backend.pipeline.spark.tuning import FEW_EVENTS

    # The quick tests have a few rows each; the long ones run under the settings that users have.
    few = settings.get_current_profile_name() == QUICK
    try:
        session = start_session(conf=FEW_EVENTS if few else {})
    except PipelineMissing as missing:
        pytest.skip(str(missing))
    yield session
    session.stop()
