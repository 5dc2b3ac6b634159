"""Tasks that work for brokers: one a broker at any time, and woken sooner than they slept for."""

import asyncio

from rackspan.gateway.upstream.broker_loops import BrokerLoops


def test_a_broker_has_one_task_however_often_it_ends_and_is_woken() -> None:
    async def scenario() -> int:
        wanted, at_once, most = [0], [0], [0]

        async def work(_broker: int) -> None:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
            wanted[0] = 0
            await asyncio.sleep(0.001)
            at_once[0] -= 1

        loops = BrokerLoops(lambda _: 0.0 if wanted[0] else None, work, lambda *_: None)
        for _ in range(300):
            wanted[0] = 1
            loops.wake(1)
            # Between the last look of a task and its callback.
            await asyncio.sleep(0)
            loops.wake(1)
            if _ % 7 == 0:
                await asyncio.sleep(0.002)
        loops.close()
        return most[0]

    assert asyncio.run(scenario()) == 1


def test_a_task_that_sleeps_is_woken_for_what_is_wanted_sooner() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        wanted_at: list[float | None] = [loop.time() + 600]
        worked = asyncio.Event()

        async def work(_broker: int) -> None:
            wanted_at[0] = None
            worked.set()

        loops = BrokerLoops(lambda _: wanted_at[0], work, lambda *_: None)
        loops.wake(1)
        await asyncio.sleep(0.01)
        wanted_at[0] = loop.time()
        loops.wake(1)
        await asyncio.wait_for(worked.wait(), 5)
        loops.close()
        return 0.0

    asyncio.run(scenario())
