"""What the source requests of a cluster, what it requests again, and which errors it raises."""

from base64 import urlsafe_b64encode
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from rackspan.client.errors import ErrorResponse
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_source import cluster as module
from rackspan.kafka_source.cluster import FetchedRecords, SourceCluster
from rackspan.kafka_source.options import ClientOptions
from rackspan.kafka_source.records.columns import FetchedAbort
from rackspan.model.ids import TopicPartition
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.brokers import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponseData,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from rackspan.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchResponseAbortedTransaction,
    FetchResponseData,
    FetchResponsePartitionData,
)
from rackspan.wire.messages.groups import FindCoordinatorResponseData
from rackspan.wire.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponseData,
    ListOffsetsTopicResponse,
)
from rackspan.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.scripted_connection import Respond, ScriptedConnection

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TOPIC_ID = UUID(int=7)


def topic(name: str, *leaders: int, error_code: int = 0, internal: bool = False) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(partition_index=at, leader_id=leader, replica_nodes=[1, 2], isr_nodes=[1])
        for at, leader in enumerate(leaders)
    ]
    return MetadataResponseTopic(
        name=name, topic_id=TOPIC_ID, error_code=error_code, is_internal=internal, partitions=partitions
    )


def metadata(*topics: MetadataResponseTopic) -> MetadataResponseData:
    brokers = [MetadataResponseBroker(node_id=1, rack="r1"), MetadataResponseBroker(node_id=2)]
    return MetadataResponseData(brokers=brokers, topics=topics)


class Scene:
    """A source's cluster before a scripted connection, on a clock that only its pauses move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, script: dict[ApiKey, Respond], **options: Any) -> None:
        self.connection = ScriptedConnection(script)
        self.pauses: list[float] = []
        self.now = 0.0
        monkeypatch.setattr(module, "ClusterConnection", self.connection)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        client = ClientOptions("h:1", {"client.id": "x"}, **{"progress_timeout_seconds": 1.0, **options})
        self.cluster = SourceCluster(client, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def once(error: Exception, then: Any) -> Respond:
    """The error at first."""
    responses = iter([error])
    return lambda *_: next(responses, then)


# -- topics


def test_the_connection_is_opened_once_with_the_properties_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, {ApiKey.METADATA: lambda *_: metadata()})
    assert not scene.cluster.is_open
    with scene.cluster as cluster:
        for _ in range(2):
            cluster.metadata(None)
        assert cluster.is_open
        [settings] = scene.connection.settings
        assert (settings.bootstrap_servers, settings.properties) == ("h:1", {"client.id": "x"})
    assert (cluster.is_open, scene.connection.closed) == (False, 1)
    cluster.close()
    assert scene.connection.closed == 1


def test_metadata_has_racks_topics_and_what_is_wrong_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[list[str] | None] = []

    def respond(request: Any, _: int | None) -> MetadataResponseData:
        sent.append(None if request.topics is None else [each.name for each in request.topics])
        return metadata(topic("a", 1, 2), topic("late", error_code=5), topic("secret", error_code=29))

    found = Scene(monkeypatch, {ApiKey.METADATA: respond}).cluster.metadata(["b", "a", "b"])
    assert sent == [["a", "b"]]
    assert found.racks == {1: "r1", 2: None}
    assert found.partitions() == [A0, A1]
    assert found.topics["a"].partitions[1] == module.SourcePartition(2, (1, 2), (1,))
    assert found.topic_ids() == {"a": urlsafe_b64encode(TOPIC_ID.bytes).decode().rstrip("=")}
    assert found.errors == {"late": "LEADER_NOT_AVAILABLE (5)", "secret": "TOPIC_AUTHORIZATION_FAILED (29)"}
    assert found.refused == {"secret"}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("orders", ["orders", "orders-2", "my-orders"]),
        ("^orders", ["orders", "orders-2"]),
        ("^(order.|payments)$", ["orders"]),
        ("order.*-", ["orders-2"]),
    ],
)
def test_a_pattern_is_found_anywhere_in_names_of_topics_that_are_not_internal(
    monkeypatch: pytest.MonkeyPatch, pattern: str, names: list[str]
) -> None:
    """As in Spark's connector since 3.4: "topicRegex.findFirstIn(name).isDefined" of the topics that are listed without internal ones."""
    every = metadata(topic("orders", 1), topic("orders-2", 1), topic("my-orders", 1), topic("order_", 1, internal=True))
    found = Scene(monkeypatch, {ApiKey.METADATA: lambda *_: every}).cluster.matching(pattern)
    assert list(found.topics) == names
    assert (found.racks, found.errors) == ({1: "r1", 2: None}, {})


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("closed"),
        ClusterUnreachable("no broker responded"),
        ErrorResponse(ErrorCode.NOT_CONTROLLER),
    ],
    ids=["no connection", "no broker", "retriable"],
)
def test_what_may_pass_is_requested_again_until_the_timeout(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    scene = Scene(monkeypatch, {ApiKey.METADATA: once(error, metadata(topic("a", 1)))})
    assert list(scene.cluster.metadata(["a"]).topics) == ["a"]
    assert scene.pauses == [0.1]
    scene = Scene(monkeypatch, {ApiKey.METADATA: lambda *_: error})
    with pytest.raises(ClusterUnreachable) as failed:
        scene.cluster.metadata(["a"])
    named = error if isinstance(error, ClusterUnreachable) else f"h:1: {error}"
    assert str(failed.value) == str(named)
    assert 1.0 < scene.now < 1.2


def test_what_does_not_pass_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, {ApiKey.METADATA: lambda *_: ErrorResponse(ErrorCode.INVALID_TOPIC_EXCEPTION)})
    with pytest.raises(ErrorResponse, match="INVALID_TOPIC_EXCEPTION"):
        scene.cluster.metadata(["a"])
    assert scene.pauses == []


