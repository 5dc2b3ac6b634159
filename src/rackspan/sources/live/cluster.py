"""A snapshot of a running cluster, over Kafka's own protocol (Kafka 3.x and 4.x).

Required rights: Describe on Cluster, and Describe and DescribeConfigs on every topic. With fewer, the snapshot is marked
partial and names the missing right.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rackspan.client.cluster import ConnectionSettings
from rackspan.errors import ClusterUnreachable, SourceError
from rackspan.model import ReadSnapshot
from rackspan.sources.live.cluster_reader import read_responses
from rackspan.sources.live.snapshot_assembly import assemble


def repeated_reader(connection: ConnectionSettings, *, sizes: bool = True) -> Callable[[], ReadSnapshot]:
    """Reads the cluster at each call. If no bootstrap server responds, the brokers that the last snapshot listed are tried."""
    known: list[str] = []

    def read() -> ReadSnapshot:
        try:
            snapshot = read_cluster(connection, sizes=sizes)
        except ClusterUnreachable as error:
            if not known:
                raise
            with suppress(SourceError):
                return read_cluster(replace(connection, bootstrap_servers=",".join(known)), sizes=sizes)
            raise error from None
        known[:] = [f"{broker.host}:{broker.port}" for broker in snapshot.snapshot.brokers if broker.host is not None]
        return snapshot

    return read


def utc_now() -> datetime:
    return datetime.now(UTC)


def steady_clock() -> Callable[[], datetime]:
    """A clock that begins with the machine's time and is not set afterwards, for the time between readings."""
    began, at = utc_now(), _steady_seconds()
    return lambda: began + timedelta(seconds=_steady_seconds() - at)


def _steady_seconds() -> float:
    # Of the two only the first counts while the machine sleeps, in which a cluster goes on; macOS has the second alone.
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def read_cluster(
    connection: ConnectionSettings, *, now: Callable[[], datetime] = utc_now, sizes: bool = True
) -> ReadSnapshot:
    """The state of a cluster, with a warning about a release that is newer than those tested.

    `now` is called once, before anything is read. Without `sizes`, log sizes are not requested. Returns within
    `connection.timeout_seconds` and two more. Errors: ClusterUnreachable, ClusterUnauthorized (names the missing right),
    ClusterRequestFailed, UsageError for settings that are not supported.
    """
    taken_at = now()
    responses = read_responses(connection, sizes=sizes)
    return ReadSnapshot(assemble(responses, taken_at), responses.warnings)
