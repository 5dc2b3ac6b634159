"""The pipeline's Spark, and an embedded cluster whose topics the tests fill."""

from collections.abc import Iterator

import pytest

from rackspan.cluster import EmbeddedCluster
from tests.pipeline.conftest import spark

__all__ = ["spark"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3) as started:
        yield started
