"""A node's properties say who it is, and the user's config decides the rest."""

from pathlib import Path

from rackspan.kafka_process.node_config import defaults, properties, text
from rackspan.kafka_process.topology import KafkaNode, distribute_nodes

NODES = distribute_nodes(("r1", "r2"), 2, {1: "r1", 101: None})


def settings(node: KafkaNode, config: dict[str, str] | None = None) -> dict[str, str]:
    return properties(node, NODES, {1: 9001, 2: 9002}, {1: 9101, 101: 9201}, Path("/data"), config or {})


def test_a_combined_node_listens_for_clients_and_controllers() -> None:
    own = settings(NODES[0])
    assert own["process.roles"] == "broker,controller"
    assert own["listeners"] == "CLIENT://127.0.0.1:9001,CONTROLLER://127.0.0.1:9101"
    assert own["controller.quorum.voters"] == "1@127.0.0.1:9101,101@127.0.0.1:9201"
    assert own["broker.rack"] == "r1"


def test_a_controller_alone_has_no_rack_and_no_client_listener() -> None:
    own = settings(NODES[2])
    assert own["listeners"] == "CONTROLLER://127.0.0.1:9201"
    assert not own.keys() & {"broker.rack", "inter.broker.listener.name"}


def test_internal_topics_never_have_more_replicas_than_there_are_brokers() -> None:
    own = settings(NODES[1])
    assert own["offsets.topic.replication.factor"] == "2"
    assert own["transaction.state.log.min.isr"] == "2"


def test_a_cluster_starts_and_loses_brokers_in_seconds_on_one_machine() -> None:
    """Settings that would else be Kafka's: fifty partitions of internal topics, a session of 9 s, a lag of 30 s."""
    assert defaults(6) == {
        "offsets.topic.replication.factor": "3",
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "transaction.state.log.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": "3",
        "share.coordinator.state.topic.min.isr": "2",
        "share.coordinator.state.topic.num.partitions": "3",
        "default.replication.factor": "3",
        "min.insync.replicas": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.assignment.interval.ms": "0",
        "group.share.assignment.interval.ms": "0",
        "group.streams.assignment.interval.ms": "0",
        "auto.create.topics.enable": "false",
        "broker.session.timeout.ms": "5000",
        "broker.heartbeat.interval.ms": "500",
        "metadata.max.idle.interval.ms": "5000",
        "controlled.shutdown.max.retries": "1",
        "controlled.shutdown.retry.backoff.ms": "500",
        "replica.lag.time.max.ms": "10000",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "num.recovery.threads.per.data.dir": "1",
        "log.cleaner.dedupe.buffer.size": "2097152",
    }
    assert {key for key, value in defaults(1).items() if value != defaults(6)[key]} == {
        key
        for key, value in defaults(6).items()
        if "topic.replication.factor" in key or key.endswith(("log.replication.factor", "min.isr"))
    } | {"default.replication.factor"}


def test_every_voter_and_the_nodes_own_folder_are_named() -> None:
    own = settings(NODES[1])
    assert (own["node.id"], own["log.dirs"], own["controller.listener.names"]) == ("2", "/data", "CONTROLLER")
    assert own["inter.broker.listener.name"] == "CLIENT"
    assert own["listener.security.protocol.map"] == "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT"


def test_config_overrides_a_default_but_not_who_the_node_is() -> None:
    own = settings(NODES[1], {"min.insync.replicas": "2", "node.id": "7"})
    assert own["min.insync.replicas"] == "2"
    assert own["node.id"] == "2"


def test_a_value_with_a_backslash_arrives_as_it_was_given() -> None:
    assert text({"b": "a\\b\nc", "a": "1"}) == "a=1\nb=a\\\\b\\nc\n"


def test_more_listeners_are_on_every_broker_with_their_own_protocol() -> None:
    listeners = {"TLS": ("SSL", {1: 9301, 2: 9302})}
    own = properties(NODES[1], NODES, {1: 9001, 2: 9002}, {1: 9101, 101: 9201}, Path("/data"), {}, listeners)
    assert own["listeners"] == "CLIENT://127.0.0.1:9002,TLS://127.0.0.1:9302"
    assert own["listener.security.protocol.map"] == "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL"
