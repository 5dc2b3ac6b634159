"""The coordinators' own topics: made when somebody first asks for a coordinator, and who leads a partition of them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from rackspan.cluster.core.configs import BROKER_CONFIGS
from rackspan.cluster.core.groups import GroupSettings
from rackspan.cluster.core.messages import CreateTopics, NewTopic
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage, PartitionState
from rackspan.cluster.core.transactions import TransactionSettings
from rackspan.cluster.host.coordinator_runner import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from rackspan.model.ids import TopicPartition

if TYPE_CHECKING:
    from rackspan.cluster.host.broker_host import BrokerHost

_CREATION_MS: Final = 5_000
_PARTITIONS_CONFIG: Final = {
    OFFSETS_TOPIC: "offsets.topic.num.partitions",
    TRANSACTIONS_TOPIC: "transaction.state.log.num.partitions",
}
_FACTOR_CONFIG: Final = {
    OFFSETS_TOPIC: "offsets.topic.replication.factor",
    TRANSACTIONS_TOPIC: "transaction.state.log.replication.factor",
}
_GROUP_CONFIGS: Final = (
    "group_initial_rebalance_delay_ms",
    "group_min_session_timeout_ms",
    "group_max_session_timeout_ms",
    "group_max_size",
)


def partition_count(topic: str, configs: Mapping[str, str]) -> int:
    key = _PARTITIONS_CONFIG[topic]
    return int(configs.get(key) or BROKER_CONFIGS[key].default or 1)


def group_settings(configs: Mapping[str, str]) -> GroupSettings:
    """The group coordinator's, from broker configs by Kafka's names; see GroupSettings for what is left unsaid."""
    said = {name: int(configs[name.replace("_", ".")]) for name in _GROUP_CONFIGS if name.replace("_", ".") in configs}
    return GroupSettings(**said, offsets_topic_num_partitions=partition_count(OFFSETS_TOPIC, configs))


def transaction_settings(configs: Mapping[str, str]) -> TransactionSettings:
    """The transaction coordinator's, likewise."""
    partitions = partition_count(TRANSACTIONS_TOPIC, configs)
    longest = configs.get("transaction.max.timeout.ms")
    if longest is None:
        return TransactionSettings(transaction_state_log_num_partitions=partitions)
    return TransactionSettings(int(longest), partitions)


async def leader_of(host: "BrokerHost", topic: str, partition: int) -> PartitionState | None:
    """The partition as this broker knows it, the topic made first where it is not there; None without a leader."""
    if topic not in host.image.topics:
        await _create(host, topic)
    await host.wait_for_image(lambda image: _led(image, topic, partition), _CREATION_MS)
    found = host.image.topics.get(topic)
    state = found.partitions[partition] if found is not None and partition < len(found.partitions) else None
    return state if state is not None and state.leader != NO_LEADER else None


def _led(image: MetadataImage, topic: str, partition: int) -> bool:
    # Somebody may have made the topic by hand, with fewer partitions.
    state = image.partition(TopicPartition(topic, partition))
    return state is not None and state.leader != NO_LEADER


async def _create(host: "BrokerHost", topic: str) -> None:
    configs = host.settings.extra_configs
    new = NewTopic(
        topic,
        partition_count(topic, configs),
        int(configs.get(_FACTOR_CONFIG[topic], "-1")),
        configs={"cleanup.policy": "compact"},
    )
    await host.controller_response(
        lambda correlation_id: CreateTopics(correlation_id, (new,), automatic=True), _CREATION_MS, ()
    )
