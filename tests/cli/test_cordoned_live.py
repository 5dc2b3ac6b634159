"""A broker of Kafka 4.3 whose log directories are cordoned (KIP-1066) is excluded from placement until they are not."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from rackspan.kafka_process import KafkaCluster
from rackspan.kafka_process.release.versions import KafkaVersion
from tests.cli.conftest import Ran
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(KafkaVersion.parse(KAFKA) < KafkaVersion.parse("4.3.0"), reason="KIP-1066 is in Kafka 4.3"),
]

Cli = Callable[..., Ran]


def cordon(cluster: KafkaCluster, broker: int, operation: AlterConfigOpType) -> None:
    entry = ConfigEntry("cordoned.log.dirs", "*", incremental_operation=operation)
    resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.incremental_alter_configs([resource])[resource].result(WITHIN_SECONDS)


@pytest.fixture
def cordoned(kafka: KafkaCluster) -> Iterator[KafkaCluster]:
    cordon(kafka, 4, AlterConfigOpType.SET)
    yield kafka
    cordon(kafka, 4, AlterConfigOpType.DELETE)


def test_a_cordoned_broker_is_given_no_replica_and_is_named(cli: Cli, cordoned: KafkaCluster) -> None:
    create = ("place", "create", "--topic", "new", "--partitions", "12", "--replication-factor", "3", "-o", "json")
    words = (*create, "--bootstrap-server", cordoned.bootstrap_servers)
    eventually(lambda: "broker 4: all of its log directories are cordoned" in cli(*words).err, "broker 4 is cordoned")
    used = {broker for row in cli(*words).document["assignments"].values() for broker in row}
    assert used == {1, 2, 3, 5, 6}
    cordon(cordoned, 4, AlterConfigOpType.DELETE)
    eventually(lambda: "cordoned" not in cli(*words).err, "broker 4 is no longer cordoned")
    used = {broker for row in cli(*words).document["assignments"].values() for broker in row}
    assert used == {1, 2, 3, 4, 5, 6}
