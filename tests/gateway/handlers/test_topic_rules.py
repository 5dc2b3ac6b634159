"""What requests for new topics and partitions become on their way to the cluster and back: values that are kept, replicas that are placed."""

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from rackspan.errors import ClusterUnreachable
from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.core.policies import Entry, FilePolicies, Policies, Scope, record
from rackspan.gateway.handlers import topic_requests
from rackspan.gateway.handlers.topic_requests import TopicRequests
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.placement.cluster_placer import PlacementRefusal
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import (
    MetadataRequestData,
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponseTopic,
)
from rackspan.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsAssignment,
    CreatePartitionsRequestData,
    CreatePartitionsResponseData,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequestData,
    CreateTopicsResponseData,
)
from tests.gateway.core.addresses import renamed
from tests.gateway.handlers.test_admin_rules import (
    KEY,
    OLD_ID,
    ORDERS_ID,
    REFUSED,
    Cluster,
    FullStore,
    KeptStore,
    handled,
)

DEFAULTS = {"num.partitions": 2, "default.replication.factor": 3, "auto.create.topics.enable": 1}


class Load:
    """What a placer has of a cluster: its defaults, and the replicas of orders.

    A row of a placement has 1 if it is of an automatic creation, else 2, then the partition and the replication factor.
    """

    values: Mapping[str, int] | Exception = DEFAULTS

    def __init__(self, _cluster: object) -> None:
        """It reads nothing."""

    async def defaults(self) -> Mapping[str, int]:
        if isinstance(self.values, Exception):
            raise self.values
        return self.values

    async def rows(self, topic: str) -> list[tuple[int, ...]]:
        if topic == "unreadable":
            raise ClusterUnreachable("no broker responds")
        return [(3, 1), (1, 2)] if topic == "orders" else []

    async def place(
        self, _placer: object, start: int, partitions: int, factor: int, *, automatic: bool = False
    ) -> Sequence[tuple[int, ...]] | PlacementRefusal:
        if factor == 9:
            return PlacementRefusal(ErrorCode.REPLICA_PLACEMENT_FAILED, "nine are too many")
        return [(1 if automatic else 2, number, factor) for number in range(start, start + partitions)]


# New topics, and their values.


def creation(*topics: tuple[str, dict[str, str | None]], validate_only: bool = False) -> CreateTopicsRequestData:
    return CreateTopicsRequestData(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=1,
                replication_factor=3,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
            for name, configs in topics
        ],
        validate_only=validate_only,
    )


def created(name: str, topic_id: UUID | None = ORDERS_ID, error: int = 0, configs: bool = True) -> CreatableTopicResult:
    described = [CreatableTopicConfigs(name="retention.ms", value="9", config_source=5)] if configs else None
    return CreatableTopicResult(name=name, topic_id=topic_id, error_code=error, configs=described)


OWN = CreatableTopicConfigs(name=KEY, value="2", config_source=1)


def test_a_topics_value_is_kept_with_the_id_of_the_topic_that_was_created() -> None:
    store, policies = KeptStore(), Policies(FilePolicies())
    body = creation(("orders", {KEY: "2", "retention.ms": "9", "min.insync.replicas": " 2 "}), ("plain", {}))
    result = CreateTopicsResponseData(topics=[created("orders"), created("plain", OLD_ID)])
    response, session = handled(body, result, store=store, policies=policies)
    ((_, _, _, sent),) = session.sent
    assert [[config.name for config in topic.configs] for topic in sent.topics] == [
        ["retention.ms", "min.insync.replicas"],
        [],
    ]
    assert store.written == [(*record(Scope.TOPIC, "orders", Entry(2, ORDERS_ID)), 2)]
    assert [[config.name for config in topic.configs] for topic in response.topics] == [
        ["retention.ms", KEY],
        ["retention.ms"],
    ]
    assert response.topics[0].configs[1] == OWN
    assert policies.min_insync_replicas == {"orders": 2}
    assert policies.names == {ORDERS_ID: "orders", OLD_ID: "plain"}


@pytest.mark.parametrize(
    ("value", "known"),
    [("0", {"orders": 1}), ("3", {"orders": 3}), ("two", {}), ("", {}), (None, {})],
)
def test_a_new_topics_min_insync_replicas_counts_at_once(value: str | None, known: dict[str, int]) -> None:
    policies = Policies(FilePolicies())
    body = creation(("orders", {"min.insync.replicas": value}))
    handled(body, CreateTopicsResponseData(topics=[created("orders")]), store=KeptStore(), policies=policies)
    assert policies.min_insync_replicas == known


