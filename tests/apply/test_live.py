"""The cluster as a run observes it; a run on Kafka 3, by the command line in this process. Kafka 4 is met in tests/compat/test_reassign_apply.py."""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rackspan.apply.live import LiveCluster
from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.errors import ErrorResponse
from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.core.ids import CONTROLLER
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_process import KafkaCluster
from rackspan.model import TopicPartition
from rackspan.plan.execution.observed import ObservationRequest, ObservedCluster
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.configs import (
    DescribeConfigsResponseData,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponseData,
)
from rackspan.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rackspan.wire.messages.reassignments import (
    AlterPartitionReassignmentsResponseData,
    ElectLeadersResponseData,
    ListPartitionReassignmentsResponseData,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    PartitionResult,
    ReplicaElectionResult,
)
from tests.cli.conftest import Ran, cli
from tests.kafka_fixtures import create_topic
from tests.kafka_tools import described, produce, reassign
from tests.waiting import eventually

Cli = Callable[..., Ran]

__all__ = ["cli"]


@pytest.mark.rest
@pytest.mark.kafka
def test_kafka_3_takes_a_file_of_another_tool(cli: Cli, kafka3: KafkaCluster, tmp_path: Path) -> None:
    create_topic(kafka3, "moved", assignment=[[1], [1], [1]])
    produce(kafka3, "moved", 3, 100_000)
    wanted = {0: [2], 1: [2, 1], 2: [1, 2]}
    entries = [
        {"topic": "moved", "partition": partition, "replicas": replicas} for partition, replicas in wanted.items()
    ]
    (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": entries}))
    where = ("--plan", "plan.json", "--bootstrap-server", kafka3.bootstrap_servers)
    ran = cli("reassign", "apply", *where, "--apply", "--throttle", "1000000", "--cluster-id", kafka3.cluster_id)
    assert (ran.code, ran.out) == (0, "settings: none\ndone: 1 of 1 step, 3 of 3 moves; journal plan.json.journal\n"), (
        ran.err
    )
    assert "step 1 of 1: 3 partitions started, 3 copies to make" in ran.err
    assert replicas(kafka3) == [(2,), (2, 1), (1, 2)]
    output = reassign(kafka3, tmp_path, "--verify", "--preserve-throttles", moved_0=[2], moved_1=[2, 1], moved_2=[1, 2])
    assert output.count("is completed.") == 3
    assert cli("reassign", "verify", *where).code == 0
    ran = cli("reassign", "undo", *where, "--apply")
    assert ran.code == 0, ran.err
    assert replicas(kafka3) == [(1,), (1,), (1,)]
    assert cli("reassign", "verify", *where).code == 2


@pytest.mark.kafka
def test_a_broker_of_kafka_3_that_restarts_loses_no_replica_to_a_plan(
    cli: Cli, kafka3: KafkaCluster, tmp_path: Path
) -> None:
    """Kafka 3 does not list a broker that restarts: its replicas stay where they are unless a flag says it is gone."""
    create_topic(kafka3, "restarts", assignment=[[1, 2], [2, 1]])
    planning = ("reassign", "plan", "--bootstrap-server", kafka3.bootstrap_servers.split(",")[0], "--topic", "restarts")
    assert sets_planned(cli(*planning, "-o", "json").out) <= {(1, 2)}
    kafka3.kill(2)
    try:
        eventually(lambda: len(described(kafka3)["restarts", 1].isr) == 1, "broker 2 is out of sync")
        for words in ((), ("--replication-factor", "1"), ("--balance",)):
            ran = cli(*planning, *words, "-o", "json")
            document = json.loads(ran.out)
            assert (ran.code, document["partitions"]) == (1, []), words
            assert "which the cluster does not list: before Kafka 4 that is also a broker that restarts" in ran.out
        gone = cli(*planning, "--replication-factor", "1", "--replace-missing-brokers", "-o", "json")
        assert sets_planned(gone.out) == {(1,)}
    finally:
        kafka3.restart(2)
    eventually(lambda: len(described(kafka3)["restarts", 1].isr) == 2, "broker 2 is back")
    assert sets_planned(cli(*planning, "-o", "json").out) <= {(1, 2)}


def sets_planned(document: str) -> set[tuple[int, ...]]:
    """The brokers of each partition that a plan changes. Another test's topics may be a reason to change the order of these."""
    return {tuple(sorted(one["replicas"])) for one in json.loads(document)["partitions"]}


def replicas(cluster: KafkaCluster) -> list[tuple[int, ...]]:
    found = described(cluster)
    return [found["moved", partition].replicas for partition in range(3)]


def test_an_observation_has_what_its_topics_brokers_and_throttles_are() -> None:
    rate, replicas = "leader.replication.throttled.rate", "leader.replication.throttled.replicas"
    of_topic, of_brokers = (
        ConfigKey(Holder.TOPIC, "moved", replicas),
        [ConfigKey(Holder.BROKER, str(broker), rate) for broker in (1, 2, 3)],
    )
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        cluster.create_topic("moved", replicas=[[2, 1], [1, 3]])
        for topic in ("alone", "other"):
            cluster.create_topic(topic, replicas=[[3]])
        with LiveCluster(ConnectionSettings(cluster.bootstrap_servers.split(",")[0])) as live:
            live.set_configs({of_topic: "0:1", of_brokers[0]: "1000"})
            cluster.kill(3)
            request = ObservationRequest(frozenset({"moved", "alone", "missing"}), frozenset({of_topic, *of_brokers}))
            eventually(lambda: live.observe(request).brokers == {1, 2}, "broker 3 is fenced")
            found = live.observe(request)
        ids = {str(topic.name): UUID(topic.topic_id) for topic in cluster.snapshot().topics}
    zero, one, alone = TopicPartition("moved", 0), TopicPartition("moved", 1), TopicPartition("alone", 0)
    assert found == ObservedCluster(
        cluster_id=cluster.cluster_id,
        brokers=frozenset({1, 2}),
        topic_ids={name: urlsafe_b64encode(ids[name].bytes).decode().removesuffix("==") for name in ("moved", "alone")},
        replicas={zero: (2, 1), one: (1, 3), alone: (3,)},
        isr={zero: (2, 1), one: (1,), alone: ()},
        leaders={zero: 2, one: 1, alone: -1},
        leaderless=frozenset({alone}),
        in_flight={},
        configs={of_topic: "0:1", of_brokers[0]: "1000", of_brokers[1]: None},
        copied_bytes={},
    )


def test_a_change_that_the_cluster_refuses_is_named_with_its_reason() -> None:
    throttled = ConfigKey(Holder.TOPIC, "missing", "leader.replication.throttled.replicas")
    with EmbeddedCluster(racks=1, brokers=1) as cluster:
        cluster.create_topic("moved", replicas=[[1]])
        with LiveCluster(ConnectionSettings(cluster.bootstrap_servers)) as live:
            with pytest.raises(ClusterRequestFailed, match=r"^moved-0 was not reassigned to 9: \S"):
                live.start_moves({TopicPartition("moved", 0): (9,)})
            with pytest.raises(ClusterRequestFailed, match=r"^throttle of topic missing was not changed: \S"):
                live.set_configs({throttled: "0:1"})


class Served:
    """In place of a connection: what an API responds, or how it fails, and the requests that were sent."""

    remaining_seconds = 30.0

    def __init__(self, responses: Mapping[ApiKey, WireStruct | Exception]) -> None:
        self._responses = {ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignmentsResponseData(), **responses}
        self.sent: dict[ApiKey, Any] = {}
        self.seconds: dict[ApiKey, float | None] = {}
        self.closed = False

    def __enter__(self) -> "Served":
        return self

    def close(self) -> None:
        self.closed = True

    def run(self, coroutine: Callable[..., Any], *arguments: object) -> Any:
        return asyncio.run(coroutine(*arguments))

    async def call(self, api_key: ApiKey, request: Any, seconds: float | None = None, **_: object) -> Any:
        self.sent[api_key], self.seconds[api_key] = request, seconds
        response = self._responses[api_key]
        if isinstance(response, Exception):
            raise response
        return response

    call_controller = call


def served(monkeypatch: pytest.MonkeyPatch, responses: Mapping[ApiKey, WireStruct | Exception]) -> Served:
    connection = Served(responses)
    monkeypatch.setattr("rackspan.apply.live.ClusterConnection", lambda _settings: connection)
    return connection


def test_topics_that_may_not_be_described_are_named_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever order a broker lists them."""
    names = [f"topic-{number}" for number in range(20)]
    hidden = [MetadataResponseTopic(name=name, error_code=29) for name in reversed(names)]
    connection = served(monkeypatch, {ApiKey.METADATA: MetadataResponseData(topics=hidden)})
    first = "topic-0, topic-1, topic-10 and 17 more"
    with (
        LiveCluster(ConnectionSettings("a:1")) as live,
        pytest.raises(ClusterUnauthorized, match=f"^topic {first} may not .* needs Describe on Topic {first};"),
    ):
        live.observe(ObservationRequest(frozenset(names)))
    assert [topic.name for topic in connection.sent[ApiKey.METADATA].topics] == sorted(names)
    assert connection.closed


def test_what_a_connection_that_ends_leaves_unknown_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    throttled = ConfigKey(Holder.TOPIC, "moved", "leader.replication.throttled.replicas")
    lost = dict.fromkeys((ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_PARTITION_REASSIGNMENTS), ConnectionResetError("gone"))
    served(monkeypatch, {ApiKey.METADATA: MetadataResponseData(), **lost})
    with (
        LiveCluster(ConnectionSettings("a:1")) as live,
        pytest.raises(ClusterUnreachable, match=r"^throttles of topics was not received: it closed the connection"),
    ):
        live.observe(ObservationRequest(configs=frozenset({throttled})))
    with (
        LiveCluster(ConnectionSettings("a:1")) as live,
        pytest.raises(ClusterUnreachable, match=r"^no partition was reassigned, as far as is known: it closed the"),
    ):
        live.start_moves({TopicPartition("moved", 0): (1,)})


@pytest.mark.parametrize(
    ("holder", "seconds", "line"),
    [
        (Holder.TOPIC, None, "throttle of topic 1 was not changed: this user needs AlterConfigs on Topic 1;"),
        (Holder.BROKER, 5.0, "throttle of broker 1 was not changed: this user needs AlterConfigs on Cluster;"),
    ],
)
def test_a_throttle_that_may_not_be_changed_names_the_right(
    holder: Holder, seconds: float | None, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether all of a request is refused or one config of it."""
    of_all = ErrorResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    result = IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, resource_type=2, resource_name="1"
    )
    for response in (of_all, IncrementalAlterConfigsResponseData(responses=[result])):
        connection = served(monkeypatch, {ApiKey.INCREMENTAL_ALTER_CONFIGS: response})
        with (
            LiveCluster(ConnectionSettings("a:1")) as live,
            pytest.raises(ClusterUnauthorized, match=f"^{line} grant it with kafka-acls.sh$"),
        ):
            live.set_configs({ConfigKey(holder, "1", "leader.replication.throttled.rate"): "5"})
        assert connection.seconds[ApiKey.INCREMENTAL_ALTER_CONFIGS] == seconds


