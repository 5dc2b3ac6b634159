"""Operators' requests to the controller, and its responses."""

from collections import Counter

import pytest

from rackspan.cluster.core.admin_messages import (
    AdminResponse,
    AllocateProducerIds,
    AlterConfigs,
    AlterPartitionReassignments,
    AlterResource,
    ConfigOp,
    CreatePartitions,
    CreateTopicResponse,
    CreateTopics,
    DeleteTopics,
    ElectLeaders,
    MorePartitions,
    NewTopic,
    ProducerIdBlock,
    ReassignablePartition,
    UnregisterBroker,
)
from rackspan.cluster.core.configs import ConfigSource, broker_values, topic_value
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.world import World

SIX: dict[int, str | None] = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


def world(racks: dict[int, str | None] | None = None, **changes: object) -> World:
    made = World(racks or SIX, ClusterSettings(**changes))  # type: ignore[arg-type]
    made.run(500)
    return made


def ids(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(one) for one in brokers)


def create(w: World, topic: NewTopic, **more: bool) -> CreateTopicResponse:
    (result,) = w.admin(lambda correlation_id: CreateTopics(correlation_id, (topic,), **more))
    assert isinstance(result, CreateTopicResponse)
    return result


def reassign(w: World, partition: TopicPartition, *replicas: int) -> AdminResponse:
    requested = ReassignablePartition(partition, ids(*replicas) or None)
    (result,) = w.admin(lambda correlation_id: AlterPartitionReassignments(correlation_id, (requested,)))
    return result


def elect(w: World, *partitions: TopicPartition, unclean: bool = False) -> list[ErrorCode]:
    results = w.admin(lambda correlation_id: ElectLeaders(correlation_id, partitions or None, unclean))
    return [result.error for result in results]


# Topics.


@pytest.mark.parametrize("placer", ["striped", "rack-alternated", "balanced"])
def test_a_new_topic_and_its_added_partitions_span_as_many_racks_as_replicas(placer: str) -> None:
    w = world(extra_configs={"replica.placer.class.name": placer})
    result = create(w, NewTopic("orders", 12, 3))
    assert (result.error, result.partitions, result.replication_factor) == (ErrorCode.NONE, 12, 3)
    w.admin(lambda correlation_id: CreatePartitions(correlation_id, (MorePartitions("orders", 20),)))
    states = w.controller.image.topics["orders"].partitions
    assert len(states) == 20
    assert all(len({SIX[one] for one in state.replicas}) == 3 for state in states)
    assert max(Counter(state.leader for state in states[:12]).values()) <= 4


