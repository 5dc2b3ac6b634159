"""Requests to a controller that does not respond in time: each item of the request gets REQUEST_TIMED_OUT, after its own timeout."""

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from rackspan.cluster.context import BrokerContext, Call
from rackspan.cluster.core.metadata import EMPTY_IMAGE
from rackspan.cluster.handlers import HANDLERS
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId
from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.codec import RequestHeader
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.brokers import UnregisterBrokerRequestData
from rackspan.wire.messages.configs import (
    AlterConfigsRequestData,
    AlterConfigsResource,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequestData,
)
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumRequestData,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from rackspan.wire.messages.quotas import (
    AlterClientQuotasRequestData,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
)
from rackspan.wire.messages.reassignments import (
    AlterPartitionReassignmentsRequestData,
    AlterPartitionReassignmentsRequestReassignablePartition,
    ElectLeadersRequestData,
    ElectLeadersRequestTopicPartitions,
    ReassignableTopic,
)
from rackspan.wire.messages.scram_credentials import AlterUserScramCredentialsRequestData, ScramCredentialDeletion
from rackspan.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequestData,
    CreatePartitionsTopic,
    CreateTopicsRequestData,
    DeleteTopicsRequestData,
    DeleteTopicState,
)
from rackspan.wire.messages.transactions import EndTxnRequestData, InitProducerIdRequestData

OWN_MS, DEFAULT_MS = 777, 30_000
TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT


class SilentController:
    """A broker whose controller never responds: every request gets its default. Notes how long each wait may take."""

    def __init__(self) -> None:
        self.waits_ms: list[int] = []
        self.catch_ups_ms: list[int] = []
        self.requests = SimpleNamespace(controller_response=self._controller_response)
        self.metadata_updates = SimpleNamespace(wait_until_caught_up=self._caught_up)
        self.producer_ids = SimpleNamespace(next=self._no_producer_id)
        self.image = EMPTY_IMAGE
        self.id = BrokerId(1)

    async def _controller_response(self, _build: Any, timeout_ms: int, default: Any) -> Any:
        self.waits_ms.append(timeout_ms)
        return default

    async def _caught_up(self, timeout_ms: int) -> bool:
        self.catch_ups_ms.append(timeout_ms)
        return False

    async def _no_producer_id(self) -> None:
        return None

    def code(self, error: ErrorCode) -> int:
        return int(error)


def handled(broker: SilentController, api_key: ApiKey, request: WireStruct) -> Any:
    header = RequestHeader(api_key, VERSIONS[api_key][-1], 1, "client", 0)

    async def run() -> Any:
        response = HANDLERS[api_key](Call(header, request, cast("BrokerContext", broker), "127.0.0.1"))
        return await response if inspect.isawaitable(response) else response

    return asyncio.run(run())


def errors(response: Any) -> list[tuple[Any, ...]]:
    """What each item is about, and its error."""
    if hasattr(response, "replica_election_results"):
        return [(each.topic, row.partition_id, row.error_code) for each in response.replica_election_results for row in each.partition_result]  # fmt: skip
    if hasattr(response, "allow_replication_factor_change"):
        return [(each.name, row.partition_index, row.error_code) for each in response.responses for row in each.partitions]  # fmt: skip
    items = next((getattr(response, name) for name in ("topics", "responses", "results", "entries") if getattr(response, name, None)), None)  # fmt: skip
    if items is None:
        return [(response.error_code,)]
    keys = ("name", "resource_name", "user", "entity")
    return [(next((getattr(item, key) for key in keys if hasattr(item, key)), None), item.error_code) for item in items]


TOPICS = [ElectLeadersRequestTopicPartitions(topic="orders", partitions=[0, 1])]
MOVES = [AlterPartitionReassignmentsRequestReassignablePartition(partition_index=at, replicas=[2]) for at in (0, 1)]