def test_a_broker_that_does_not_respond_holds_up_no_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second for the sizes, which are only displayed; five for a broker's own configs."""
    row = MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=(1, 2), isr_nodes=(1,))
    moving = OngoingPartitionReassignment(partition_index=0, replicas=(1, 2), adding_replicas=(2,))
    listed = [OngoingTopicReassignment(name="moved", partitions=[moving])]
    rate = ConfigKey(Holder.BROKER, "1", "leader.replication.throttled.rate")
    connection = served(
        monkeypatch,
        {
            ApiKey.METADATA: MetadataResponseData(
                brokers=[MetadataResponseBroker(node_id=broker) for broker in (1, 2)],
                topics=[MetadataResponseTopic(name="moved", partitions=[row])],
            ),
            ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignmentsResponseData(topics=listed),
            ApiKey.DESCRIBE_LOG_DIRS: TimeoutError("no response in time"),
            ApiKey.DESCRIBE_CONFIGS: TimeoutError("no response in time"),
        },
    )
    with LiveCluster(ConnectionSettings("a:1")) as live:
        found = live.observe(ObservationRequest(frozenset({"moved"})))
    with (
        LiveCluster(ConnectionSettings("a:1")) as live,
        pytest.raises(ClusterUnreachable, match=r"^the throttle of broker 1 was not received: no response in time;"),
    ):
        live.observe(ObservationRequest(configs=frozenset({rate})))
    connection._responses[ApiKey.DESCRIBE_LOG_DIRS] = KeyError("a fault of ours")
    with LiveCluster(ConnectionSettings("a:1")) as live, pytest.raises(KeyError, match="a fault of ours"):
        live.observe(ObservationRequest(frozenset({"moved"})))
    assert (set(found.in_flight), found.copied_bytes) == ({TopicPartition("moved", 0)}, {})
    assert connection.seconds[ApiKey.DESCRIBE_LOG_DIRS] == 1.0
    assert connection.seconds[ApiKey.DESCRIBE_CONFIGS] == 5.0


