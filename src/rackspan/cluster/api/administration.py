"""What tests ask of a cluster without an admin client: topics made and configured, everything forgotten.

Runs in the cluster's loop, through a broker's own door to the controller: as an admin client's request would.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import CorrelationId
from rackspan.cluster.core.messages import (
    AdminResponse,
    AlterConfigs,
    AlterResource,
    ConfigOp,
    CreateTopics,
    DeleteTopics,
    Message,
    NewTopic,
)
from rackspan.cluster.core.metadata import ResourceType
from rackspan.cluster.host.assembly import Assembly
from rackspan.cluster.host.broker_host import BrokerHost
from rackspan.errors import UsageError
from rackspan.model.ids import BrokerId

TIMEOUT_MS: Final = 10_000
_SET: Final = 0
_DELETE: Final = 1


class Administration:
    """Of one cluster."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    async def create(
        self,
        topic: str,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str],
        replicas: Sequence[Sequence[int]],
    ) -> None:
        """Returns when every broker that hears the controller knows the topic. Errors: UsageError."""
        assigned = {index: tuple(map(BrokerId, row)) for index, row in enumerate(replicas)}
        wanted = NewTopic(topic, partitions, replication_factor, assigned, dict(config))
        _accepted(await self._asked(lambda correlation_id: CreateTopics(correlation_id, (wanted,))))

    async def alter(self, topic: str, config: Mapping[str, str | int | None]) -> None:
        """Errors: UsageError."""
        ops = tuple(_op(name, value) for name, value in config.items())
        resource = AlterResource(ResourceType.TOPIC, topic, ops)
        _accepted(await self._asked(lambda correlation_id: AlterConfigs(correlation_id, (resource,))))

    async def forget_everything(self) -> None:
        """Topics with all their records, groups and transactions with theirs, dynamic configs, counted traffic."""
        image = self._assembly.image
        topics = tuple(image.topics)
        brokers = [one.name for one in image.configs if one.type is ResourceType.BROKER]
        cleared = tuple(AlterResource(ResourceType.BROKER, name, ()) for name in brokers)
        _accepted(await self._asked(lambda correlation_id: DeleteTopics(correlation_id, topics)))
        _accepted(await self._asked(lambda correlation_id: AlterConfigs(correlation_id, cleared, replace=True)))
        self._assembly.traffic.clear()

    async def _asked(self, question: Callable[[CorrelationId], Message]) -> Sequence[AdminResponse]:
        host = self._heard()
        results: Sequence[AdminResponse] = await host.runner.requests.controller_response(question, TIMEOUT_MS, ())
        for one in self._assembly.hosts.values():
            if one.running and not one.frozen:
                await one.runner.metadata_updates.wait_until_caught_up(TIMEOUT_MS)
        return results

    def _heard(self) -> BrokerHost:
        """A broker that reaches the controller. Errors: UsageError."""
        for host in self._assembly.hosts.values():
            if host.running and not host.frozen and self._assembly.is_active(host.id):
                return host
        raise UsageError("no broker of this cluster reaches its controller; undo a fault first")


def _op(name: str, value: str | int | None) -> ConfigOp:
    key = name.replace("_", ".")
    return ConfigOp(key, _DELETE, None) if value is None else ConfigOp(key, _SET, str(value))


def _accepted(results: Iterable[AdminResponse]) -> None:
    for result in results:
        if result.error is not KafkaError.NONE:
            raise UsageError(f"{result.key}: {result.error.name}: {result.message or 'refused by the controller'}")
