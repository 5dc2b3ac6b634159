"""A secured cluster for these tests alone: topics created here must not exist where rights are counted."""

from collections.abc import Iterator

import pytest

from rackspan.kafka_process import KafkaCluster
from tests.kafka_fixtures import secured_cluster


@pytest.fixture(scope="module")
def secured_kafka() -> Iterator[KafkaCluster]:
    """As the shared one: one broker that requires a password and checks rights."""
    yield from secured_cluster()
