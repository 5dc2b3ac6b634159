"""The transaction coordinator's configuration, by the names of Kafka's broker configs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Times in ms. Kafka's defaults, but for ten partitions of `__transaction_state` (50)."""

    transaction_max_timeout_ms: int = 900_000
    transaction_state_log_num_partitions: int = 10
    marker_retry_ms: int = 100
    """The pause before a marker is sent again; Kafka's retry backoff."""