# -- offsets


def offsets(by_partition: dict[TopicPartition, tuple[int, int]], received: list[Any] | None = None) -> Respond:
    """ListOffsets: the offset and error code of each partition that is requested."""

    def respond(request: Any, broker: int | None) -> ListOffsetsResponseData:
        if received is not None:
            wanted = {
                TopicPartition(each.name, row.partition_index): row.timestamp
                for each in request.topics
                for row in each.partitions
            }
            received.append((broker, request.isolation_level, wanted))
        return ListOffsetsResponseData(
            topics=[
                ListOffsetsTopicResponse(
                    name=each.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=row.partition_index, offset=offset, error_code=code
                        )
                        for row in each.partitions
                        for offset, code in [by_partition[TopicPartition(each.name, row.partition_index)]]
                    ],
                )
                for each in request.topics
            ]
        )

    return respond


TWO_TOPICS: Respond = lambda *_: metadata(topic("a", 1, 2), topic("b", 2))  # noqa: E731


@pytest.mark.parametrize(
    ("configured", "given", "isolation"),
    [(False, None, 0), (True, None, 1), (True, False, 0), (False, True, 1)],
)
def test_offsets_are_those_of_the_leaders(
    monkeypatch: pytest.MonkeyPatch, configured: bool, given: bool | None, isolation: int
) -> None:
    received: list[Any] = []
    script = {
        ApiKey.METADATA: TWO_TOPICS,
        ApiKey.LIST_OFFSETS: offsets({A0: (5, 0), A1: (-1, 0), B0: (7, 0)}, received),
    }
    scene = Scene(monkeypatch, script, read_committed=configured)
    assert scene.cluster.offsets({A0: -2, A1: 99, B0: -1}, committed=given) == {A0: 5, A1: -1, B0: 7}
    assert received == [(1, isolation, {A0: -2}), (2, isolation, {A1: 99, B0: -1})]


def test_of_a_leader_that_has_changed_only_the_missing_offsets_are_requested_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leaders = iter([(1, 2), (1, 1)])
    received: list[Any] = []
    moved = offsets({A0: (5, 0), A1: (9, 0)}, received)

    def respond(request: Any, broker: int | None) -> Any:
        refused = offsets({A0: (5, 0), A1: (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)})(request, broker)
        found = moved(request, broker)
        return refused if broker == 2 else found

    scene = Scene(
        monkeypatch,
        {ApiKey.METADATA: lambda *_: metadata(topic("a", *next(leaders))), ApiKey.LIST_OFFSETS: respond},
    )
    assert scene.cluster.offsets({A0: -1, A1: -1}) == {A0: 5, A1: 9}
    assert [(broker, list(wanted)) for broker, _, wanted in received] == [(1, [A0]), (2, [A1]), (1, [A1])]
    assert scene.pauses == [0.1]


@pytest.mark.parametrize(
    ("found", "response", "why"),
    [
        (topic("a", -1), None, "it has no leader"),
        (topic("a", error_code=5), None, r"LEADER_NOT_AVAILABLE \(5\)"),
        (topic("a", 1), (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), r"NOT_LEADER_OR_FOLLOWER \(6\)"),
        (topic("a", 1), ConnectionResetError("closed"), "broker 1: closed"),
    ],
    ids=["no leader", "no topic", "another leader", "no connection"],
)
def test_offsets_that_cannot_be_had_are_an_error_after_the_timeout(
    monkeypatch: pytest.MonkeyPatch, found: MetadataResponseTopic, response: Any, why: str
) -> None:
    respond = offsets({A0: response}) if isinstance(response, tuple) else (lambda *_: response)
    scene = Scene(monkeypatch, {ApiKey.METADATA: lambda *_: metadata(found), ApiKey.LIST_OFFSETS: respond})
    with pytest.raises(ClusterRequestFailed, match=f"^the offsets of a-0 cannot be read: {why}$"):
        scene.cluster.offsets({A0: -1})
    assert 1.0 < scene.now < 1.2


def test_of_offsets_that_cannot_be_had_the_first_is_named_beside_a_broker_that_does_not_respond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    responses: dict[ApiKey, Respond] = {
        ApiKey.METADATA: lambda *_: metadata(topic("a", -1, 1)),
        ApiKey.LIST_OFFSETS: lambda *_: TimeoutError(),
    }
    with pytest.raises(ClusterRequestFailed, match=r"^the offsets of a-0 cannot be read: it has no leader$"):
        Scene(monkeypatch, responses).cluster.offsets({A0: -1, A1: -1})


