"""The state of an embedded cluster in a few lines, for the report of a failed test. No decision is made by it."""

from collections.abc import Iterator
from dataclasses import dataclass

from rackspan.cluster.core.ids import CONTROLLER, NodeId
from rackspan.cluster.core.metadata import NO_LEADER, PartitionState
from rackspan.cluster.host.assembly import Assembly
from rackspan.cluster.host.broker_host import BrokerHost
from rackspan.model.ids import BrokerId, RackId, TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """One broker. `states` is ("up",) where nothing is wrong."""

    id: BrokerId
    rack: RackId | None
    address: str
    states: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """All brokers, and a line for each link, partition and metric that is not as it should be."""

    brokers: tuple[BrokerStatus, ...]
    links: tuple[str, ...]
    partitions: tuple[str, ...]
    metrics: tuple[str, ...]


def cluster_status(assembly: Assembly) -> ClusterStatus:
    return ClusterStatus(
        brokers=tuple(_broker(assembly, host) for host in assembly.hosts.values()),
        links=tuple(_links(assembly)),
        partitions=tuple(_partitions(assembly)),
        metrics=tuple(_metrics(assembly)),
    )


def _broker(assembly: Assembly, host: BrokerHost) -> BrokerStatus:
    address, port = host.server.address
    return BrokerStatus(host.id, host.rack, f"{address}:{port}", tuple(_states(assembly, host)) or ("up",))


def _states(assembly: Assembly, host: BrokerHost) -> Iterator[str]:
    if not host.running:
        yield "down"
    if host.paused:
        yield "paused"
    if not assembly.is_active(host.id):
        yield "fenced"
    if host.slow_disk_ms:
        yield f"disk slower by {host.slow_disk_ms} ms"


def _links(assembly: Assembly) -> Iterator[str]:
    for source, destination in assembly.network.cuts:
        yield f"{_name(source)} to {_name(destination)}: cut"
    for (source, destination), delay_ms in assembly.network.delays_ms.items():
        yield f"{_name(source)} to {_name(destination)}: {delay_ms} ms late"


def _name(node: NodeId) -> str:
    return "controller" if node == CONTROLLER else f"broker {node}"


def _partitions(assembly: Assembly) -> Iterator[str]:
    for topic in assembly.image.topics.values():
        for index, state in enumerate(topic.partitions):
            if set(state.isr) != set(state.replicas) or state.leader == NO_LEADER:
                yield f"{TopicPartition(topic.name, index)}: {_partition(assembly, state)}"


def _partition(assembly: Assembly, state: PartitionState) -> str:
    leader = "none" if state.leader == NO_LEADER else state.leader
    racks = ",".join(sorted({str(assembly.hosts[broker].rack) for broker in state.isr})) or "none"
    return f"leader {leader}, replicas {_joined(state.replicas)}, in sync {_joined(state.isr)} (racks {racks})"


def _joined(brokers: tuple[BrokerId, ...]) -> str:
    return ",".join(map(str, brokers)) or "none"


def _metrics(assembly: Assembly) -> Iterator[str]:
    for host in assembly.hosts.values():
        if host.running:
            for name, value in host.runner.core.metrics().items():
                if value:
                    yield f'{name}{{broker="{host.id}"}} {value}'
