"""The settings of the group and transaction coordinators, from broker configs by Kafka's names."""

from collections.abc import Mapping
from typing import Final

from rackspan.cluster.core.coordination import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from rackspan.cluster.core.groups import GroupSettings
from rackspan.cluster.core.transactions import TransactionSettings
from rackspan.cluster.handlers.common import partition_count

_GROUP_CONFIGS: Final = (
    "group_initial_rebalance_delay_ms",
    "group_min_session_timeout_ms",
    "group_max_session_timeout_ms",
    "group_max_size",
    "offset_metadata_max_bytes",
)


def group_settings(configs: Mapping[str, str]) -> GroupSettings:
    """For the group coordinator; GroupSettings has the defaults."""
    configured = {
        name: int(configs[name.replace("_", ".")]) for name in _GROUP_CONFIGS if name.replace("_", ".") in configs
    }
    return GroupSettings(**configured, offsets_topic_num_partitions=partition_count(OFFSETS_TOPIC, configs))


def transaction_settings(configs: Mapping[str, str]) -> TransactionSettings:
    """For the transaction coordinator; TransactionSettings has the defaults."""
    partitions = partition_count(TRANSACTIONS_TOPIC, configs)
    timeout_ms_max = configs.get("transaction.max.timeout.ms")
    if timeout_ms_max is None:
        return TransactionSettings(transaction_state_log_num_partitions=partitions)
    return TransactionSettings(int(timeout_ms_max), partitions)
