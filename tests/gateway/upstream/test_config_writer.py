"""Records of the config topic: written again if they are refused, and held by as many racks as their value requires."""

import asyncio
import re
from typing import Any
from uuid import UUID

import pytest

from rackspan.errors import ClusterUnreachable
from rackspan.gateway.upstream import config_writer
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchResponseData,
    FetchResponseEpochEndOffset,
    FetchResponsePartitionData,
)
from rackspan.wire.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponseData,
    ListOffsetsTopicResponse,
)
from rackspan.wire.messages.produce import PartitionProduceResponse, ProduceResponseData, TopicProduceResponse
from tests.client.fake_broker import Handle
from tests.gateway.upstream.test_config_topic import CONFIGS, Leader, Log, brokers, dead_port, followed, metadata, until


def refusing(log: Log, *refusals: tuple[int, str | None]) -> Handle:
    """Produce with these errors, one after the other, and then the log's own response."""
    left = list(refusals)

    async def produce(request: Any) -> ProduceResponseData:
        if not left:
            return await log.produce(request)
        code, message = left.pop(0)
        refused = PartitionProduceResponse(index=0, error_code=code, error_message=message)
        return ProduceResponseData(responses=[TopicProduceResponse(name=CONFIGS, partition_responses=[refused])])

    return produce


def test_a_record_that_is_refused_is_written_again() -> None:
    async def scenario() -> None:
        log = Leader()
        async with followed(log) as (topic, replayed, leader):
            leader.handles[ApiKey.PRODUCE] = refusing(log, (6, None), (19, "too few"))
            await topic.write(b"a", b"1")
            assert replayed == [(b"a", b"1")]

    asyncio.run(scenario())


def test_a_record_is_written_over_another_connection_once_the_login_of_one_expires() -> None:
    async def scenario() -> None:
        async with followed(Leader()) as (topic, replayed, _):
            await topic.write(b"a", b"1")
            _, expired = topic._writer._connection or (0, None)
            assert expired is not None
            expired._expires_at = 0.0
            await topic.write(b"a", b"2")
            assert replayed == [(b"a", b"1"), (b"a", b"2")]
            assert expired.closed

    asyncio.run(scenario())


@pytest.mark.parametrize(("refusal", "shown"), [((6, None), "error 6"), ((19, "too few"), "too few")])
def test_a_record_that_cannot_be_written_is_an_error_with_the_last_reason(
    monkeypatch: pytest.MonkeyPatch, refusal: tuple[int, str | None], shown: str
) -> None:
    async def scenario() -> None:
        log, loop, later = Leader(), asyncio.get_running_loop(), 0.0
        clock = loop.time
        monkeypatch.setattr(loop, "time", lambda: clock() + later)
        async with followed(log) as (topic, _, leader):
            refused, requests = refusing(log, *[refusal] * 9), list[Any]()

            async def produce(request: Any) -> Any:
                nonlocal later
                # The time is over once a refusal has been received: at the request after it.
                later += config_writer.WRITE_SECONDS * len(requests)
                requests.append(request)
                return await refused(request)

            leader.handles[ApiKey.PRODUCE] = produce
            expected = (
                f"configs could not be written to 1 rack in 15 s, or not be read after that: {shown}; look at its"
            )
            with pytest.raises(ClusterUnreachable, match=re.escape(expected)):
                await topic.write(b"a", b"1")

    asyncio.run(scenario())


def test_the_time_of_a_write_begins_when_those_before_it_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request may set hundreds of values."""

    async def scenario() -> None:
        async with followed(Leader()) as (topic, replayed, _):
            monkeypatch.setattr(config_writer, "WRITE_SECONDS", 0.01)
            async with topic._writer._writing:
                write = asyncio.create_task(topic.write(b"a", b"1"))
                await asyncio.sleep(0.1)
                monkeypatch.undo()
            await write
            assert replayed == [(b"a", b"1")]

    asyncio.run(scenario())


def test_a_record_that_the_other_racks_do_not_show_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker 2 is in sync by the metadata, and is not there."""
    monkeypatch.setattr(config_writer, "WRITE_SECONDS", 0.4)

    async def scenario() -> None:
        log = Leader()
        async with followed(log) as (topic, replayed, leader):
            leader.handles[ApiKey.METADATA] = metadata({1: leader.port, 2: dead_port()}, 1, 5)
            await topic._cluster.refresh()
            with pytest.raises(
                ClusterUnreachable, match=r"could not be written to 2 racks in 0\.4 s, .*: no response; look"
            ):
                await topic.write(b"a", b"1", racks=2)
            # It is there all the same: what requires too much refuses, and loses nothing.
            await until(lambda: replayed == [(b"a", b"1")])

    asyncio.run(scenario())


TOPIC_ID = UUID(int=9)
NOT_LEADER_OR_FOLLOWER = 6
NOT_READY = 13
"""An error of a whole response to Fetch."""


def two_replicas(ports: dict[int, int], epoch: int) -> Handle:
    """Metadata as of test_config_topic.py, with the topic's id."""
    respond = metadata(ports, 1, epoch)

    async def with_id(request: Any) -> Any:
        response: Any = await respond(request)
        response.topics[0].topic_id = TOPIC_ID
        return response

    return with_id


def replicas(ports: dict[int, int], ids: tuple[int, ...]) -> Handle:
    """The same with these replicas, all in sync."""
    respond = two_replicas(ports, 5)

    async def with_replicas(request: Any) -> Any:
        response: Any = await respond(request)
        (partition,) = response.topics[0].partitions
        partition.replica_nodes = partition.isr_nodes = [*ids]
        return response

    return with_replicas