def test_of_a_topic_that_was_not_created_nothing_is_kept() -> None:
    for validate_only, error in ((False, 36), (True, 36), (True, 0)):
        store, policies, cluster = KeptStore(), Policies(FilePolicies()), Cluster()
        body = creation(("orders", {KEY: "2", "min.insync.replicas": "2"}), validate_only=validate_only)
        result = CreateTopicsResponseData(topics=[created("orders", error=error)])
        response, _ = handled(body, result, store=store, policies=policies, cluster=cluster)
        (topic,) = response.topics
        assert (topic.error_code, OWN in topic.configs) == (error, error == 0)
        assert (store.written, policies.min_insync_replicas, policies.names, cluster.requests) == ([], {}, {}, 0)


@pytest.mark.parametrize(("configs", "requests"), [({KEY: "2"}, 1), ({}, 0)])
def test_the_id_of_a_topic_is_looked_up_for_its_value_where_the_response_has_none(
    configs: dict[str, str | None], requests: int
) -> None:
    """Before version 7 of CreateTopics, in which the response has no configs either if none were requested."""
    store, cluster = KeptStore(), Cluster()
    result = CreateTopicsResponseData(topics=[created("orders", None, configs=False)])
    response, _ = handled(creation(("orders", configs)), result, store=store, version=5, cluster=cluster)
    assert cluster.requests == requests
    assert store.written == [(*record(Scope.TOPIC, "orders", Entry(2, UUID(int=7))), 2)] * requests
    assert (response.topics[0].error_code, response.topics[0].configs) == (0, None)


def test_a_topic_created_anew_has_no_value_of_the_earlier_one_from_its_response_on() -> None:
    policies = Policies(FilePolicies())
    policies.replay(*record(Scope.TOPIC, "orders", Entry(3, OLD_ID)))
    assert policies.requirement("orders", 1) is not None
    result = CreateTopicsResponseData(topics=[created("orders")])
    handled(creation(("orders", {})), result, store=KeptStore(), policies=policies)
    assert policies.requirement("orders", 1) is None


def test_a_value_that_is_not_kept_is_an_error_of_its_topic_which_was_created() -> None:
    result = CreateTopicsResponseData(topics=[created("orders"), created("plain")])
    response, _ = handled(creation(("orders", {KEY: "2"}), ("plain", {})), result, store=FullStore())
    assert [(one.error_code, one.error_message) for one in response.topics] == [
        (-1, "the topic was created, and min.insync.racks may not be kept: no leader"),
        (0, None),
    ]


def test_a_topic_with_a_value_that_is_refused_is_not_created_and_the_others_are() -> None:
    result = CreateTopicsResponseData(topics=[created("plain")])
    response, session = handled(creation(("orders", {KEY: "9"}), ("plain", {})), result, store=KeptStore())
    assert [topic.name for topic in session.sent[0][3].topics] == ["plain"]
    message = (
        "min.insync.racks 9: the cluster has 3 racks, so that no produce could be acknowledged; set a lower value, or add "
        "racks first"
    )
    assert response.topics == [
        created("plain"),
        CreatableTopicResult(
            name="orders",
            error_code=40,
            error_message=message,
            num_partitions=-1,
            replication_factor=-1,
            configs=None,
        ),
    ]
    alone, session = handled(creation(("orders", {KEY: "9"})), store=KeptStore())
    assert ([one.error_code for one in alone.topics], session.sent) == ([40], [])


# Replicas from a placer.


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> type[Load]:
    monkeypatch.setattr(topic_requests, "ClusterLoad", Load)
    monkeypatch.setattr(Load, "values", DEFAULTS)
    return Load


def rows(topic: CreatableTopic | CreatePartitionsTopic) -> list[tuple[int, ...]]:
    return [tuple(row.broker_ids) for row in topic.assignments or ()]


@pytest.mark.parametrize(
    ("partitions", "factor", "expected"),
    [
        (1, 2, [(2, 0, 2)]),
        (-1, 2, [(2, 0, 2), (2, 1, 2)]),
        (1, -1, [(2, 0, 3)]),
        (-1, -1, [(2, 0, 3), (2, 1, 3)]),
        # Kafka refuses these, in its own words.
        (0, 2, []),
        (1, 0, []),
        (-2, 1, []),
        (1, -2, []),
    ],
)
def test_a_new_topic_is_placed_with_the_clusters_defaults_where_it_has_no_counts(
    load: type[Load], partitions: int, factor: int, expected: list[tuple[int, ...]]
) -> None:
    topic = CreatableTopic(name="orders", num_partitions=partitions, replication_factor=factor)
    result = CreateTopicsResponseData(topics=[created("orders")])
    _, session = handled(CreateTopicsRequestData(topics=[topic]), result, placer=True)
    (sent,) = session.sent[0][3].topics
    assert rows(sent) == expected
    assert [one.partition_index for one in sent.assignments] == [*range(len(expected))]
    counts = (-1, -1) if expected else (partitions, factor)
    assert (sent.num_partitions, sent.replication_factor) == counts