def test_defaults_are_the_clusters_and_a_dry_run_creates_nothing() -> None:
    w = world(default_replication_factor=2, num_partitions=5)
    tried = create(w, NewTopic("orders"), validate_only=True)
    assert (tried.error, tried.partitions, tried.replication_factor) == (ErrorCode.NONE, 5, 2)
    assert not w.controller.image.topics


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("orders", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("my_topic", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("x", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("x", 1, 7), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("x", configs={"no.such.key": "1"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("x", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("x", assignments={0: ids(1, 1)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("x", assignments={0: ids(1, 9)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("x", assignments={1: ids(1, 2)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("x", assignments={0: ids(1), 1: ids(1, 2)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("x", 1, assignments={0: ids(1)}), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_topic_that_cannot_be_created_gets_an_error_and_changes_nothing(topic: NewTopic, error: ErrorCode) -> None:
    w = world()
    w.create("orders", [1, 2, 3])
    w.create("my.topic", [1, 2, 3])
    before = w.controller.image
    result = create(w, topic)
    assert result.error is error
    assert result.message
    assert w.controller.image is before


def test_a_placer_that_is_not_there_fails_the_creation_by_name() -> None:
    w = world(extra_configs={"replica.placer.class.name": "nobody"})
    result = create(w, NewTopic("orders", 1, 1))
    assert result.error is ErrorCode.REPLICA_PLACEMENT_FAILED
    assert "nobody" in (result.message or "")


def test_with_partial_racks_auto_creation_falls_back_and_an_operator_is_refused() -> None:
    w = world({1: "a", 2: "b", 3: None}, extra_configs={"replica.placer.class.name": "rack-alternated"})
    assert create(w, NewTopic("orders", 1, 3)).error is ErrorCode.REPLICA_PLACEMENT_FAILED
    assert create(w, NewTopic("orders", 1, 3), automatic=True).error is ErrorCode.NONE


def test_a_deleted_topics_logs_go_and_its_namesake_begins_anew() -> None:
    w = world()
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    w.produced(orders)
    topic_id = w.controller.image.topics["orders"].topic_id
    w.kill(3)
    results = w.admin(lambda correlation_id: DeleteTopics(correlation_id, ("orders", topic_id, "nobody")))
    assert [result.error for result in results] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    w.run(50)
    assert not w.disks[1].logs
    w.create("orders", [1, 2, 3])
    w.start(3)
    w.settle()
    assert w.produced(orders).base_offset == 0
    assert {w.disks[one].logs[orders].end_offset for one in (1, 2, 3)} == {1}


def grow(w: World, requested: MorePartitions) -> ErrorCode:
    (result,) = w.admin(lambda correlation_id: CreatePartitions(correlation_id, (requested,)))
    return result.error


def test_a_topic_only_grows() -> None:
    w = world()
    w.create("orders", [1, 2, 3])
    by_hand = MorePartitions("orders", 2, (ids(4, 5, 6),))
    for requested, error in (
        (MorePartitions("orders", 1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("nobody", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions("orders", 3, (ids(1, 2, 3),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("orders", 2, (ids(1, 2),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand, ErrorCode.NONE),
    ):
        assert grow(w, requested) is error
    assert w.state(TopicPartition("orders", 1)).replicas == (4, 5, 6)


# Reassignment.


def test_a_reassignment_copies_then_hands_over_and_takes_the_old_away() -> None:
    w = world()
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    for _ in range(5):
        w.produced(orders)
    assert reassign(w, orders, 4, 5, 6).error is ErrorCode.NONE
    assert w.state(orders).adding == (4, 5, 6)
    w.run(1_000)
    state = w.state(orders)
    assert (state.replicas, set(state.isr), state.leader, state.reassigning) == ((4, 5, 6), {4, 5, 6}, 4, False)
    assert [orders in w.disks[one].logs for one in SIX] == [False] * 3 + [True] * 3
    assert w.produced(orders).base_offset == 5


def test_a_reassignment_under_way_can_be_cancelled_or_replaced() -> None:
    w = world()
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    w.kill(4)
    w.run(4_000)
    reassign(w, orders, 4, 2, 3)
    w.run(500)
    assert w.state(orders).reassigning
    assert reassign(w, orders).error is ErrorCode.NONE
    w.run(100)
    assert (w.state(orders).replicas, w.state(orders).reassigning) == ((2, 3, 1), False)
    assert reassign(w, orders).error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    reassign(w, orders, 4, 2, 3)
    reassign(w, orders, 5, 2, 3)
    w.run(1_000)
    assert (w.state(orders).replicas, w.isr(orders)) == ((5, 2, 3), {5, 2, 3})


def test_a_reassignment_can_change_the_replication_factor_unless_that_is_forbidden() -> None:
    w = world()
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    requested = (ReassignablePartition(orders, ids(1, 2)),)
    (result,) = w.admin(lambda correlation_id: AlterPartitionReassignments(correlation_id, requested, False))
    assert result.error is ErrorCode.INVALID_REPLICATION_FACTOR
    reassign(w, orders, 1, 2)
    w.run(200)
    assert (w.state(orders).replicas, w.isr(orders)) == ((1, 2), {1, 2})
    assert reassign(w, orders, 1, 9).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT


# Elections and shutdown.


def test_a_preferred_leader_leads_again_on_request() -> None:
    w = world()
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    w.kill(1)
    w.run(4_000)
    assert elect(w, orders) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    w.start(1)
    w.settle()
    assert w.state(orders).leader == 2
    assert elect(w, orders) == [ErrorCode.NONE]
    assert elect(w, orders, TopicPartition("orders", 7)) == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert elect(w) == []
    w.settle()
    assert w.produced(orders).error is ErrorCode.NONE


def test_preferred_leaders_return_by_themselves_if_the_cluster_is_configured_so() -> None:
    w = world(auto_leader_rebalance=True, leader_imbalance_check_interval_ms=500)
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    w.kill(1)
    w.run(4_000)
    w.start(1)
    w.run(3_000)
    assert w.state(orders).leader == 1


@pytest.mark.parametrize("how", ["requested", "configured"])
def test_an_unclean_election_gives_up_what_only_the_dead_had(how: str) -> None:
    w = world({1: "a", 2: "b"})
    orders = w.create("orders", [1, 2], unclean_leader_election_enable=str(how == "configured").lower())
    w.settle()
    w.isolate(2)
    w.run(4_000)
    w.produced(orders)
    w.kill(1)
    w.run(4_000)
    assert w.state(orders).leader == -1
    w.heal()
    w.run(1_000)
    if how == "requested":
        assert w.state(orders).leader == -1
        assert elect(w, orders, unclean=True) == [ErrorCode.NONE]
        w.run(100)
    assert (w.state(orders).leader, w.state(orders).elr) == (2, ())
    assert w.produced(orders).base_offset == 0
    w.start(1)
    w.settle()
    assert w.disks[1].logs[orders].batches == w.disks[2].logs[orders].batches


def test_a_shutdown_in_order_moves_leaders_first_and_leaves_the_clean_mark() -> None:
    w = world()
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    epoch = w.broker(1).broker_epoch
    w.shut_down(1)
    w.run(500)
    assert 1 not in w.nodes
    assert w.disks[1].clean_shutdown_epoch == epoch
    assert (w.state(orders).leader, w.isr(orders)) == (2, {2, 3})
    assert w.produced(orders).error is ErrorCode.NONE
    w.start(1)
    w.settle()
    assert w.isr(orders) == {1, 2, 3}


def test_a_broker_can_be_unregistered() -> None:
    w = world()
    w.kill(6)
    w.run(4_000)
    for error in (ErrorCode.NONE, ErrorCode.BROKER_ID_NOT_REGISTERED):
        (result,) = w.admin(lambda correlation_id: UnregisterBroker(correlation_id, BrokerId(6)))
        assert result.error is error
    assert 6 not in w.controller.image.brokers


# Configs and producer ids.


def alter(w: World, kind: int, name: str, *ops: ConfigOp, replace: bool = False) -> ErrorCode:
    requested = (AlterResource(kind, name, ops),)
    (result,) = w.admin(lambda correlation_id: AlterConfigs(correlation_id, requested, replace=replace))
    return result.error


def test_configs_are_set_deleted_appended_to_and_replaced() -> None:
    w = world()
    w.create("orders", [1, 2, 3])
    key = "leader.replication.throttled.replicas"
    assert alter(w, 2, "orders", ConfigOp(key, 0, "0:1"), ConfigOp("retention.ms", 0, "5")) is ErrorCode.NONE
    assert alter(w, 2, "orders", ConfigOp(key, 2, "0:2,0:1")) is ErrorCode.NONE
    assert value(w, key) == "0:1,0:2"
    assert alter(w, 2, "orders", ConfigOp(key, 3, "0:1")) is ErrorCode.NONE
    assert value(w, key) == "0:2"
    assert alter(w, 2, "orders", ConfigOp(key, 1, None)) is ErrorCode.NONE
    assert value(w, key) == ""
    assert alter(w, 2, "orders", ConfigOp("segment.ms", 0, "9"), replace=True) is ErrorCode.NONE
    assert (value(w, "retention.ms"), value(w, "segment.ms")) == ("604800000", "9")


def value(w: World, key: str) -> str | None:
    return topic_value(w.controller.image, w.settings, "orders", key, None).value


@pytest.mark.parametrize(
    ("kind", "name", "op", "error"),
    [
        (2, "nobody", ConfigOp("retention.ms", 0, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "orders", ConfigOp("no.such", 0, "1"), ErrorCode.INVALID_CONFIG),
        (2, "orders", ConfigOp("retention.ms", 0, None), ErrorCode.INVALID_REQUEST),
        (2, "orders", ConfigOp("retention.ms", 2, "1"), ErrorCode.INVALID_CONFIG),
        (2, "orders", ConfigOp("cleanup.policy", 0, "burn"), ErrorCode.INVALID_CONFIG),
        (2, "orders", ConfigOp("preallocate", 0, "maybe"), ErrorCode.INVALID_CONFIG),
        (4, "9", ConfigOp("log.retention.ms", 0, "1"), ErrorCode.INVALID_REQUEST),
        (4, "1", ConfigOp("broker.rack", 0, "z"), ErrorCode.INVALID_REQUEST),
        (8, "1", ConfigOp("x", 0, "z"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_config_that_cannot_be_is_refused_whole(kind: int, name: str, op: ConfigOp, error: ErrorCode) -> None:
    w = world()
    w.create("orders", [1, 2, 3])
    good = ConfigOp("segment.ms", 0, "9")
    assert alter(w, kind, name, good, op) is error
    assert value(w, "segment.ms") == "604800000"


def test_a_value_has_its_source() -> None:
    w = world()
    w.create("orders", [1, 2, 3])
    alter(w, 4, "", ConfigOp("log.retention.ms", 0, "7"))
    alter(w, 4, "1", ConfigOp("log.retention.ms", 0, "6"))
    observed = topic_value(w.controller.image, w.settings, "orders", "retention.ms", BrokerId(1))
    sources = [ConfigSource.BROKER, ConfigSource.DEFAULT_BROKER, ConfigSource.DEFAULT]
    assert (observed.value, [source for _, _, source in observed.synonyms]) == ("6", sources)
    shown = {one.key: one.value for one in broker_values(w.controller.image, w.settings, BrokerId(2))}
    assert (shown["broker.rack"], shown["broker.id"], shown["log.retention.ms"]) == ("b", "2", "7")


def test_producer_ids_are_never_given_twice() -> None:
    w = world()
    firsts = []
    for correlation_id in (900, 901, 902):
        w._take(-1, w.controller.on_message(w.now, -2, AllocateProducerIds(correlation_id, BrokerId(1))))
        block = w.results[correlation_id]
        assert isinstance(block, ProducerIdBlock)
        firsts.append((block.first, block.length))
    assert firsts == [(0, 1_000), (1_000, 1_000), (2_000, 1_000)]


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        (
            NewTopic("orders", 1, 0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0.",
        ),
        (NewTopic("orders", 0, 3), ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
    ],
)
def test_a_topic_has_a_partition_and_a_replica_at_least(topic: NewTopic, error: ErrorCode, message: str) -> None:
    refused = create(world(), topic)
    assert (refused.error, refused.message) == (error, message)
