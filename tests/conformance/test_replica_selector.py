"""Apache Kafka and the embedded cluster refuse to start with the same values of replica.selector.class."""

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import KafkaProcessFailed, UsageError
from rackspan.kafka_process import KafkaCluster
from tests.kafka_versions import KAFKA


@pytest.mark.kafka
@pytest.mark.rest
@pytest.mark.parametrize("value", ["", "com.acme.MySelector", "java.lang.String"])
def test_a_class_that_cannot_be_loaded_keeps_brokers_from_starting(value: str) -> None:
    config = {"replica.selector.class": value}
    with pytest.raises(KafkaProcessFailed, match=r"ended while it started: .*(Exception|Error)"):
        KafkaCluster(("r1",), 1, version=KAFKA, config=config).__enter__()
    with pytest.raises(UsageError, match="refuse to start"):
        EmbeddedCluster(1, 1, config=config)
