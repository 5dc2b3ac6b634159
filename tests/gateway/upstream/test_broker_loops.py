"""Tasks that work for brokers: one a broker at any time, and woken sooner than they slept for."""

import asyncio

from rackspan.gateway.upstream.guard_readers import BrokerLoops
from tests.waiting import WITHIN_SECONDS


def test_a_broker_has_one_task_also_where_one_ends_while_the_next_begins() -> None:
    async def scenario() -> int:
        loop = asyncio.get_running_loop()
        wanted = at_once = most = 0

        def wake() -> None:
            nonlocal wanted
            wanted = 1
            loops.wake(1)

        def wanted_at(_broker: int) -> float | None:
            if wanted:
                return 0.0
            # After the task's last look, before the callback that says it has ended.
            loop.call_soon(wake)
            loop.call_later(0.001, wake)
            return None

        async def work(_broker: int) -> None:
            nonlocal wanted, at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.005)
            wanted = 0
            at_once -= 1

        loops = BrokerLoops(wanted_at, work, lambda *_: None)
        wake()
        await asyncio.sleep(0.1)
        loops.close()
        return most

    assert asyncio.run(scenario()) == 1


def test_a_task_that_sleeps_is_woken_for_what_is_wanted_sooner() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        wanted_at: list[float | None] = [loop.time() + 600]
        worked = asyncio.Event()

        async def work(_broker: int) -> None:
            wanted_at[0] = None
            worked.set()

        loops = BrokerLoops(lambda broker: wanted_at[0] if broker == 1 else None, work, lambda *_: None)
        loops.wake(1)
        await asyncio.sleep(0.01)
        wanted_at[0] = loop.time()
        loops.wake(1)
        await asyncio.wait_for(worked.wait(), WITHIN_SECONDS)
        loops.close()
        return 0.0

    asyncio.run(scenario())
