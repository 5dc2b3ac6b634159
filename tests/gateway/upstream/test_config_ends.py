"""The lease on the config topic before brokers of few lines: which log ends renew it, and where records come from."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rackspan.client.login import Login
from rackspan.gateway.core.config_lease import LEASE_SECONDS, ConfigLease
from rackspan.gateway.upstream import config_ends, config_topic, config_writer
from rackspan.gateway.upstream.config_ends import ConfigEndReader, lease_time
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponseData,
    ListOffsetsTopicResponse,
)
from tests.client.fake_broker import FakeBroker, Handle
from tests.gateway.upstream.test_config_topic import CONFIGS, Leader, brokers, cluster_of, metadata, until
from tests.waiting import WITHIN_SECONDS

DEBUGGING = -2


@pytest.mark.skipif(
    not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux has a clock that runs on while the machine is suspended"
)
def test_a_lease_is_timed_by_the_clock_that_runs_on_while_the_machine_is_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: 7200.0}.__getitem__)
    assert lease_time() == 7200.0


class Replica(Leader):
    """The log of a broker that responds to replica id -2 with its end, and to a consumer with the high watermark."""

    async def list_offsets(self, request: Any) -> ListOffsetsResponseData:
        if request.replica_id != DEBUGGING:
            return await super().list_offsets(request)
        partition = ListOffsetsPartitionResponse(partition_index=0, error_code=0, offset=len(self.batches))
        return ListOffsetsResponseData(topics=[ListOffsetsTopicResponse(name=CONFIGS, partitions=[partition])])


async def silent(_request: Any) -> None:
    """No response: the link is half-open."""


def serve(broker: FakeBroker, log: Leader, ports: dict[int, int], epoch: int = 5) -> None:
    respond = metadata(ports, 1, epoch)

    async def in_sync(request: Any) -> Any:
        response: Any = await respond(request)
        response.topics[0].partitions[0].isr_nodes = [*ports]
        return response

    broker.handles |= {
        ApiKey.METADATA: in_sync,
        ApiKey.PRODUCE: log.produce,
        ApiKey.FETCH: log.fetch,
        ApiKey.LIST_OFFSETS: log.list_offsets,
    }


@asynccontextmanager
async def followed_replicas() -> AsyncIterator[tuple[ConfigTopic, list[Any], list[FakeBroker], list[Replica]]]:
    """A topic of three replicas that is followed and leased; the leader is the first."""
    replayed: list[Any] = []
    async with brokers(3) as made:
        ports = {one: broker.port for one, broker in enumerate(made, 1)}
        logs = [Replica() for _ in made]
        for broker, log in zip(made, logs, strict=True):
            serve(broker, log, ports)
        cluster = cluster_of(*ports.values())
        topic = ConfigTopic(CONFIGS, cluster, Login(), lambda key, value: replayed.append((key, value)))
        tasks = [asyncio.create_task(work) for work in (topic.follow(), topic.ends.follow())]
        try:
            async with asyncio.timeout(WITHIN_SECONDS):
                await until(topic.ends.is_current)
                yield topic, replayed, made, logs
        finally:
            for task in tasks:
                task.cancel()
            topic.close()
            cluster.close()


async def lapsed(topic: ConfigTopic) -> None:
    """Until the lease has ended, LEASE_SECONDS earlier than it would."""
    topic.lease._read_at.clear()
    topic.lease.began_at -= LEASE_SECONDS
    await until(lambda: not topic.ends.is_current())


def test_a_leader_that_does_not_respond_ends_no_lease() -> None:
    async def scenario() -> None:
        async with followed_replicas() as (topic, _, made, _):
            for key in (ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA):
                made[0].handles[key] = silent
            began_at = topic.lease.began_at
            # The first lease has ended by then.
            await until(lambda: topic.lease.began_at > began_at + LEASE_SECONDS)
            assert topic.ends.is_current()

    asyncio.run(scenario())


def test_a_topic_without_a_leader_stays_leased_while_two_replicas_that_were_in_sync_respond() -> None:
    async def scenario() -> None:
        async with followed_replicas() as (topic, _, made, _):
            for key in (ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA):
                made[0].handles[key] = silent
            for broker in made[1:]:
                broker.handles[ApiKey.METADATA] = without_a_leader(broker.handles[ApiKey.METADATA])
            began_at = topic.lease.began_at
            await until(lambda: topic.lease.began_at > began_at + LEASE_SECONDS)
            assert topic.ends.is_current()
            made[1].handles[ApiKey.LIST_OFFSETS] = silent
            await until(lambda: not topic.ends.is_current())

    asyncio.run(scenario())


def without_a_leader(respond: Handle) -> Handle:
    async def leaderless(request: Any) -> Any:
        response: Any = await respond(request)
        partition = response.topics[0].partitions[0]
        partition.leader_id, partition.leader_epoch = -1, partition.leader_epoch + 1
        return response

    return leaderless


def test_a_record_that_the_leader_does_not_send_is_read_from_a_follower() -> None:
    async def scenario() -> None:
        async with followed_replicas() as (topic, replayed, made, logs):
            made[0].handles[ApiKey.FETCH] = made[0].handles[ApiKey.LIST_OFFSETS] = silent
            await until(lambda: made[0].received[-1] is ApiKey.FETCH)
            for log in logs:
                log.append(b"a", b"2")
            await until(lambda: replayed == [(b"a", b"2")])
            began_at = topic.lease.began_at
            await until(lambda: topic.lease.began_at > began_at)

    asyncio.run(scenario())


def test_a_record_that_is_not_committed_ends_the_lease(caplog: pytest.LogCaptureFixture) -> None:
    """Two of three logs have it: it may be acknowledged, and no high watermark that is read says so."""
    caplog.set_level(logging.INFO, config_ends.__name__)

    async def scenario() -> None:
        async with followed_replicas() as (topic, replayed, _, logs):
            for log in logs[1:]:
                log.behind = 1
                log.append(b"a", b"2")
            await lapsed(topic)
            assert (topic.ends.lapses, topic.ends.left_seconds, replayed) == (1, 0.0, [])
            await until(lambda: "; brokers 2, 3 have records that could not be read" in topic.ends.warning())
            for log in logs[1:]:
                log.behind = 0
            await until(topic.ends.is_current)
            assert replayed == [(b"a", b"2")]
            assert topic.ends.lapsed_seconds == 0.0

    asyncio.run(scenario())
    lines = [record.getMessage() for record in caplog.records if record.name == config_ends.__name__]
    assert lines[0] == lines[-1] == "the end of the config topic configs is read"
    assert "could not be read from 2 of its replicas in sync for 3 s, so that acks=all waits or is refused" in lines[1]


def test_one_replica_renews_no_lease() -> None:
    """A leader that was deposed and is cut off with the gateway."""

    async def scenario() -> None:
        async with followed_replicas() as (topic, _, made, _):
            for broker in made[1:]:
                broker.handles[ApiKey.LIST_OFFSETS] = silent
            renewed: list[bool] = []
            await lapsed(topic)
            topic.ends.renewed = lambda: renewed.append(True)
            # It is read on, and does not renew the lease.
            read = made[0].received.count(ApiKey.LIST_OFFSETS)
            await until(lambda: made[0].received.count(ApiKey.LIST_OFFSETS) > read + 3)
            assert (topic.ends.is_current(), renewed) == (False, [])
            assert topic.ends.lapsed_seconds > 0
            made[1].handles[ApiKey.LIST_OFFSETS] = made[0].handles[ApiKey.LIST_OFFSETS]
            await until(lambda: bool(renewed))

    asyncio.run(scenario())


def test_why_a_log_end_is_not_read_is_in_the_warning() -> None:
    async def scenario() -> str:
        async with followed_replicas() as (topic, _, made, logs):

            async def refused(_request: Any) -> ListOffsetsResponseData:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
                partition = ListOffsetsPartitionResponse(partition_index=0, error_code=error)
                return ListOffsetsResponseData(topics=[ListOffsetsTopicResponse(name=CONFIGS, partitions=[partition])])

            made[2].handles[ApiKey.LIST_OFFSETS] = refused
            await until(lambda: 3 in topic.ends.failures)
            warning = topic.ends.warning()
            made[2].handles[ApiKey.LIST_OFFSETS] = logs[2].list_offsets
            await until(lambda: not topic.ends.failures)
            return warning

    assert "(broker 3: error 6 from broker 3 for the log end of configs)" in asyncio.run(scenario())


def test_a_gateway_starts_without_a_lease_after_so_long() -> None:
    async def scenario() -> bool:
        async with brokers(1) as (broker,):

            async def read_on(_replica: int) -> None: ...

            lease = ConfigLease()
            lease.replayed(None, 0)
            lease.follow_replicas(None, 5, frozenset({1}))
            ends = ConfigEndReader(CONFIGS, cluster_of(broker.port), lease, read_on)
            broker.handles |= {ApiKey.METADATA: silent, ApiKey.LIST_OFFSETS: silent}
            await ends.begin(0.05)
            return ends.is_current()

    assert asyncio.run(scenario()) is False


def test_a_value_is_acknowledged_when_every_lease_has_ended_that_began_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the time that it takes: by the clock of leases, which the test moves."""
    passed = 0.0
    monkeypatch.setattr(config_topic, "SETTLE_SECONDS", 0.02)
    monkeypatch.setattr(config_topic, "lease_time", lambda: passed)
    waits = 0
    sleep = asyncio.sleep

    async def counted(seconds: float) -> None:
        nonlocal waits
        waits += seconds == 0.02
        await sleep(seconds)

    async def scenario() -> None:
        nonlocal passed
        async with followed_replicas() as (topic, replayed, made, logs):

            async def replicated(request: Any) -> Any:
                response = await logs[0].produce(request)
                logs[1].batches, logs[2].batches = [*logs[0].batches], [*logs[0].batches]
                return response

            async def held(self: Any, lead: Any, end_offset: int, racks: int, reasons: list[str]) -> None:
                """Tests of ConfigWriter are in test_config_writer.py."""

            monkeypatch.setattr(config_writer.ConfigWriter, "_held", held)
            made[0].handles[ApiKey.PRODUCE] = replicated
            monkeypatch.setattr(asyncio, "sleep", counted)
            writing = asyncio.create_task(topic.write(b"a", b"2", racks=2))
            await until(lambda: waits > 3)
            assert (writing.done(), replayed) == (False, [(b"a", b"2")])
            passed = 0.02
            await writing
            lowering = waits
            await topic.write(b"a", b"1")
            assert waits == lowering, "a value of 1 requires nothing"

    asyncio.run(scenario())
