"""CreateTopics and DeleteTopics: whole responses, the words of refusals, and each topic by itself."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from rackspan.cluster.core.admin_messages import (
    AdminResponse,
    CreateTopicResponse,
    CreateTopics,
    DeleteTopics,
    NewTopic,
)
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.ids import CLIENT
from rackspan.cluster.core.messages import BrokerHeartbeat
from rackspan.cluster.core.metadata import ConfigResource
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.errors import InvalidPartitions
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId
from tests.cluster.core.brokers import ids
from tests.cluster.core.controller.requests import controller_with, responses, warnings
from tests.cluster.core.controller.test_placement_vectors import register

RACKS = {1: "a", 2: "b", 3: "c"}
RULE = "is not 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'"


def created(controller: ControllerCore, *topics: NewTopic, **more: bool) -> list[CreateTopicResponse]:
    return list(responses(controller, CreateTopics(1, topics, **more)))


def shutting_down(controller: ControllerCore, number: int) -> None:
    broker = BrokerId(number)
    epoch = controller.image.brokers[broker].broker_epoch
    controller.on_message(0, broker, BrokerHeartbeat(broker, epoch, epoch + 1, want_shut_down=True))


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        (NewTopic("my.topic", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'my.topic' already exists."),
        (
            NewTopic("my_topic", 1, 1),
            *(ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic 'my_topic' collides with existing topic: my.topic"),
        ),
        (NewTopic("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: 'a b' {RULE}"),
        (NewTopic(".", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: '.' {RULE}"),
        (NewTopic("..", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: '..' {RULE}"),
        (
            NewTopic("x", configs={"no.such": "1"}),
            *(ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        ),
        (
            NewTopic("x", configs={"retention.ms": "soon", "segment.ms": "9"}),
            ErrorCode.INVALID_CONFIG,
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
        (
            NewTopic("x", configs={"min.insync.racks": "0"}),
            ErrorCode.INVALID_CONFIG,
            "Invalid value 0 for configuration min.insync.racks: a whole number of at least 1",
        ),
        (
            NewTopic("x", 1, -1, assignments={0: ids(1)}),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions or replicationFactor was not set to -1.",
        ),
        (
            NewTopic("x", -1, 1, assignments={0: ids(1)}),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions or replicationFactor was not set to -1.",
        ),
        (
            NewTopic("x", assignments={1: ids(1)}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic("x", assignments={0: ids(4)}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment [4] are fenced or in controlled shutdown.",
        ),
        (NewTopic("x", 0, 1), ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (NewTopic("x", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
        (
            NewTopic("x", 10_001, 1),
            *(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."),
        ),
    ],
)
def test_a_refused_topic_says_why_and_changes_nothing(topic: NewTopic, error: ErrorCode, message: str) -> None:
    controller = controller_with(RACKS)
    register(controller, 4, "d", fenced=True)
    created(controller, NewTopic("my.topic", 1, 1), NewTopic("plain", 1, 1))
    before = controller.image
    assert created(controller, topic) == [CreateTopicResponse(topic.name, error, message, None, -1, -1, ())]
    assert controller.image is before


def test_names_collide_only_in_dots_and_underscores() -> None:
    controller = controller_with(RACKS)
    first, other, hyphen = (NewTopic(name, 1, 1) for name in ("a.b", "a.c", "a-b"))
    assert [one.error for one in created(controller, first, other, hyphen)] == [ErrorCode.NONE] * 3


def test_a_topic_is_created_with_the_defaults_and_its_configs_and_the_response_has_its_numbers() -> None:
    settings = ClusterSettings(default_replication_factor=2, num_partitions=5)
    controller = controller_with(RACKS, settings=settings)
    topic = NewTopic("orders", configs={"retention.ms": "5", "segment.ms": None})
    (tried,) = created(controller, topic, validate_only=True)
    assert not controller.image.topics
    (done,) = created(controller, topic)
    image = controller.image.topics["orders"]
    assert done == CreateTopicResponse("orders", ErrorCode.NONE, None, image.topic_id, 5, 2, ())
    assert (tried.error, tried.partitions, tried.replication_factor) == (ErrorCode.NONE, 5, 2)
    assert (image.topic_id.version, len(image.partitions)) == (4, 5)
    assert dict(controller.image.config_of(ConfigResource(ConfigResourceType.TOPIC, "orders"))) == {"retention.ms": "5"}


def test_a_name_that_is_there_twice_is_refused_once_and_the_others_are_created() -> None:
    controller = controller_with(RACKS)
    results = created(controller, NewTopic("a", 1, 1), NewTopic("b", 1, 1), NewTopic("a", 2, 1))
    assert results[0] == CreateTopicResponse("a", ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    assert [(one.key, one.error) for one in results[1:]] == [("b", ErrorCode.NONE)]
    assert list(controller.image.topics) == ["b"]


def test_a_value_above_the_racks_is_warned_of_by_its_topics_name_unless_nothing_is_created() -> None:
    topic = NewTopic("orders", 1, 1, configs={"min.insync.racks": "4", "retention.ms": "5"})
    warning = "min.insync.racks 4: the cluster has 3 racks; acks=all is refused until it has more"
    controller = controller_with(RACKS)
    assert warnings(controller.on_message(0, CLIENT, CreateTopics(1, (topic,), validate_only=True))) == []
    assert warnings(controller.on_message(0, CLIENT, CreateTopics(2, (topic,)))) == [f"topic orders: {warning}"]
    (response,) = created(controller_with(RACKS), topic)
    assert response.warnings == (warning,)


def with_placer(place: Any) -> ControllerCore:
    """Brokers 1 and 2, of which the second is shutting down, and a placer that does this."""
    controller = controller_with({1: "a", 2: "b"}, placer_of=lambda configs, rng: SimpleNamespace(place=place))
    shutting_down(controller, 2)
    return controller


def test_a_partition_placed_where_nobody_may_lead_refuses_the_whole_topic() -> None:
    controller = with_placer(lambda *_: [SimpleNamespace(replicas=ids(1)), SimpleNamespace(replicas=ids(2))])
    before = controller.image
    message = "Unable to replicate the partition 1 time(s): All brokers are currently fenced or in controlled shutdown."
    (response,) = created(controller, NewTopic("orders", 2, 1))
    assert response == CreateTopicResponse("orders", ErrorCode.INVALID_REPLICATION_FACTOR, message)
    assert controller.image is before


def test_a_placers_refusal_of_the_partitions_has_kafkas_code() -> None:
    def refuse(*_arguments: object) -> None:
        raise InvalidPartitions("too many for me")

    assert created(with_placer(refuse), NewTopic("orders", 1, 1)) == [
        CreateTopicResponse("orders", ErrorCode.INVALID_PARTITIONS, "too many for me")
    ]


def test_replicas_are_placed_by_the_racks_of_the_locator_where_there_is_one() -> None:
    """KIP-36: registered, all six are in one rack."""
    located = {1: "x", 2: "x", 3: "x", 4: "y", 5: "y", 6: "y"}
    calls: list[int] = []

    def locate(brokers: object) -> dict[BrokerId, RackId]:
        calls.append(len(list(brokers)))  # type: ignore[call-overload]
        return {BrokerId(one): RackId(rack) for one, rack in located.items()}

    controller = controller_with(dict.fromkeys(located, "a"), locate=locate)
    created(controller, NewTopic("orders", 12, 2))
    placed = [state.replicas for state in controller.image.topics["orders"].partitions]
    assert calls == [6]
    assert all({located[one] for one in replicas} == {"x", "y"} for replicas in placed)


def test_topics_are_deleted_by_name_or_id_each_by_itself() -> None:
    controller = controller_with(RACKS, [1, 2])
    created(controller, NewTopic("other", 1, 1, configs={"retention.ms": "5"}))
    topic_id, other = (controller.image.topics[name].topic_id for name in ("orders", "other"))
    unknown, words = UUID(int=9), "This server does not host this topic-partition."
    assert responses(controller, DeleteTopics(1, ("nobody", topic_id, unknown, "orders", "other"))) == (
        AdminResponse("nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words),
        CreateTopicResponse("orders", ErrorCode.NONE, topic_id=topic_id),
        AdminResponse(unknown, ErrorCode.UNKNOWN_TOPIC_ID, words),
        AdminResponse("orders", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words),
        CreateTopicResponse("other", ErrorCode.NONE, topic_id=other),
    )
    image = controller.image
    assert (dict(image.topics), dict(image.topic_names), dict(image.configs)) == ({}, {}, {})