def test_a_reassignment_of_a_topic_that_is_not_observed_has_no_copied_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    moving = OngoingPartitionReassignment(partition_index=0, replicas=(1, 2), adding_replicas=(2,))
    listed = [OngoingTopicReassignment(name="other", partitions=[moving])]
    under_way = ListPartitionReassignmentsResponseData(topics=listed)
    responses = {ApiKey.METADATA: MetadataResponseData(), ApiKey.LIST_PARTITION_REASSIGNMENTS: under_way}
    served(monkeypatch, responses)
    with LiveCluster(ConnectionSettings("a:1")) as live:
        found = live.observe(ObservationRequest())
    assert (set(found.in_flight), found.copied_bytes) == ({TopicPartition("other", 0)}, {})


def test_a_reassignment_that_is_refused_as_a_whole_names_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = AlterPartitionReassignmentsResponseData(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    served(monkeypatch, {ApiKey.ALTER_PARTITION_REASSIGNMENTS: refused})
    line = "no partition was reassigned: this user needs Alter on Cluster; grant it with kafka-acls.sh"
    with LiveCluster(ConnectionSettings("a:1")) as live, pytest.raises(ClusterUnauthorized, match=f"^{line}$"):
        live.start_moves({TopicPartition("orders", 3): (1, 2)})


@pytest.mark.parametrize(("code", "refused"), [(0, False), (84, False), (80, False), (6, True), (3, True)])
def test_an_election_that_is_refused_is_named_and_one_that_is_not_needed_or_possible_passed_over(
    code: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """84: led by it already. 80: it is not in sync."""
    elected = PartitionResult(partition_id=3, error_code=code)
    results = [ReplicaElectionResult(topic="orders", partition_result=[elected])]
    connection = served(monkeypatch, {ApiKey.ELECT_LEADERS: ElectLeadersResponseData(replica_election_results=results)})
    wanted = pytest.raises(ClusterRequestFailed, match=r"^the preferred leader of orders-3 was not elected: \S")
    with LiveCluster(ConnectionSettings("a:1")) as live, wanted if refused else nullcontext():
        live.elect_leaders((TopicPartition("orders", 3),))
    assert connection.sent[ApiKey.ELECT_LEADERS].election_type == 0


def test_configs_are_requested_by_their_names_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    topics, keys = [f"topic-{number}" for number in range(9)], ["c", "a", "b"]
    configs = frozenset(ConfigKey(Holder.TOPIC, topic, key) for topic in topics for key in keys)
    responses = {ApiKey.METADATA: MetadataResponseData(), ApiKey.DESCRIBE_CONFIGS: DescribeConfigsResponseData()}
    connection = served(monkeypatch, responses)
    with LiveCluster(ConnectionSettings("a:1")) as live:
        live.observe(ObservationRequest(configs=configs))
    resources = connection.sent[ApiKey.DESCRIBE_CONFIGS].resources
    assert [(one.resource_name, list(one.configuration_keys)) for one in resources] == [
        (topic, ["a", "b", "c"]) for topic in topics
    ]


def test_reassignments_are_observed_before_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    """A move that ends between the two still shows as moving, never as neither moving nor done."""
    sent: list[ApiKey] = []
    call = ClusterConnection.call

    def recorded(self: ClusterConnection, key: ApiKey, *words: Any, **options: Any) -> Any:
        sent.append(key)
        return call(self, key, *words, **options)

    with EmbeddedCluster(racks=1, brokers=1) as cluster:
        cluster.create_topic("moved", replicas=[[1]])
        with LiveCluster(ConnectionSettings(cluster.bootstrap_servers)) as live:
            live.observe(ObservationRequest(frozenset({"moved"})))
            monkeypatch.setattr(ClusterConnection, "call", recorded)
            live.observe(ObservationRequest(frozenset({"moved"})))
    assert sent[-2:] == [ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.METADATA]


@pytest.mark.slow
def test_what_a_copy_has_so_far_is_observed_where_it_arrives() -> None:
    """The new follower catches up, and its leader does not reach the controller, so that the move does not end."""
    with EmbeddedCluster(racks=3, brokers=3, config={"broker.session.timeout.ms": "600000"}) as cluster:
        cluster.create_topic("moved", replicas=[[1]])
        produce(cluster, "moved", 1, 10)
        size = sum(one.size_bytes or 0 for one in cluster.snapshot().partitions)
        third = cluster.bootstrap_servers.split(",")[2]
        moved = TopicPartition("moved", 0)
        with LiveCluster(ConnectionSettings(third)) as live:

            def observed() -> ObservedCluster:
                return live.observe(ObservationRequest(frozenset({"moved"})))

            assert observed().copied_bytes == {}
            cluster.cut(1, 2)
            live.start_moves({moved: (2,)})
            eventually(lambda: observed().copied_bytes == {moved: {2: 0}}, "the copy has begun")
            live.cancel_moves((moved,))
            eventually(lambda: observed().in_flight == {}, "the move is cancelled")
            assert observed().replicas == {moved: (1,)}
            live.start_moves({moved: (2,)})
            eventually(lambda: observed().copied_bytes == {moved: {2: 0}}, "the copy has begun again")
            cluster.cut(1, CONTROLLER)
            cluster.heal(1, 2)
            eventually(lambda: observed().copied_bytes == {moved: {2: size}}, "the copy is whole")
            assert size > 1_000
            cluster.heal(1, CONTROLLER)
            eventually(lambda: observed().in_flight == {}, "the move ends")
            assert observed().copied_bytes == {}


def test_one_connection_serves_a_run_and_outlives_the_broker_it_was_opened_to(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[ClusterConnection] = []
    enter = ClusterConnection.__enter__

    def counted(self: ClusterConnection) -> ClusterConnection:
        opened.append(self)
        return enter(self)

    monkeypatch.setattr(ClusterConnection, "__enter__", counted)
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        cluster.create_topic("moved", replicas=[[1, 2]])
        first = cluster.bootstrap_servers.split(",")[0]
        with LiveCluster(ConnectionSettings(first)) as live:
            required = ObservationRequest(frozenset({"moved"}))
            assert live.observe(required).brokers == {1, 2, 3}
            live.elect_leaders((TopicPartition("moved", 0),))
            cluster.kill(1)
            eventually(lambda: live.observe(required).brokers == {2, 3}, "another broker serves the run")
    assert len(opened) == 1


def test_a_closed_cluster_opens_another_connection_when_it_is_observed_again() -> None:
    with EmbeddedCluster() as cluster, LiveCluster(ConnectionSettings(cluster.bootstrap_servers)) as live:
        request = ObservationRequest(frozenset())
        before = live.observe(request)
        live.close()
        assert live.observe(request).cluster_id == before.cluster_id == cluster.cluster_id