def test_an_offset_that_is_refused_for_good_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(
        monkeypatch,
        {ApiKey.METADATA: TWO_TOPICS, ApiKey.LIST_OFFSETS: offsets({A0: (-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)})},
    )
    with pytest.raises(
        ClusterRequestFailed, match=r"the offsets of a-0 cannot be read: TOPIC_AUTHORIZATION_FAILED \(29\)"
    ):
        scene.cluster.offsets({A0: -1})
    assert scene.pauses == []


def test_bytes_per_offset_are_the_average_of_what_the_leader_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a-1 the leader has no size; what broker 2 stores of a-0 as a follower does not count."""

    def sizes(_: Any, broker: int | None) -> DescribeLogDirsResponseData:
        stored = {1: {"a": [(0, 600)]}, 2: {"a": [(0, 9)], "b": [(0, 0)]}}[broker or 0]
        topics = [
            DescribeLogDirsTopic(
                name=name,
                partitions=[DescribeLogDirsPartition(partition_index=at, partition_size=size) for at, size in rows],
            )
            for name, rows in stored.items()
        ]
        return DescribeLogDirsResponseData(results=[DescribeLogDirsResult(topics=topics)])

    def ends(request: Any, broker: int | None) -> Any:
        [first] = {row.timestamp for each in request.topics for row in each.partitions}
        return offsets({A0: (10 if first == -2 else 30, 0), B0: (4, 0)})(request, broker)

    scene = Scene(
        monkeypatch,
        {ApiKey.METADATA: TWO_TOPICS, ApiKey.DESCRIBE_LOG_DIRS: sizes, ApiKey.LIST_OFFSETS: ends},
    )
    assert scene.cluster.bytes_per_offset([A0, A1, B0]) == {A0: 30.0, A1: 1.0, B0: 0.0}


def test_sizes_that_may_not_be_read_name_the_right_and_the_other_option(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = DescribeLogDirsResponseData(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    scene = Scene(monkeypatch, {ApiKey.METADATA: TWO_TOPICS, ApiKey.DESCRIBE_LOG_DIRS: lambda *_: refused})
    with pytest.raises(ClusterUnauthorized, match="maxBytesPerTrigger needs; allow Describe on the cluster, or use"):
        scene.cluster.bytes_per_offset([A0])


def test_offsets_that_cannot_be_committed_are_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = FindCoordinatorResponseData(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    scene = Scene(monkeypatch, {ApiKey.FIND_COORDINATOR: lambda *_: refused})
    assert scene.cluster.commit("g", {A0: 5}) == "GROUP_AUTHORIZATION_FAILED"
    assert len(scene.connection.requests) == 1


# -- records


@pytest.mark.parametrize("committed", [False, True])
def test_a_fetch_is_of_one_partition_from_the_broker_that_is_named(
    monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    requests: list[Any] = []
    row = FetchResponsePartitionData(
        records=memoryview(b"records"),
        high_watermark=9,
        log_start_offset=2,
        aborted_transactions=[FetchResponseAbortedTransaction(producer_id=4, first_offset=3)],
    )

    def respond(request: Any, _: int | None) -> FetchResponseData:
        requests.append(request)
        return FetchResponseData(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[row])])

    scene = Scene(monkeypatch, {ApiKey.FETCH: respond}, read_committed=committed, fetch_wait_ms=77)
    topic_id = urlsafe_b64encode(TOPIC_ID.bytes).decode().rstrip("=")
    fetched = scene.cluster.fetch(2, topic_id, A1, 5, 1000)()
    assert fetched == FetchedRecords(0, b"records", 9, 2, (FetchedAbort(4, 3),), by_name=False)
    [request] = requests
    assert scene.connection.requests == [(ApiKey.FETCH, 2)]
    assert (request.max_wait, request.min_bytes, request.max_bytes, request.rack_id) == (77, 1, 1000, "")
    assert (request.isolation_level, request.topics[0].topic, request.topics[0].topic_id) == (committed, "a", TOPIC_ID)
    [partition] = request.topics[0].partitions
    assert (partition.partition, partition.fetch_offset, partition.partition_max_bytes) == (1, 5, 1000)
    assert scene.connection.most == [None]


def test_a_topic_without_an_id_is_fetched_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    row = FetchResponsePartitionData(error_code=1, high_watermark=-1)
    response = FetchResponseData(responses=[FetchableTopicResponse(topic="a", partitions=[row])])
    scene = Scene(monkeypatch, {ApiKey.FETCH: lambda *_: response})
    assert scene.cluster.fetch(2, None, A0, 5, 1000)() == FetchedRecords(1, b"", -1, -1, (), by_name=True)
    assert scene.connection.most == [12]


def test_an_error_of_a_whole_fetch_is_that_of_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, {ApiKey.FETCH: lambda *_: FetchResponseData(error_code=ErrorCode.INCONSISTENT_TOPIC_ID)})
    assert scene.cluster.fetch(1, None, A0, 5, 1000)().error_code == ErrorCode.INCONSISTENT_TOPIC_ID
