"""A gateway in a thread of the test's process, with the event loop to itself."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

from rackspan.gateway.app import Gateway, open_gateway
from rackspan.gateway.config import parse_config
from rackspan.gateway.upstream import config_topic
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData
from tests.waiting import WITHIN_SECONDS

T = TypeVar("T")


class RunningGateway:
    """`run` executes a coroutine on the gateway's loop."""

    def __init__(self, gateway: Gateway, loop: asyncio.AbstractEventLoop) -> None:
        self.gateway = gateway
        self._loop = loop

    @property
    def bootstrap_servers(self) -> str:
        return self.gateway.bootstrap_servers

    def address(self, broker: int) -> tuple[str, int]:
        return self.gateway.listeners.by_broker[broker].advertised

    def run(self, work: Coroutine[Any, Any, T], seconds: float = 60) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def wait_for_isr(self) -> None:
        """Until every broker reports every ISR whole, and no sample is left from before."""
        self.run(self._isr_is_whole())

    async def _isr_is_whole(self) -> None:
        cluster = self.gateway.cluster
        for node in tuple(cluster.by_id):
            while True:
                connection = await cluster.connection(node)
                metadata = await connection.send(ApiKey.METADATA, MetadataRequestData(topics=None))
                partitions = [one for topic in metadata.topics for one in topic.partitions]
                if all(set(one.isr_nodes) == set(one.replica_nodes) for one in partitions):
                    break
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.06)

    def rack_check_failures(self) -> int:
        guarding = self.gateway.guarding
        return 0 if guarding is None else sum(guarding.produce.refusals.rack_check_failures.values())


def document(bootstrap_servers: str, **tables: Any) -> dict[str, Any]:
    """A config on free ports, as TOML would be parsed."""
    listen = {"first": {"port": 0}, **tables.pop("listen", {})}
    return {"bootstrap": {"servers": bootstrap_servers}, "listen": listen, **tables}


@contextmanager
def running(bootstrap_servers: str, **tables: Any) -> Iterator[RunningGateway]:
    """A value that is set is acknowledged without the wait for leases of other gateways: there are none."""
    config = parse_config(document(bootstrap_servers, **tables))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="gateway", daemon=True)
    thread.start()

    async def ended(gateway: Gateway) -> None:
        gateway.close()
        await asyncio.sleep(0.05)

    try:
        with patch.object(config_topic, "SETTLE_SECONDS", 0.0):
            gateway = asyncio.run_coroutine_threadsafe(open_gateway(config), loop).result(WITHIN_SECONDS)
            try:
                yield RunningGateway(gateway, loop)
            finally:
                asyncio.run_coroutine_threadsafe(ended(gateway), loop).result(WITHIN_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
