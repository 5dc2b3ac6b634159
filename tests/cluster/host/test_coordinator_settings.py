"""The settings of a broker's coordinators come from the broker's configs, and else are Kafka's."""

import pytest

from rackspan.cluster.core.groups import GroupSettings
from rackspan.cluster.core.transactions import TransactionSettings
from rackspan.cluster.host.broker_runner import group_settings, transaction_settings


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ("group.initial.rebalance.delay.ms", "group_initial_rebalance_delay_ms"),
        ("group.min.session.timeout.ms", "group_min_session_timeout_ms"),
        ("group.max.session.timeout.ms", "group_max_session_timeout_ms"),
        ("group.max.size", "group_max_size"),
        ("offset.metadata.max.bytes", "offset_metadata_max_bytes"),
        ("offsets.topic.num.partitions", "offsets_topic_num_partitions"),
    ],
)
def test_a_group_coordinator_has_the_configs_of_its_broker(config: str, field: str) -> None:
    settings = group_settings({config: "77"})
    assert getattr(settings, field) == 77
    others = group_settings({})
    changed = [name for name in GroupSettings.__annotations__ if getattr(settings, name) != getattr(others, name)]
    assert changed == [field]


def test_a_group_coordinator_without_configs_has_kafkas_defaults() -> None:
    settings = group_settings({})
    assert settings.group_min_session_timeout_ms == 6_000
    assert settings.group_max_session_timeout_ms == 1_800_000
    assert settings.offset_metadata_max_bytes == 4_096


def test_a_transaction_coordinator_has_the_configs_of_its_broker() -> None:
    configs = {"transaction.max.timeout.ms": "77", "transaction.state.log.num.partitions": "3"}
    assert transaction_settings(configs) == TransactionSettings(77, 3)
    assert transaction_settings({}).transaction_max_timeout_ms == 900_000
    only = transaction_settings({"transaction.state.log.num.partitions": "3"})
    assert (only.transaction_max_timeout_ms, only.transaction_state_log_num_partitions) == (900_000, 3)
