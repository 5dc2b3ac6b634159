"""A secured cluster of this room's own: what is created here must not be met where rights are counted."""

from collections.abc import Iterator

import pytest

from rackspan.kafka_process import KafkaCluster
from tests.kafka_fixtures import SECURED, started


@pytest.fixture(scope="module")
def secured_kafka() -> Iterator[KafkaCluster]:
    """As the shared one: one broker that asks for a password and checks rights."""
    yield from started(KafkaCluster(racks=("r1",), brokers=1, config=SECURED))
