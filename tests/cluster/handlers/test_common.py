import asyncio
from random import Random

import pytest

from rackspan.cluster.context import Call
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.coordination import OFFSETS_TOPIC
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.handlers.common import (
    RecordPosition,
    first_record_at,
    internal_partition,
    keyless_records,
    led_partition,
)
from rackspan.cluster.host.assembly import Assembly
from rackspan.model.ids import BrokerId, TopicPartition
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader
from tests.conformance.wire import batch
from tests.waiting import WITHIN_SECONDS

ONE, PARTITION = BrokerId(1), TopicPartition(OFFSETS_TOPIC, 7)


def test_a_coordinators_partition_is_waited_for_until_it_has_a_leader_and_no_longer() -> None:
    async def scene() -> None:
        settings = ClusterSettings(extra_configs={"offsets.topic.replication.factor": "1"})
        assembly = Assembly({ONE: None}, settings, Random(1))
        await assembly.start(10)
        try:
            broker = assembly.hosts[ONE].runner
            call: Call[None] = Call(RequestHeader(ApiKey.FETCH, 16, 1, None, 0), None, broker, "127.0.0.1")
            assert led_partition(call, PARTITION) is None
            state = await asyncio.wait_for(internal_partition(broker, *PARTITION), WITHIN_SECONDS)
            assert state is not None
            assert state.leader == ONE
            assert led_partition(call, PARTITION) is state
            assembly.controller.fence(ONE)
            await assembly.wait_for(lambda: broker.image.brokers[ONE].fenced, WITHIN_SECONDS)
            assert led_partition(call, PARTITION) is None
        finally:
            assembly.stop()

    asyncio.run(scene())


def test_a_batch_whose_compression_is_not_installed_counts_as_its_last_record(monkeypatch: pytest.MonkeyPatch) -> None:
    data = batch(*[one * 1000 for one in (b"x", b"y", b"z")], times=[1_000, 3_000, 2_000], compression=1)
    stored = RecordBatch(7, 9, 0, data, max_timestamp=3_000)
    assert first_record_at(stored, 2_000) == RecordPosition(1, 3_000)
    assert keyless_records(data) == [0, 1, 2]
    monkeypatch.setattr("kafka.codec.has_gzip", lambda: False)
    assert first_record_at(stored, 2_000) == RecordPosition(9, 3_000)
    assert keyless_records(data) == []
