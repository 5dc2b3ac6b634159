"""PracticeKafka: real Apache Kafka with the methods of an embedded cluster, so that one test runs on both."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from rackspan.apply.requests import altered, refuse, response_of
from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.requests import metadata
from rackspan.cluster.api.embedded import EmbeddedCluster, rack_names
from rackspan.cluster.api.status import BrokerStatus, ClusterStatus
from rackspan.errors import RackspanError, UsageError
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_process import DEFAULT_VERSION, KafkaCluster
from rackspan.kafka_process.release.jars import ProgressCallback
from rackspan.model.ids import NO_BROKER, BrokerId, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.configs import IncrementalAlterConfigsRequestData
from rackspan.wire.messages.metadata import MetadataResponseData, MetadataResponsePartition
from rackspan.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequestData,
)

OUTSIDE: Final[Mapping[int, str | None]] = {3000: None}
"""One controller outside the racks, as an embedded cluster has it: a test may lose any rack."""

AS_EMBEDDED: Final = {
    "auto.create.topics.enable": "true",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "replica.lag.time.max.ms": "2000",
}
"""What a test may rely on: the embedded cluster has these too."""

_EMBEDDED_ONLY: Final = (
    "min.insync.racks",
    "extended.error.codes",
    "rack.locator.class",
    "rack.locator.properties",
    "inter.broker.protocol.version",
    "replica.placer.class.name",
)
"""Broker configs that no released Kafka has. It would start with them, and ignore them."""

_REQUEST_SECONDS: Final = 10.0
_EFFECT_SECONDS: Final = 60.0
"""For a fault to be in the metadata of every broker: longer than the session timeout of a broker."""
_POLL_SECONDS: Final = 0.1


class PracticeKafka(KafkaCluster):
    """KafkaCluster with the arguments and methods of EmbeddedCluster. What real Kafka cannot do is refused by name.

    `controllers` are those of KafkaCluster, by default one outside the racks.
    """

    def __init__(
        self,
        racks: int | Sequence[str | None] = 3,
        brokers: int = 3,
        *,
        config: Mapping[str, str] | None = None,
        version: str = DEFAULT_VERSION,
        controllers: Mapping[int, str | None] | None = OUTSIDE,
        progress: ProgressCallback | None = None,
    ) -> None:
        for key in _EMBEDDED_ONLY:
            if key in (config or {}):
                raise UsageError(
                    f"config {key}: Apache Kafka {version} has no such config and would ignore it; {_WHERE}"
                )
        super().__init__(
            rack_names(racks), brokers, controllers=controllers, version=version, config=config, progress=progress
        )

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and hasattr(EmbeddedCluster, name):
            raise UsageError(f"{name}: Apache Kafka {self.version} cannot do this; {_WHERE}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # -- faults that are in effect when every broker's metadata has them

    def nodes_in(self, rack: str | None) -> tuple[int, ...]:
        """The nodes of a rack; without a rack its brokers only."""
        nodes = super().nodes_in(rack)
        return nodes if rack is not None else tuple(node for node in nodes if node in self.brokers)

    def kill(self, *nodes: int, power_loss: bool = False) -> None:
        """Kill brokers or controllers. Returns when the controller has fenced the brokers, if there still is one."""
        if power_loss:
            raise UsageError(f"kill(power_loss=True): Apache Kafka {self.version} cannot do this; {_WHERE}")
        super().kill(*nodes)
        self._wait_until_left(nodes)

    def stop(self, *nodes: int) -> None:
        super().stop(*nodes)
        self._wait_until_left(nodes)

    def _wait_until_left(self, nodes: Sequence[int]) -> None:
        voters = [node.id for node in self.nodes if node.is_controller]
        responding = [node for node in voters if node in self._responding()]
        if 2 * len(responding) > len(voters):
            left = set(nodes)
            self._wait_until(
                lambda: not any(left & {broker.node_id for broker in read.brokers} for read in self._everywhere()),
                _EFFECT_SECONDS,
                f"brokers {', '.join(map(str, nodes))} were not fenced",
            )

    # -- metadata and administration, for tests without an admin client

    def leader(self, topic: str, partition: int) -> BrokerId | None:
        """None while no broker may lead the partition."""
        leader = self._partition(topic, partition).leader_id
        return None if leader == NO_BROKER else BrokerId(leader)

    def isr(self, topic: str, partition: int) -> set[BrokerId]:
        return set(map(BrokerId, self._partition(topic, partition).isr_nodes))

    def replicas(self, topic: str, partition: int) -> tuple[BrokerId, ...]:
        return tuple(map(BrokerId, self._partition(topic, partition).replica_nodes))

    def _partition(self, topic: str, partition: int) -> MetadataResponsePartition:
        for described in self._metadata((topic,)).topics:
            for state in described.partitions:
                if state.partition_index == partition:
                    return state
        raise UsageError(f"{topic}-{partition}: no such partition in this cluster; create the topic first")

    def wait_for_isr(self, topic: str | None = None, *, seconds: float = 60.0) -> None:
        """Wait until all replicas of the topic's partitions, or of every partition, are in sync. Errors: TimeoutError."""
        topics = None if topic is None else (topic,)
        self._wait_until(
            lambda: all(
                set(state.isr_nodes) == set(state.replica_nodes)
                for read in self._everywhere(topics)
                for described in read.topics
                for state in described.partitions
            ),
            seconds,
            f"not every replica of {topic or 'the topics'} is in sync",
        )

    def create_topic(
        self,
        topic: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        config: Mapping[str, str] | None = None,
        replicas: Sequence[Sequence[int]] | None = None,
    ) -> None:
        """-1 is the cluster's default; `replicas` lists each partition's brokers. Errors: UsageError with Kafka's reason."""
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(replicas or ())
        ]
        created = CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=replication_factor,
            assignments=assignments,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()],
        )
        request = CreateTopicsRequestData(topics=[created], timeout=int(_REQUEST_SECONDS * 1000))
        self._change(ApiKey.CREATE_TOPICS, request, "topics", topic, "was not created")
        self._wait_until(
            lambda: all(
                described.partitions and not described.error_code
                for read in self._everywhere((topic,))
                for described in read.topics
            ),
            _EFFECT_SECONDS,
            f"topic {topic} is not in every broker's metadata",
        )

    def alter_topic(self, topic: str, **config: str | int | None) -> None:
        """Set configs, underscores for Kafka's dots; None removes the topic's own value. Errors: UsageError."""
        values = {key.replace("_", "."): None if value is None else str(value) for key, value in config.items()}
        request = IncrementalAlterConfigsRequestData(resources=[altered(ConfigResourceType.TOPIC, topic, values)])
        self._change(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, "responses", topic, "was not changed")

    def _change(self, api: ApiKey, request: WireStruct, results: str, topic: str, failed: str) -> None:
        what, right = f"topic {topic} {failed}", f"a right on Topic {topic}"

        async def call() -> None:
            response = await response_of(connection.call_controller(api, request), what, right)
            refuse(getattr(response, results), {topic: what}, {topic: right})

        try:
            with self._connection(*self._responding_brokers()) as connection:
                connection.run(call)
        except RackspanError as error:
            raise UsageError(str(error)) from None

    # -- state

    def status(self) -> ClusterStatus:
        """The state of brokers and partitions, for the report of a failure."""
        try:
            read: MetadataResponseData | None = self._metadata()
        except RackspanError:
            read = None
        return ClusterStatus(
            brokers=tuple(self._broker_status(broker, read) for broker in self.brokers),
            links=(),
            partitions=tuple(_incomplete(read)),
            metrics=(),
        )

    def _broker_status(self, broker: int, read: MetadataResponseData | None) -> BrokerStatus:
        states = []
        if broker not in self.pids:
            states.append("down")
        elif broker in self.paused:
            states.append("paused")
        if read is not None and broker not in {alive.node_id for alive in read.brokers}:
            states.append("fenced")
        rack = self.rack(broker)
        named = None if rack is None else RackId(rack)
        return BrokerStatus(BrokerId(broker), named, self.address(broker), tuple(states) or ("up",))

    def _responding(self) -> set[int]:
        return self.pids.keys() - self.paused

    def _responding_brokers(self) -> list[int]:
        return sorted(self._responding() & set(self.brokers))

    def _metadata(self, topics: Sequence[str] | None = None) -> MetadataResponseData:
        """Metadata of the first broker that responds."""
        with self._connection(*self._responding_brokers()) as connection:
            return connection.run(metadata, connection, topics)

    def _everywhere(self, topics: Sequence[str] | None = ()) -> list[MetadataResponseData]:
        """Metadata of each broker that responds."""
        read = []
        for broker in self._responding_brokers():
            with self._connection(broker) as connection:
                read.append(connection.run(metadata, connection, topics))
        return read

    def _connection(self, *brokers: int) -> ClusterConnection:
        if not brokers:
            raise UsageError("no broker of this cluster responds; restart or resume one first")
        servers = ",".join(map(self.address, brokers))
        return ClusterConnection(ConnectionSettings(servers, timeout_seconds=_REQUEST_SECONDS))

    @staticmethod
    def _wait_until(condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise TimeoutError(f"{otherwise} within {seconds:g} s")
            time.sleep(_POLL_SECONDS)


_WHERE: Final = "run this on the embedded cluster; a test that needs it has the marker rackspan(kafka=False)"


def _incomplete(read: MetadataResponseData | None) -> list[str]:
    return [
        f"{topic.name}-{state.partition_index}: leader {state.leader_id}, replicas {list(state.replica_nodes)}, "
        f"in sync {list(state.isr_nodes)}"
        for topic in ([] if read is None else read.topics)
        for state in topic.partitions
        if set(state.isr_nodes) != set(state.replica_nodes) or state.leader_id == NO_BROKER
    ]