async def no_replica(_request: Any) -> ListOffsetsResponseData:
    partition = ListOffsetsPartitionResponse(partition_index=0, error_code=NOT_LEADER_OR_FOLLOWER)
    return ListOffsetsResponseData(topics=[ListOffsetsTopicResponse(name=CONFIGS, partitions=[partition])])


def log_end(requests: list[Any], *ends: tuple[int, int]) -> Handle:
    """Fetch of a follower whose log ends at these epochs and offsets, one after the other, the last for good."""
    left = list(ends)

    async def fetch(request: Any) -> FetchResponseData:
        requests.append(request)
        epoch, end = left.pop(0) if len(left) > 1 else left[0]
        diverging = FetchResponseEpochEndOffset(epoch=epoch, end_offset=end)
        partition = FetchResponsePartitionData(partition_index=0, diverging_epoch=diverging, records=[])
        (topic,) = request.topics
        return FetchResponseData(responses=[FetchableTopicResponse(topic_id=topic.topic_id, partitions=[partition])])

    return fetch


def test_a_record_is_written_when_the_log_of_another_rack_shows_it() -> None:
    """At the first reading broker 2 has not fetched it yet."""
    requests: list[Any] = []

    async def scenario() -> None:
        log = Leader()
        async with followed(log) as (topic, replayed, leader), brokers(1) as (follower,):
            leader.handles[ApiKey.METADATA] = two_replicas({1: leader.port, 2: follower.port}, 5)
            follower.handles[ApiKey.FETCH] = log_end(requests, (5, 0), (5, 1))
            await topic._cluster.refresh()
            await topic.write(b"a", b"1", racks=2)
            assert replayed == [(b"a", b"1")]
            assert log.batches[1:] == [], "it is written once"

    asyncio.run(scenario())
    assert len(requests) == 2
    (read,) = requests[0].topics
    assert (read.topic_id, read.partitions[0].last_fetched_epoch) == (TOPIC_ID, 5)


def test_of_four_replicas_three_hold_a_record_before_it_counts() -> None:
    """Two racks show it with the second: a lease could begin by the logs of the third and the fourth."""
    requests: list[Any] = []

    async def scenario() -> None:
        async with followed(Leader()) as (topic, _, leader), brokers(3) as followers:
            ports = {1: leader.port, **{one: follower.port for one, follower in enumerate(followers, 2)}}
            for broker in (leader, *followers):
                broker.handles[ApiKey.METADATA] = replicas(ports, (1, 2, 3, 4))
            for follower, end in zip(followers, (1, 0, 0), strict=True):
                follower.handles[ApiKey.FETCH] = log_end(requests, (5, end))
            await topic._cluster.refresh()
            lead = await topic._leader.find()
            holding = asyncio.create_task(topic._writer._held(lead, 1, 2, []))
            await until(lambda: len(requests) > 6)
            assert not holding.done()
            followers[2].handles[ApiKey.FETCH] = log_end(requests, (5, 1))
            await holding

    asyncio.run(scenario())


def test_a_broker_that_still_shows_a_removed_replica_without_the_record_is_waited_for() -> None:
    async def scenario() -> None:
        async with followed(Leader()) as (topic, _, leader), brokers(2) as (follower, removed):
            ports = {1: leader.port, 2: follower.port, 7: removed.port}
            leader.handles[ApiKey.METADATA] = follower.handles[ApiKey.METADATA] = replicas(ports, (1, 2))
            follower.handles[ApiKey.FETCH] = log_end([], (5, 9))
            # Its metadata is from before the new set of replicas, and its log ends where the topic was then.
            removed.handles |= {ApiKey.METADATA: replicas(ports, (1, 7)), ApiKey.LIST_OFFSETS: Leader().list_offsets}
            await topic._cluster.refresh()
            lead, reasons = await topic._leader.find(), list[str]()
            holding = asyncio.create_task(topic._writer._held(lead, 1, 2, reasons))
            await until(lambda: bool(reasons))
            assert (reasons[0], holding.done()) == ("broker 7 still shows a replica that was removed", False)
            removed.handles[ApiKey.LIST_OFFSETS] = no_replica
            await holding

    asyncio.run(scenario())


def test_a_log_that_a_follower_refuses_to_show_is_requested_again_and_the_record_is_written_once() -> None:
    requests: list[Any] = []

    async def scenario() -> None:
        log = Leader()
        async with followed(log) as (topic, _, leader), brokers(1) as (follower,):
            shown = log_end(requests, (5, 1))

            async def fetch(request: Any) -> Any:
                response: Any = await shown(request)
                response.error_code = 0 if len(requests) > 1 else NOT_READY
                return response

            leader.handles[ApiKey.METADATA] = two_replicas({1: leader.port, 2: follower.port}, 5)
            follower.handles[ApiKey.FETCH] = fetch
            await topic._cluster.refresh()
            await topic.write(b"a", b"1", racks=2)
            assert (len(requests), len(log.batches)) == (2, 1)

    asyncio.run(scenario())


def test_under_another_leader_a_record_is_written_again() -> None:
    requests: list[Any] = []

    async def scenario() -> None:
        log = Leader()
        async with followed(log) as (topic, _, leader), brokers(1) as (follower,):
            ports = {1: leader.port, 2: follower.port}
            leader.handles[ApiKey.METADATA] = two_replicas(ports, 5)
            follower.handles[ApiKey.FETCH] = log_end(requests, (5, 0))
            await topic._cluster.refresh()
            writing = asyncio.create_task(topic.write(b"a", b"1", racks=2))
            await until(lambda: bool(requests))
            # The leader of epoch 6 may lack what the one of epoch 5 appended.
            follower.handles[ApiKey.FETCH] = log_end(requests, (6, 2))
            leader.handles[ApiKey.METADATA] = two_replicas(ports, 6)
            await writing
            assert len(log.batches) == 2

    asyncio.run(scenario())
