"""Fetch as an old client and a waiting one see it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.context import Call, DelayedFetches, Path
from rackspan.cluster.handlers.fetch import _DelayedFetch
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader
from rackspan.wire.messages.fetch import FetchPartition, FetchRequestData, FetchResponsePartitionData, FetchTopic
from tests.cluster.raw import batch, produced, response_to
from tests.waiting import WITHIN_SECONDS


def fetched(
    cluster: EmbeddedCluster,
    broker: int,
    topic: str,
    version: int,
    *,
    offset: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
) -> FetchResponsePartitionData:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequestData(
        max_wait=max_wait_ms, min_bytes=min_bytes, topics=[FetchTopic(topic=topic, partitions=[partition])]
    )
    response = response_to(cluster.address(broker), ApiKey.FETCH, version, request)
    found: FetchResponsePartitionData = response.responses[0].partitions[0]
    return found


def test_followers_serve_clients_from_version_11_on(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("followed", replicas=[[1, 2]])
    assert produced(cluster.address(1), "followed").error_code == 0
    for version, error in (
        (10, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (11, ErrorCode.NONE),
        (12, ErrorCode.NONE),
    ):
        assert fetched(cluster, 2, "followed", version).error_code == error
        assert fetched(cluster, 1, "followed", version).error_code == ErrorCode.NONE


def test_a_topic_of_an_id_that_there_is_not_has_an_error_and_no_records(cluster: EmbeddedCluster) -> None:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequestData(topics=[FetchTopic(topic_id=UUID(int=99), partitions=[partition])])
    (topic,) = response_to(cluster.address(1), ApiKey.FETCH, 13, request).responses
    assert topic.topic_id == UUID(int=99)
    assert [(one.error_code, one.records or ()) for one in topic.partitions] == [(ErrorCode.UNKNOWN_TOPIC_ID, ())]


def test_a_fetch_that_waits_gets_the_record_that_is_produced_meanwhile(cluster: EmbeddedCluster) -> None:
    """Its own wait is longer than the test's connection lives."""
    cluster.create_topic("awaited", replicas=[[1, 2]])
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(fetched, cluster, 1, "awaited", 11, max_wait_ms=3_600_000)
        assert produced(cluster.address(1), "awaited").error_code == 0
        assert waiting.result().records


def test_a_client_whose_records_were_truncated_gets_the_place_where_the_logs_part(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("diverged", replicas=[[1, 2]])
    assert produced(cluster.address(1), "diverged").error_code == 0
    partition = FetchPartition(partition=0, fetch_offset=5, last_fetched_epoch=0, partition_max_bytes=1 << 20)
    request = FetchRequestData(topics=[FetchTopic(topic="diverged", partitions=[partition])])
    [found] = response_to(cluster.address(1), ApiKey.FETCH, 12, request).responses[0].partitions
    assert (found.error_code, found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 0, 1)
    assert not found.records


def test_a_fetch_of_a_session_that_was_never_given_is_an_error(cluster: EmbeddedCluster) -> None:
    response = response_to(cluster.address(1), ApiKey.FETCH, 12, FetchRequestData(session_id=7, session_epoch=3))
    assert (response.error_code, response.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)


def test_a_fetch_that_waits_for_more_than_a_record_gets_them_together(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("several", replicas=[[1, 2]])
    one = len(batch(b"x"))
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(fetched, cluster, 1, "several", 11, max_wait_ms=3_600_000, min_bytes=2 * one + 1)
        for _ in range(3):
            assert produced(cluster.address(1), "several").error_code == 0
        assert len(waiting.result().records or b"") >= 2 * one + 1


def test_the_bytes_of_a_producer_are_counted_by_topic_and_by_the_rack_they_go_to(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("counted", replicas=[[1, 2]])
    before = cluster.traffic()
    assert produced(cluster.address(1), "counted").error_code == 0
    new = {flow: size for flow, size in cluster.traffic().items() if before.get(flow) != size}
    [(flow, size)] = [(flow, size) for flow, size in new.items() if flow.path is Path.PRODUCE]
    assert (flow.topic, flow.from_rack, flow.to_rack, size) == ("counted", None, "r1", len(batch(b"x")))


def test_a_fetch_from_a_broker_that_does_not_lead_gets_the_leader(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("led", replicas=[[2, 1]])
    found = fetched(cluster, 3, "led", 12)
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert found.current_leader is not None
    assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (2, 0)


def test_a_fetch_that_is_over_waits_at_no_partition_any_more() -> None:
    async def scene() -> None:
        waiting: list[object] = []
        places = SimpleNamespace(
            add=lambda _, retry: waiting.append(retry), remove=lambda _, retry: waiting.remove(retry)
        )
        broker: Any = SimpleNamespace(delayed_fetches=places)
        call = Call(RequestHeader(ApiKey.FETCH, 12, 1, None, 0), FetchRequestData(), broker, "")
        never: Any = SimpleNamespace(partitions=[], max_wait_ms=3_600_000)
        delayed = _DelayedFetch(call, never)
        assert len(waiting) == 1
        delayed.response.cancel()
        await asyncio.sleep(0)
        assert waiting == []

    asyncio.run(scene())


def test_a_fetch_whose_time_ends_after_its_broker_was_killed_is_dropped_without_a_fault() -> None:
    """Before its connection has ended, which drops it too."""

    class Killed:
        delayed_fetches = DelayedFetches()

        @property
        def core(self) -> Any:
            raise asyncio.CancelledError("broker 1 is not running")

    async def scene() -> list[dict[str, Any]]:
        faults: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
        call: Any = SimpleNamespace(broker=Killed(), request=FetchRequestData(), version=12)
        fetch: Any = SimpleNamespace(max_wait_ms=1, partitions=[], read=lambda _core: None)
        await asyncio.wait([_DelayedFetch(call, fetch).response], timeout=WITHIN_SECONDS)
        return faults

    assert asyncio.run(scene()) == []
