"""A cluster that is read again and again, some of whose brokers go away, with scripted readings."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from rackspan.client.cluster import ConnectionSettings
from rackspan.errors import ClusterUnauthorized, ClusterUnreachable, SourceError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, ReadSnapshot, columns
from rackspan.sources.live import cluster

NOTHING = columns(topic=[], partition=[], leader=[], replicas=[], isr=[])
BROKERS = (Broker(BrokerId(1), host="a", port=1), Broker(BrokerId(2), host="b", port=2), Broker(BrokerId(3)))
SNAPSHOT = ClusterSnapshot(brokers=BROKERS, topics=(), partitions=NOTHING)
GONE, GONE_TOO = ClusterUnreachable("nobody responds"), ClusterUnreachable("nor does anybody here")
REFUSED = ClusterUnauthorized("no right")


@pytest.mark.parametrize(
    ("readings", "results", "servers"),
    [
        ([SNAPSHOT, SNAPSHOT], [SNAPSHOT, SNAPSHOT], ["c:9", "c:9"]),
        ([GONE, SNAPSHOT], [GONE, SNAPSHOT], ["c:9", "c:9"]),
        ([SNAPSHOT, GONE, SNAPSHOT], [SNAPSHOT, SNAPSHOT], ["c:9", "c:9", "a:1,b:2"]),
        ([SNAPSHOT, GONE, GONE_TOO], [SNAPSHOT, GONE], ["c:9", "c:9", "a:1,b:2"]),
        ([SNAPSHOT, REFUSED], [SNAPSHOT, REFUSED], ["c:9", "c:9"]),
    ],
)
def test_without_its_servers_the_brokers_of_the_last_snapshot_are_tried_and_the_first_error_counts(
    readings: list[ClusterSnapshot | SourceError],
    results: list[ClusterSnapshot | SourceError],
    servers: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []
    left = iter(readings)

    def read_cluster(connection: ConnectionSettings, *, sizes: bool) -> ReadSnapshot:
        assert not sizes
        tried.append(connection.bootstrap_servers)
        reading = next(left)
        if isinstance(reading, SourceError):
            raise reading
        return ReadSnapshot(reading, ("a newer Kafka",))

    monkeypatch.setattr(cluster, "read_cluster", read_cluster)
    read = cluster.repeated_reader(ConnectionSettings("c:9"), sizes=False)
    for result in results:
        if isinstance(result, SourceError):
            with pytest.raises(type(result)) as raised:
                read()
            assert raised.value is result
        else:
            assert read() == ReadSnapshot(result, ("a newer Kafka",))
    assert tried == servers


@pytest.mark.parametrize(("boottime", "passed"), [(True, 30.0), (False, 5.0)])
def test_the_time_between_readings_counts_while_the_machine_sleeps_where_a_clock_does(
    boottime: bool, passed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine slept for 25 of 30 seconds, and its own time was set back by an hour."""
    since_start, awake = [100.0], [60.0]
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    monkeypatch.setattr(cluster, "utc_now", lambda: now)
    monkeypatch.setattr(time, "monotonic", lambda: awake[0])
    monkeypatch.setattr(time, "clock_gettime", lambda clock: {7: since_start}[clock][0])
    if boottime:
        monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    else:
        monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    clock = cluster.steady_clock()
    assert clock() == now
    since_start[0], awake[0] = 130.0, 65.0
    monkeypatch.setattr(cluster, "utc_now", lambda: now - timedelta(hours=1))
    assert clock() == now + timedelta(seconds=passed)