def test_a_new_topic_with_an_assignment_keeps_it_and_without_a_placer_kafka_places(load: type[Load]) -> None:
    own = [CreatableReplicaAssignment(partition_index=0, broker_ids=[3])]
    for placer, assignments in ((True, own), (False, [])):
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1, assignments=assignments)
        result = CreateTopicsResponseData(topics=[created("orders")])
        _, session = handled(
            CreateTopicsRequestData(topics=[topic]), result, placer=placer, store=None if placer else KeptStore()
        )
        (sent,) = session.sent[0][3].topics
        assert (rows(sent), sent.num_partitions) == ([(3,)] if placer else [], 1)


@pytest.mark.parametrize(("extended", "code"), [(False, -1), (True, 1003)])
def test_topics_that_cannot_be_placed_are_refused_with_the_reason_and_counted(
    load: type[Load], extended: bool, code: int
) -> None:
    load.values = ClusterUnreachable("no broker responds")
    topics = [
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
        for name, partitions, factor in (("good", 1, 1), ("nine", 1, 9), ("defaults", -1, 1))
    ]
    result = CreateTopicsResponseData(topics=[created("good")])
    response, session = handled(CreateTopicsRequestData(topics=topics), result, placer=True, extended=extended)
    assert [one.name for one in session.sent[0][3].topics] == ["good"]
    assert [(one.name, one.error_code, one.error_message) for one in response.topics] == [
        ("good", 0, None),
        ("nine", code, "nine are too many"),
        ("defaults", code, "the cluster could not be read to place defaults: no broker responds"),
    ]


def more(
    name: str, count: int, assignments: Sequence[CreatePartitionsAssignment] | None = None
) -> CreatePartitionsTopic:
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def test_new_partitions_are_placed_behind_those_that_there_are(load: type[Load]) -> None:
    own = [CreatePartitionsAssignment(broker_ids=[9])]
    body = CreatePartitionsRequestData(
        topics=[
            *(more("orders", 4), more("orders", 3), more("orders", 3, own)),
            # Kafka refuses these, in its own words.
            *(more("orders", 2), more("orders", 1), more("gone", 3), more("orders", 3, [])),
            *(more("configs", 2), more("unreadable", 2)),
        ]
    )
    accepted = CreatePartitionsTopicResult(name="orders")
    response, session = handled(body, CreatePartitionsResponseData(results=[accepted]), placer=True, store=KeptStore())
    ((key, version, client_id, sent),) = session.sent
    assert (key, version, client_id) == (ApiKey.CREATE_PARTITIONS, 3, "shop")
    assert [(one.name, one.count, rows(one)) for one in sent.topics] == [
        ("orders", 4, [(2, 2, 2), (2, 3, 2)]),
        ("orders", 3, [(2, 2, 2)]),
        ("orders", 3, [(9,)]),
        *(("orders", 2, []), ("orders", 1, []), ("gone", 3, []), ("orders", 3, [])),
    ]
    assert (sent.topics[3].assignments, sent.topics[6].assignments) == (None, [])
    reason = "the cluster could not be read to place new partitions of unreadable: no broker responds"
    assert response.results == [
        accepted,
        CreatePartitionsTopicResult(name="configs", error_code=29, error_message=REFUSED),
        CreatePartitionsTopicResult(name="unreadable", error_code=-1, error_message=reason),
    ]


def test_partitions_of_the_config_topic_alone_do_not_reach_the_cluster() -> None:
    response, session = handled(CreatePartitionsRequestData(topics=[more("configs", 2)]), store=KeptStore())
    assert [(one.name, one.error_code, one.error_message) for one in response.results] == [("configs", 29, REFUSED)]
    assert session.sent == []


def test_placements_and_failures_are_counted(load: type[Load]) -> None:
    async def scenario() -> tuple[int, int]:
        made = TopicRequests(cast("Any", SimpleNamespace(placer=object(), policies=None)), renamed(), None, None)
        placed: Any = Load(None)
        for factor in (1, 9, 9):
            await made._assign(CreatableTopic(name="orders", num_partitions=1, replication_factor=factor), placed)
        for name in ("orders", "gone", "unreadable"):
            await made._assign_more(more(name, 3), placed)
        return made.placements, made.placement_failures

    assert asyncio.run(scenario()) == (2, 3)


