"""The group coordinator's configuration, by the names of Kafka's broker configs. Some defaults are for tests."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Times in ms.

    Kafka's defaults, but for two: no initial delay (3,000 in Kafka) and ten partitions of `__consumer_offsets` (50),
    because a test's cluster should start at once. A test that kills members lowers `group.min.session.timeout.ms`.
    """

    group_initial_rebalance_delay_ms: int = 0
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4096
    offsets_topic_num_partitions: int = 10
    new_member_join_timeout_ms: int = 300_000
    """A new member whose join waits sends no heartbeats; after this time its client counts as lost (Kafka's constant)."""