@pytest.mark.parametrize(
    ("api_key", "request_data", "timeout_ms", "found"),
    [
        (
            ApiKey.CREATE_TOPICS,
            CreateTopicsRequestData(topics=[CreatableTopic(name="orders")], timeout=OWN_MS),
            OWN_MS,
            [("orders", TIMED_OUT)],
        ),
        (
            ApiKey.CREATE_PARTITIONS,
            CreatePartitionsRequestData(topics=[CreatePartitionsTopic(name="orders", count=2)], timeout=OWN_MS),
            OWN_MS,
            [("orders", TIMED_OUT)],
        ),
        (
            ApiKey.DELETE_TOPICS,
            DeleteTopicsRequestData(topics=[DeleteTopicState(name="orders")], timeout=OWN_MS),
            OWN_MS,
            [("orders", TIMED_OUT)],
        ),
        (
            ApiKey.ELECT_LEADERS,
            ElectLeadersRequestData(topic_partitions=TOPICS, timeout=OWN_MS),
            OWN_MS,
            [("orders", 0, TIMED_OUT), ("orders", 1, TIMED_OUT)],
        ),
        (
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            AlterPartitionReassignmentsRequestData(
                topics=[ReassignableTopic(name="orders", partitions=MOVES)], timeout=OWN_MS
            ),
            OWN_MS,
            [("orders", 0, TIMED_OUT), ("orders", 1, TIMED_OUT)],
        ),
        (
            ApiKey.ALTER_CONFIGS,
            AlterConfigsRequestData(resources=[AlterConfigsResource(resource_name="orders")]),
            DEFAULT_MS,
            [("orders", TIMED_OUT)],
        ),
        (
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            IncrementalAlterConfigsRequestData(
                resources=[IncrementalAlterConfigsRequestAlterConfigsResource(resource_name="orders")]
            ),
            DEFAULT_MS,
            [("orders", TIMED_OUT)],
        ),
        (
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            AlterUserScramCredentialsRequestData(
                deletions=[ScramCredentialDeletion(name="alice", mechanism=mechanism) for mechanism in (1, 2)]
            ),
            DEFAULT_MS,
            [("alice", TIMED_OUT)],
        ),
        (
            ApiKey.ALTER_CLIENT_QUOTAS,
            AlterClientQuotasRequestData(
                entries=[
                    AlterClientQuotasRequestEntryData(
                        entity=[AlterClientQuotasRequestEntityData(entity_type="user", entity_name="alice")]
                    )
                ]
            ),
            DEFAULT_MS,
            None,
        ),
        (ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequestData(broker_id=2), DEFAULT_MS, [(TIMED_OUT,)]),
        (
            ApiKey.DESCRIBE_QUORUM,
            DescribeQuorumRequestData(
                topics=[
                    DescribeQuorumRequestTopicData(
                        topic_name="__cluster_metadata",
                        partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
                    )
                ]
            ),
            DEFAULT_MS,
            [(TIMED_OUT,)],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, ApiKey) else "",
)
def test_each_item_has_timed_out_after_the_time_of_the_request(
    api_key: ApiKey, request_data: WireStruct, timeout_ms: int, found: list[tuple[Any, ...]] | None
) -> None:
    broker = SilentController()
    response = handled(broker, api_key, request_data)
    assert broker.waits_ms == [timeout_ms]
    # What was validated or read only changes nothing to wait for.
    assert set(broker.catch_ups_ms) <= {timeout_ms}
    if found is not None:
        assert errors(response) == found
        return
    [entry] = response.entries
    assert (entry.error_code, [(each.entity_type, each.entity_name) for each in entry.entity]) == (
        TIMED_OUT,
        [("user", "alice")],
    )


def test_an_election_of_all_partitions_without_a_response_names_none() -> None:
    response = handled(SilentController(), ApiKey.ELECT_LEADERS, ElectLeadersRequestData(topic_partitions=None))
    assert (response.error_code, response.replica_election_results) == (0, [])


@pytest.mark.parametrize(
    ("api_key", "version", "validating", "changing"),
    [
        (ApiKey.CREATE_TOPICS, 7, CreateTopicsRequestData(validate_only=True), CreateTopicsRequestData()),
        (ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequestData(validate_only=True), CreatePartitionsRequestData()),
        (ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequestData(validate_only=True), AlterConfigsRequestData()),
        (ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequestData(validate_only=True), AlterClientQuotasRequestData()),
    ],
)  # fmt: skip
def test_what_is_only_validated_waits_for_no_metadata(
    api_key: ApiKey, version: int, validating: WireStruct, changing: WireStruct
) -> None:
    assert VERSIONS[api_key][-1] == version
    for request, waits in ((validating, 0), (changing, 1)):
        broker = SilentController()
        handled(broker, api_key, request)
        assert len(broker.catch_ups_ms) == waits


def test_without_a_producer_id_a_producer_comes_back_later() -> None:
    response = handled(SilentController(), ApiKey.INIT_PRODUCER_ID, InitProducerIdRequestData())
    assert (response.error_code, response.producer_id, response.producer_epoch) == (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        -1,
        -1,
    )
    response = handled(SilentController(), ApiKey.END_TXN, EndTxnRequestData(transactional_id="t"))
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_topic_that_is_deleted_by_its_id_has_its_name() -> None:
    broker = SilentController()
    broker.image = cast("Any", SimpleNamespace(topics={}, topic_names={UUID(int=5): "orders"}))
    topics = [DeleteTopicState(topic_id=UUID(int=5)), DeleteTopicState(topic_id=UUID(int=6))]
    response = handled(broker, ApiKey.DELETE_TOPICS, DeleteTopicsRequestData(topics=topics))
    assert [(each.name, each.topic_id) for each in response.responses] == [("orders", UUID(int=5)), (None, UUID(int=6))]
