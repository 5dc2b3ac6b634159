"""The `server.properties` of one node, computed from values; no file is written here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from rackspan.kafka_process.ports import LOOPBACK
from rackspan.kafka_process.topology import KafkaNode

CLIENT_LISTENER = "CLIENT"
"""The listener for clients and other brokers."""

CONTROLLER_LISTENER = "CONTROLLER"


def defaults(brokers: int) -> dict[str, str]:
    """Settings for a cluster that runs for minutes on one machine: small internal topics, short timeouts."""
    replication = str(min(3, brokers))
    least_in_sync = str(min(2, brokers))
    return {
        "offsets.topic.replication.factor": replication,
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.replication.factor": replication,
        "transaction.state.log.min.isr": least_in_sync,
        "transaction.state.log.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": replication,
        "share.coordinator.state.topic.min.isr": least_in_sync,
        "share.coordinator.state.topic.num.partitions": "3",
        "default.replication.factor": replication,
        "min.insync.replicas": "1",
        "group.initial.rebalance.delay.ms": "0",
        # Since Kafka 4.3 a member that joins is assigned partitions after an interval (KIP-1263, default 1 s).
        **dict.fromkeys((f"group.{kind}.assignment.interval.ms" for kind in ("consumer", "share", "streams")), "0"),
        "auto.create.topics.enable": "false",
        # A killed broker is fenced after this long (default 9 s).
        "broker.session.timeout.ms": "5000",
        "broker.heartbeat.interval.ms": "500",
        # By default an idle controller writes a record twice a second, a third of what idle brokers cost.
        "metadata.max.idle.interval.ms": "5000",
        # A controlled shutdown moves its leaders at the first try or not at all.
        "controlled.shutdown.max.retries": "1",
        "controlled.shutdown.retry.backoff.ms": "500",
        # A replica that lags leaves the ISR after this long (default 30 s).
        "replica.lag.time.max.ms": "10000",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "num.recovery.threads.per.data.dir": "1",
        "log.cleaner.dedupe.buffer.size": str(2 * 1024 * 1024),
    }


def properties(
    node: KafkaNode,
    nodes: Sequence[KafkaNode],
    client_ports: Mapping[int, int],
    controller_ports: Mapping[int, int],
    log_dir: Path,
    config: Mapping[str, str],
    more_listeners: Mapping[str, tuple[str, Mapping[int, int]]] = MappingProxyType({}),
) -> dict[str, str]:
    """The node's settings; `config` overrides everything except its id, roles, rack and addresses.

    `more_listeners` are by name: the security protocol, and ports by broker id.
    """
    listeners = {
        CLIENT_LISTENER: client_ports.get(node.id),
        CONTROLLER_LISTENER: controller_ports.get(node.id),
        **{name: ports.get(node.id) for name, (_, ports) in more_listeners.items()},
    }
    own = {
        "process.roles": node.roles,
        "node.id": str(node.id),
        "log.dirs": str(log_dir),
        "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items() if port is not None),
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.voters": ",".join(f"{voter}@{LOOPBACK}:{port}" for voter, port in controller_ports.items()),
    }
    if node.rack is not None:
        own["broker.rack"] = node.rack
    if node.is_broker:
        # A node that is only a controller refuses this setting.
        own["inter.broker.listener.name"] = CLIENT_LISTENER
    protocols = {CLIENT_LISTENER: "PLAINTEXT", CONTROLLER_LISTENER: "PLAINTEXT"}
    protocols |= {name: protocol for name, (protocol, _) in more_listeners.items()}
    protocol_map = ",".join(f"{name}:{protocol}" for name, protocol in protocols.items())
    brokers = sum(node.is_broker for node in nodes)
    return {"listener.security.protocol.map": protocol_map, **defaults(brokers), **config, **own}


def text(settings: Mapping[str, str]) -> str:
    """The settings as a Java properties file. Backslashes and newlines are escaped, so that values stay unchanged."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in sorted(settings.items()))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
