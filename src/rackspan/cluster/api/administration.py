"""Administration: topics created and configured, and a cluster reset, without an admin client.

Runs in the cluster's event loop. Its requests go through a broker to the controller, as an admin client's do.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from rackspan.cluster.context import BuildRequest
from rackspan.cluster.core.admin_messages import (
    AdminResponse,
    AlterClientQuotas,
    AlterConfigs,
    AlterResource,
    AlterScramCredentials,
    ConfigOp,
    CreateTopics,
    DeleteTopics,
    NewTopic,
    QuotaAlteration,
    ScramDeletion,
)
from rackspan.cluster.host.assembly import Assembly
from rackspan.cluster.host.broker_host import BrokerHost
from rackspan.errors import UsageError
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId

TIMEOUT_MS: Final = 10_000
_SET: Final = 0
_DELETE: Final = 1


class Administration:
    """The topics and configs of one cluster, created and altered."""

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
        """Returns when every broker that the controller reaches has the topic in its metadata. Errors: UsageError."""
        assignments = {index: tuple(map(BrokerId, row)) for index, row in enumerate(replicas)}
        new_topic = NewTopic(topic, partitions, replication_factor, assignments, dict(config))
        _raise_error(await self._responses(lambda correlation_id: CreateTopics(correlation_id, (new_topic,))))

    async def alter(self, topic: str, config: Mapping[str, str | int | None]) -> None:
        """Errors: UsageError."""
        ops = tuple(_op(name, value) for name, value in config.items())
        resource = AlterResource(ConfigResourceType.TOPIC, topic, ops)
        _raise_error(await self._responses(lambda correlation_id: AlterConfigs(correlation_id, (resource,))))

    async def delete_everything(self) -> None:
        """Topics with all their records, groups and transactions with theirs, dynamic configs, credentials, quotas, and
        what is counted: traffic and metrics."""
        image = self._assembly.image
        topics = tuple(image.topics)
        cleared = tuple(
            AlterResource(resource.type, resource.name, ())
            for resource in image.configs
            if resource.type is not ConfigResourceType.TOPIC
        )
        deletions = tuple(ScramDeletion(user, mechanism) for user, mechanism in image.scram_iterations)
        alterations = tuple(
            QuotaAlteration(tuple(entity), tuple((key, None) for key in quotas))
            for entity, quotas in image.client_quotas.items()
        )
        _raise_error(await self._responses(lambda correlation_id: DeleteTopics(correlation_id, topics)))
        _raise_error(await self._responses(lambda correlation_id: AlterConfigs(correlation_id, cleared, replace=True)))
        # A user is altered once in a request.
        for deletion in deletions:
            _raise_error(await self._responses(partial(AlterScramCredentials, changes=(deletion,))))
        _raise_error(await self._responses(partial(AlterClientQuotas, alterations=alterations)))
        self._assembly.traffic.clear()
        for host in self._assembly.hosts.values():
            host.runner.core.counters.clear()

    async def _responses(self, build: BuildRequest) -> Sequence[AdminResponse]:
        responses: Sequence[AdminResponse] = await self._active_broker().runner.requests.controller_response(
            build, TIMEOUT_MS, ()
        )
        for host in self._assembly.hosts.values():
            if host.running and not host.paused:
                await host.runner.metadata_updates.wait_until_caught_up(TIMEOUT_MS)
        return responses

    def _active_broker(self) -> BrokerHost:
        """A broker that reaches the controller. Errors: UsageError."""
        for host in self._assembly.hosts.values():
            if host.running and not host.paused and self._assembly.is_active(host.id):
                return host
        raise UsageError("no broker of this cluster reaches its controller; undo a fault first")


def _op(name: str, value: str | int | None) -> ConfigOp:
    key = name.replace("_", ".")
    return ConfigOp(key, _DELETE, None) if value is None else ConfigOp(key, _SET, str(value))


def _raise_error(responses: Iterable[AdminResponse]) -> None:
    for response in responses:
        if response.error is not ErrorCode.NONE:
            raise UsageError(
                f"{response.key}: {response.error.name}: {response.message or 'refused by the controller'}"
            )
