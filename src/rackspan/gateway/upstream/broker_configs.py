"""Configs of brokers as Kafka has them, and the values of min.insync.racks among them, which nothing enforces.

Kafka accepts any unknown name as a config of a broker, dynamic or in its file, and shows it without a value, as sensitive.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from rackspan.client.identity import described_broker
from rackspan.errors import ClusterRequestFailed, RackspanError
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.model import MIN_INSYNC_RACKS
from rackspan.wire.messages.configs import DescribeConfigsResourceResult

log = logging.getLogger(__name__)

READ_SECONDS: Final = 60.0
"""Between two reads of every broker's configs."""

_BROKER, _DEFAULT = 2, 3
"""Kafka's ConfigSource; any other is the broker's own file."""


async def broker_config(cluster: UpstreamCluster, broker: int, key: str) -> DescribeConfigsResourceResult | None:
    """One config of one broker, which only that broker serves; None if it has none. Errors: OSError, RackspanError."""
    result = await described_broker(await cluster.connection(broker), broker, key)
    if result.error_code != 0:
        raise ClusterRequestFailed(
            f"{result.error_message or result.error_code}; grant DESCRIBE_CONFIGS on the cluster"
        )
    return next((found for found in result.configs if found.name == key), None)


class UnenforcedValues:
    """Values of min.insync.racks that were set at Kafka itself, where they guard nothing."""

    def __init__(self, cluster: UpstreamCluster) -> None:
        self._cluster = cluster
        self._sources: dict[int, frozenset[int]] = {}
        """Where each broker has one. One that does not respond keeps what it reported last as long as it is registered."""

    async def follow(self) -> None:
        """Read until cancelled, and log what is new."""
        logged: set[str] = set()
        while True:
            await self.read()
            warnings = set(self.warnings())
            for warning in sorted(warnings - logged):
                log.warning("%s", warning)
            logged = warnings
            await asyncio.sleep(READ_SECONDS)

    async def read(self) -> None:
        """Read every broker that responds."""
        for broker in sorted(self._cluster.by_id):
            try:
                found = await broker_config(self._cluster, broker, MIN_INSYNC_RACKS)
            except (OSError, RackspanError) as error:
                log.debug("configs of broker %d could not be read: %s", broker, error)
                continue
            # A cluster that has this config shows its value, and enforces it.
            is_unknown = found is not None and found.is_sensitive
            synonyms = found.synonyms if found is not None and is_unknown else ()
            self._sources[broker] = frozenset(synonym.source for synonym in synonyms)
        if self._sources.keys() - set(self._cluster.by_id):
            with suppress(OSError, RackspanError):
                registered = {broker.id for broker in await self._cluster.registered(())}
                self._sources = {broker: found for broker, found in self._sources.items() if broker in registered}

    @property
    def count(self) -> int | None:
        """How many there are; None if no broker has shown its configs."""
        return len(list(self.warnings())) if self._sources else None

    def warnings(self) -> Iterator[str]:
        """A sentence for each, with what takes it away."""
        if any(_DEFAULT in sources for sources in self._sources.values()):
            yield _warning("the default of all brokers", _deletion("--entity-default"))
        for broker, sources in sorted(self._sources.items()):
            if _BROKER in sources:
                yield _warning(f"broker {broker}", _deletion(f"--entity-name {broker}"))
            if sources - {_BROKER, _DEFAULT}:
                yield _warning(f"the file of broker {broker}", "remove it there and restart the broker")


def _warning(place: str, remedy: str) -> str:
    return (
        f"{place} has {MIN_INSYNC_RACKS} at Kafka itself, which does not know it, so that it guards nothing: {remedy}; "
        "set the value through the gateway"
    )


def _deletion(entity: str) -> str:
    return (
        f"delete it by kafka-configs.sh --bootstrap-server with a broker's own address, --entity-type brokers {entity} "
        f"--alter --delete-config {MIN_INSYNC_RACKS}"
    )
