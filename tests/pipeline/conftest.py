"""One Spark session for all tests of the pipeline; without Spark or Java they are skipped, each saying so."""

from collections.abc import Iterator

import pytest

from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing

pyspark_sql = pytest.importorskip("pyspark.sql")


@pytest.fixture(scope="session")
def spark() -> Iterator["pyspark_sql.SparkSession"]:
    from quarterdeck.backend.pipeline.spark.session import start_session

    try:
        session = start_session()
    except PipelineMissing as missing:
        pytest.skip(str(missing))
    yield session
    session.stop()
