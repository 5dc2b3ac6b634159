import asyncio
from random import Random

from rackspan.cluster.context import Call
from rackspan.cluster.core.coordination import OFFSETS_TOPIC
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.handlers.common import internal_partition, led_partition
from rackspan.cluster.host.assembly import Assembly
from rackspan.model.ids import BrokerId, TopicPartition
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader

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
            state = await asyncio.wait_for(internal_partition(broker, *PARTITION), 4)
            assert state is not None
            assert state.leader == ONE
            assert led_partition(call, PARTITION) is state
            assembly.controller.fence(ONE)
            await assembly.wait_for(lambda: broker.image.brokers[ONE].fenced, 10)
            assert led_partition(call, PARTITION) is None
        finally:
            assembly.stop()

    asyncio.run(scene())