# Topics that Metadata creates.


def metadata(*topics: tuple[str, int]) -> MetadataResponseData:
    return MetadataResponseData(
        brokers=[MetadataResponseBroker(node_id=2, host="upstream", port=1, rack="r2")],
        topics=[MetadataResponseTopic(name=name, error_code=error) for name, error in topics],
    )


def wanted(*names: str) -> MetadataRequestData:
    return MetadataRequestData(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=True
    )


def of_brokers(response: MetadataResponseData) -> list[tuple[int, str, int, str | None]]:
    return [(one.node_id, one.host, one.port, one.rack) for one in response.brokers]


AT_GATEWAY = [(2, "gateway-2", 9002, "r2")]
MISSING = 3


def test_topics_that_metadata_would_create_are_created_with_replicas_from_the_placer(load: type[Load]) -> None:
    found = metadata(("orders", 0), ("new", MISSING), ("__consumer_offsets", MISSING), ("no/name", 17))
    response, session = handled(
        wanted("orders", "new", "__consumer_offsets", "no/name"),
        *(found, CreateTopicsResponseData(), metadata(("orders", 0), ("new", 0))),
        placer=True,
    )
    assert [(key, version, client_id) for key, version, client_id, _ in session.sent] == [
        (ApiKey.METADATA, 9, "shop"),
        (ApiKey.CREATE_TOPICS, 5, "shop"),
        (ApiKey.METADATA, 9, "shop"),
    ]
    first, creation, second = (body for _, _, _, body in session.sent)
    assert not first.allow_auto_topic_creation
    assert first == second
    assert [(one.name, rows(one)) for one in creation.topics] == [("new", [(1, 0, 3), (1, 1, 3)])]
    assert creation.timeout == 10_000
    assert [(one.name, one.error_code) for one in response.topics] == [("orders", 0), ("new", 0)]
    assert of_brokers(response) == AT_GATEWAY


@pytest.mark.parametrize("version", [0, 3])
def test_before_a_client_can_decline_creation_topics_are_created_before_kafka_sees_their_names(
    load: type[Load], version: int
) -> None:
    response, session = handled(
        wanted("new"),
        *(metadata(("new", MISSING)), CreateTopicsResponseData(), metadata(("new", 0))),
        placer=True,
        version=version,
    )
    assert [(key, of) for key, of, _, _ in session.sent] == [
        (ApiKey.METADATA, 4),
        (ApiKey.CREATE_TOPICS, 5),
        (ApiKey.METADATA, version),
    ]
    assert not session.sent[0][3].allow_auto_topic_creation
    assert [one.name for one in session.sent[0][3].topics] == ["new"]
    assert ([one.error_code for one in response.topics], of_brokers(response)) == ([0], AT_GATEWAY)


def test_metadata_of_topics_that_are_there_is_requested_once_and_no_default_is_read(
    load: type[Load], caplog: pytest.LogCaptureFixture
) -> None:
    load.values = ClusterUnreachable("no broker responds")
    addresses = Addresses(lambda *_: ("g", 1), lambda broker, rack: f"{rack}-of-{broker}")
    found = metadata(("orders", 0), ("no/name", 17))
    response, session = handled(wanted("orders"), found, placer=True, version=4, addresses=addresses)
    assert [(key, version) for key, version, _, _ in session.sent] == [(ApiKey.METADATA, 4)]
    assert of_brokers(response) == [(2, "g", 1, "r2-of-2")]
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"auto.create.topics.enable": 0}, None),
        (ClusterUnreachable("no broker responds"), "topics new are not created automatically: no broker responds"),
        (
            {"auto.create.topics.enable": 1, "num.partitions": 1, "default.replication.factor": 9},
            "topic new is not created automatically: nine are too many",
        ),
    ],
)
def test_topics_that_are_not_created_automatically_stay_unknown(
    load: type[Load],
    values: Mapping[str, int] | Exception,
    line: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    load.values = values
    response, session = handled(wanted("new"), metadata(("new", MISSING)), placer=True)
    assert [(one.name, one.error_code) for one in response.topics] == [("new", MISSING)]
    assert (len(session.sent), of_brokers(response)) == (1, AT_GATEWAY)
    assert caplog.messages == ([] if line is None else [line])
