"""What a broker reads from its metadata: configs of leaders, of records and of compaction."""

from uuid import UUID

import pytest

from rackspan.cluster.core.broker.broker_state import BrokerState
from rackspan.cluster.core.broker.lifecycle import BrokerIdentity, Lifecycle
from rackspan.cluster.core.broker.rules import BrokerRules
from rackspan.cluster.core.configs import topic_resource
from rackspan.cluster.core.disk import Disk
from rackspan.cluster.core.ids import NO_EPOCH
from rackspan.cluster.core.messages import BrokerRegistration
from rackspan.cluster.core.metadata import EMPTY_IMAGE, BrokerRegistered, ConfigSet, TopicCreated, apply_records
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model.ids import BrokerId, RackId, TopicPartition

ME = BrokerId(1)


def state(configs: dict[str, str] | None = None, **settings: object) -> BrokerState:
    """Broker 1, which has the topic orders with these configs in its image."""
    lifecycle = Lifecycle(BrokerIdentity(ME, 4), NO_EPOCH)
    shared = BrokerState(ME, ClusterSettings(**settings), Disk(), BrokerRules(), lifecycle)  # type: ignore[arg-type]
    records = [ConfigSet(topic_resource("orders"), key, value) for key, value in (configs or {}).items()]
    shared.image = apply_records(EMPTY_IMAGE, [TopicCreated("orders", UUID(int=1)), *records])
    return shared


@pytest.mark.parametrize(
    ("configs", "retained_bytes", "bounded_by_cluster", "retention_ms"),
    [
        ({}, 1_000, True, 604_800_000),
        ({"retention.bytes": "999"}, 999, False, 604_800_000),
        ({"retention.bytes": "1000", "retention.ms": "0"}, 1_000, False, 0),
        ({"retention.bytes": "1001", "retention.ms": "-1"}, 1_000, True, None),
        ({"retention.bytes": "0"}, 0, False, 604_800_000),
        ({"retention.bytes": "5", "cleanup.policy": "compact"}, None, False, None),
        ({"retention.bytes": "-1", "cleanup.policy": "compact"}, None, False, None),
        ({"retention.bytes": "5", "cleanup.policy": "compact,delete"}, 5, False, 604_800_000),
    ],
)
def test_a_log_is_bounded_by_its_topic_and_by_the_cluster_unless_it_is_only_compacted(
    configs: dict[str, str], retained_bytes: int | None, bounded_by_cluster: bool, retention_ms: int | None
) -> None:
    config = state(configs, log_max_bytes=1_000).leader_config("orders")
    assert (config.retained_bytes, config.bounded_by_cluster, config.retention_ms) == (
        retained_bytes,
        bounded_by_cluster,
        retention_ms,
    )


def test_a_leaders_config_is_read_once_until_it_is_forgotten_and_a_records_once_an_image() -> None:
    shared = state()
    leader, records = shared.leader_config("orders"), shared.record_config("orders")
    assert shared.leader_config("orders") is leader
    assert shared.record_config("orders") is records
    retention = ConfigSet(topic_resource("orders"), "retention.ms", "7")
    shared.image = apply_records(shared.image, [retention])
    assert shared.leader_config("orders") is leader, "until it is forgotten"
    assert shared.record_config("orders") is not records
    shared.forget_config("other")
    shared.forget_config("orders")
    assert shared.leader_config("orders").retention_ms == 7
    again = shared.leader_config("orders")
    shared.forget_configs()
    assert shared.leader_config("orders") is not again


def test_only_a_known_topic_that_is_compacted_has_a_config_of_compaction() -> None:
    compacted = state({"cleanup.policy": "compact"})
    assert compacted.compaction_config("orders") is not None
    assert state().compaction_config("orders") is None
    everywhere = state(extra_configs={"log.cleanup.policy": "compact"})
    assert everywhere.compaction_config("orders") is not None
    assert everywhere.compaction_config("deleted") is None


def test_a_log_is_kept_with_its_topic_id_and_not_given_to_a_namesake() -> None:
    shared, partition = state(), TopicPartition("orders", 0)
    log = shared.log(partition, UUID(int=1))
    assert shared.log(partition, UUID(int=1)) is log
    other = shared.log(partition, UUID(int=2))
    assert (other is log, other.topic_id, shared.disk.logs) == (False, UUID(int=2), {partition: other})


def test_a_broker_that_is_not_in_the_image_has_no_rack_that_is_known() -> None:
    shared = state()
    assert shared.rack_of(ME) is None
    shared.image = apply_records(shared.image, [BrokerRegistered(ME, 1, 4, RackId("a"), "h", 9)])
    assert shared.rack_of(ME) == "a"


def test_a_broker_has_no_rack_and_listens_on_loopback_unless_it_says_otherwise() -> None:
    (message,) = Lifecycle(BrokerIdentity(ME, 4), NO_EPOCH).due(0, 0, ClusterSettings())
    assert message == BrokerRegistration(ME, 4, None, "127.0.0.1", 0, NO_EPOCH)
