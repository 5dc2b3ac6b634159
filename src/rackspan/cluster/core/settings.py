"""The settings of an embedded cluster: times in milliseconds, sizes in bytes, defaults of topics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Elr(Enum):
    """Which replicas stay electable after leaving the ISR: the rule of the ELR."""

    OFF = "off"
    KAFKA = "kafka"
    """KIP-966: replicas that leave an ISR which then misses min.insync.replicas."""
    RACKS = "racks"
    """Also replicas that leave an ISR which then misses min.insync.racks: after the loss of any k - 1 racks a clean leader is left."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Fit for tests: an idle cluster's ISR is whole again within 2 s of a rack's return.

    `extra_configs` are broker configs by their Kafka names, for what has no field here (`replica.placer.class.name`).
    """

    session_timeout_ms: int = 3_000
    heartbeat_interval_ms: int = 300
    tick_interval_ms: int = 50
    replica_lag_time_max_ms: int = 2_000
    fetch_max_wait_ms: int = 500
    fetch_retry_ms: int = 1_500
    """How long a follower waits for a response before it fetches again; above `fetch_max_wait_ms`."""
    fetch_backoff_ms: int = 50
    metadata_max_wait_ms: int = 1_000
    metadata_retry_ms: int = 2_000
    alter_partition_retry_ms: int = 1_000
    registration_retry_ms: int = 500

    default_replication_factor: int = 3
    num_partitions: int = 1
    min_insync_replicas: int = 1
    min_insync_racks: int = 1
    unclean_leader_election: bool = False
    auto_create_topics: bool = True
    auto_leader_rebalance: bool = False
    leader_imbalance_check_interval_ms: int = 5_000

    replica_selector_class: str | None = None
    """RACK_AWARE_SELECTOR: leaders direct consumers to the replica in their rack (KIP-392). None: leaders serve, as in Kafka by default."""

    elr: Elr = Elr.RACKS
    extended_error_codes: bool = False

    fetch_max_bytes: int = 10 * 1024 * 1024
    fetch_max_partition_bytes: int = 1024 * 1024
    message_max_bytes: int = 1_048_588
    retention_check_interval_ms: int = 300_000
    """How often leaders delete records older than retention.ms."""
    cleaner_backoff_ms: int = 15_000
    """How often brokers look for logs to compact."""
    log_max_bytes: int = 256 * 1024 * 1024
    """A log larger than this loses its oldest batches even if retention.bytes is unlimited, so that memory is bounded.
    A topic that is only compacted loses nothing. A warning names the partition."""
    metadata_records_kept: int = 10_000
    """A broker further behind gets an image instead of records."""

    extra_configs: Mapping[str, str] = field(default_factory=dict)
