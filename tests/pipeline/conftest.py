"""One Spark for all tests of the pipeline: it takes seconds to start and none to share."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from rackspan.pipeline import session

# A JVM that lives for a minute spends most of it optimising itself; victims inherit this too.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session.spark_session("local[2]") as started:
        yield started
