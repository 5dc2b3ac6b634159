"""A snapshot of a running cluster, over Kafka's own protocol (Kafka 3.x and 4.x).

What a snapshot takes: Describe on Cluster, and Describe and DescribeConfigs on every topic. With less it is marked
partial, and says which right is missing.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from rackspan.model import ClusterSnapshot
from rackspan.sources.live.cluster_reader import interview
from rackspan.sources.live.connection import ConnectionSettings
from rackspan.sources.live.snapshot_assembly import assemble


def utc_now() -> datetime:
    return datetime.now(UTC)


def read_cluster(
    connection: ConnectionSettings, *, now: Callable[[], datetime] = utc_now, sizes: bool = True
) -> ClusterSnapshot:
    """One moment of a cluster: `now` is asked once, before anything is read. Without `sizes` no log's size is asked for.

    Returns within `connection.timeout_seconds` and two more. Errors: ClusterUnreachable, ClusterUnauthorized (names the
    missing right), ClusterRequestFailed, UsageError for settings that cannot be followed.
    """
    taken_at = now()
    return assemble(interview(connection, sizes=sizes), taken_at)
