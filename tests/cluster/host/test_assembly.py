"""The cluster's own loop, and what its brokers owe to it."""

import asyncio
import time
from random import Random

from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.assembly import Assembly
from rackspan.model.ids import BrokerId, RackId


def test_no_broker_is_fenced_after_a_suspended_process_resumes() -> None:
    async def stopped_for_several_sessions() -> None:
        settings = ClusterSettings(session_timeout_ms=1_000, heartbeat_interval_ms=100)
        assembly = Assembly({BrokerId(one): RackId(f"r{one}") for one in (1, 2)}, settings, Random(1))
        await assembly.start(10)
        try:
            before = assembly.image.offset
            time.sleep(2.5)  # The loop itself is kept.

            await asyncio.sleep(0.3)
            assert assembly.image.offset == before
        finally:
            assembly.stop()

    asyncio.run(stopped_for_several_sessions())
