"""One Spark for all tests of the pipeline: it takes seconds to start and none to share."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from rackspan.pipeline import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session.spark_session("local[2]") as started:
        yield started
