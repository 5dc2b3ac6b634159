"""A failed request becomes a note with its reason, and many topics do not become many requests."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import ClusterAuthorizationFailedError, KafkaConnectionError, KafkaTimeoutError
from kafka.future import Future
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import DescribeConfigsRequest

from rackspan.errors import ClusterUnauthorized, ClusterUnreachable
from rackspan.sources.live.cluster_reader import _ClusterReader
from rackspan.sources.live.responses import ClusterResponses, LogDirs

TOPIC_AUTHORIZATION_FAILED = 29


class ScriptedConnection:
    """Responds with the script's entry for the request's name; an exception in it is raised."""

    address = "127.0.0.1:9092"

    def __init__(self, **script: Any) -> None:
        self.script = SCRIPT | script
        self.requests: list[Any] = []
        self._net = NetworkSelector()

    def start(self, coroutine: Callable[..., Any], *arguments: object) -> Future:
        return self._net.call_soon_with_future(coroutine, *arguments)

    async def send(self, request: Any, seconds: float | None = None) -> Any:
        self.requests.append(request)
        response = self.script[type(request).__name__.removesuffix("Request")]
        if callable(response) and not isinstance(response, type):
            response = response(request)
        if isinstance(response, Exception):
            raise response
        return response

    async def send_to_broker(self, broker_id: int, request: Any, seconds: float | None = None) -> Any:
        return await self.send(request, seconds)

    def responses(self) -> ClusterResponses:
        try:
            responses: ClusterResponses = self._net.run(_ClusterReader(self).read_all)  # type: ignore[arg-type]
            return responses
        finally:
            self._net.close()


def row(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**fields)


def topic(name: str, error_code: int = 0) -> SimpleNamespace:
    partition = row(partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1])
    return row(name=name, error_code=error_code, topic_id=None, is_internal=False, partitions=[partition])


def metadata(*topics: SimpleNamespace) -> SimpleNamespace:
    return row(cluster_id="c", brokers=[row(node_id=1, host="h", port=9092, rack="r1")], topics=list(topics))


def configs(request: DescribeConfigsRequest, error_code: int = 0) -> SimpleNamespace:
    value = row(name="min.insync.replicas", value="2")
    return row(
        results=[
            row(resource_name=one[1], error_code=error_code, error_message=None, configs=[value])
            for one in request.resources
        ]
    )


NOW = 1_700_000_000_000


def member(replica_id: int, fetched: int = NOW, caught_up: int = NOW) -> SimpleNamespace:
    return row(replica_id=replica_id, last_fetch_timestamp=fetched, last_caught_up_timestamp=caught_up)


def quorum_of(*voters: SimpleNamespace) -> SimpleNamespace:
    """Voter 1 leads."""
    return row(
        error_code=0,
        topics=[row(partitions=[row(error_code=0, leader_id=1, current_voters=list(voters), observers=[])])],
    )


QUORUM = row(
    error_code=0,
    nodes=[row(node_id=101, listeners=[row(host="h")])],
    topics=[
        row(
            partitions=[
                row(error_code=0, leader_id=101, current_voters=[member(101)], observers=[member(1, *[NOW - 100] * 2)])
            ]
        )
    ],
)

SCRIPT: dict[str, Any] = {
    "Metadata": metadata(topic("orders")),
    "DescribeCluster": row(error_code=0, brokers=[row(broker_id=1, host="h", port=9092, rack="r1", is_fenced=False)]),
    "DescribeConfigs": configs,
    "ListPartitionReassignments": row(error_code=0, topics=[]),
    "DescribeQuorum": QUORUM,
    "DescribeLogDirs": row(error_code=0, results=[]),
}

REFUSED = ClusterAuthorizationFailedError()


def notes(**script: Any) -> tuple[str, ...]:
    return ScriptedConnection(**script).responses().notes


def test_a_cluster_with_all_responses_leaves_no_note() -> None:
    responses = ScriptedConnection().responses()
    assert responses.notes == ()
    assert responses.lists_fenced
    assert responses.configs == {"orders": {"min.insync.replicas": "2"}}
    assert [(one.id, one.voter, one.hosts) for one in responses.quorum] == [(101, True, ("h",)), (1, False, ())]


@pytest.mark.parametrize(
    ("follower", "alive"),
    [
        (member(2, NOW - 500, NOW - 500), True),
        (member(2, NOW - 3_000, NOW - 9_000), True),
        (member(2, NOW - 3_001, NOW), False),
        (member(2, NOW, NOW - 9_001), False),
        (member(2, -1, -1), False),
        # A follower may fetch after the leader has read its clock for its own row.
        (member(2, NOW + 1, NOW + 1), True),
    ],
)
def test_a_voter_is_alive_by_the_leaders_clock(follower: SimpleNamespace, alive: bool) -> None:
    # Kafka reports the leader's own last fetch as now or, by its documentation, as -1.
    responses = ScriptedConnection(DescribeQuorum=quorum_of(member(1, -1), follower)).responses()
    assert [one.alive for one in responses.quorum] == [True, alive]


def test_of_a_kafka_without_times_or_a_quorum_without_leader_nobody_is_known_to_be_alive() -> None:
    without_times = quorum_of(member(1, -1, -1), member(2, -1, -1))
    assert [one.alive for one in ScriptedConnection(DescribeQuorum=without_times).responses().quorum] == [None, None]
    without_leader = quorum_of(member(2), member(3, -1, -1))
    assert [one.alive for one in ScriptedConnection(DescribeQuorum=without_leader).responses().quorum] == [None, None]


def test_ten_thousand_topics_take_twenty_requests_for_their_configs() -> None:
    connection = ScriptedConnection(Metadata=metadata(*(topic(f"t{number}") for number in range(10_000))))
    responses = connection.responses()
    assert len(responses.configs) == 10_000
    assert sum(isinstance(request, DescribeConfigsRequest) for request in connection.requests) == 20
    assert len(connection.requests) == 25


@pytest.mark.parametrize(
    ("request_name", "lost"),
    [
        ("DescribeCluster", "which brokers are fenced"),
        ("DescribeQuorum", "the controller quorum"),
        ("ListPartitionReassignments", "reassignments under way"),
    ],
)
def test_a_missing_right_is_named_with_what_is_lost(request_name: str, lost: str) -> None:
    assert notes(**{request_name: REFUSED}) == (f"{lost}: unknown, this user needs Describe on Cluster",)
    assert notes(**{request_name: KafkaTimeoutError()}) == (f"{lost}: unknown, no response in time",)


def test_configs_that_are_refused_name_their_topics() -> None:
    many = metadata(*(topic(name) for name in "abcde"))
    [note] = notes(Metadata=many, DescribeConfigs=lambda request: configs(request, TOPIC_AUTHORIZATION_FAILED))
    assert note == (
        "min.insync.replicas of a, b, c and 2 more: unknown, this user needs DescribeConfigs on Topic a, b, c and 2 more"
    )


def test_configs_that_did_not_come_say_why() -> None:
    broken = KafkaConnectionError("socket disconnected")
    assert notes(DescribeConfigs=broken) == (
        "min.insync.replicas of orders: unknown, it closed the connection at the first request",
    )


def test_brokers_without_sizes_are_grouped_by_reason() -> None:
    def log_dirs(response: Any) -> LogDirs:
        return ScriptedConnection(DescribeLogDirs=response).responses().log_dirs

    assert log_dirs(REFUSED) == LogDirs({}, {}, frozenset({1}))
    assert log_dirs(row(error_code=31, results=[])) == LogDirs({}, {}, frozenset({1}))
    assert log_dirs(KafkaConnectionError("111 ECONNREFUSED")) == LogDirs({}, {1: "connection refused"}, frozenset())


def test_a_log_that_is_still_moving_to_another_disk_does_not_count() -> None:
    logs = [
        row(partition_index=0, partition_size=10, is_future_key=False),
        row(partition_index=0, partition_size=99, is_future_key=True),
    ]
    online = row(error_code=0, topics=[row(name="orders", partitions=logs)])
    offline = row(error_code=56, topics=[])
    responses = ScriptedConnection(DescribeLogDirs=row(error_code=0, results=[offline, online])).responses()
    assert responses.log_dirs.sizes == {1: {("orders", 0): 10}}


def test_a_topic_that_cannot_be_described_is_named_and_the_rest_is_kept() -> None:
    responses = ScriptedConnection(Metadata=metadata(topic("orders"), topic("lost", error_code=3))).responses()
    assert [one.name for one in responses.topics] == ["orders"]
    assert responses.notes == ("topic lost could not be described: UnknownTopicOrPartitionError",)


def test_a_user_who_sees_no_topic_gets_the_missing_rights() -> None:
    blind = ScriptedConnection(Metadata=metadata(), DescribeQuorum=REFUSED)
    with pytest.raises(ClusterUnauthorized, match=r"needs Describe on Topic .* and Describe on Cluster"):
        blind.responses()


def test_an_empty_cluster_is_no_mistake() -> None:
    assert ScriptedConnection(Metadata=metadata()).responses().topics == ()


def test_metadata_that_does_not_come_is_an_error() -> None:
    with pytest.raises(ClusterUnreachable, match="the cluster's metadata was not received: no response in time"):
        notes(Metadata=KafkaTimeoutError())
    with pytest.raises(ClusterUnauthorized, match="needs Describe on its topics"):
        notes(Metadata=REFUSED)
