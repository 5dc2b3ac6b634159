"""One Spark for the report's tests, in a time zone of its own: nothing may depend on it."""

from collections.abc import Iterator
from typing import Any

import pytest

from rackspan.pipeline import session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    with session.spark_session("local[2]") as started:
        started.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
        started.conf.set("spark.sql.shuffle.partitions", "2")
        yield started
