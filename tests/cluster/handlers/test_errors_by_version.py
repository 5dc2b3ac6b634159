"""Errors and empty fields as the clients of each version read them."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.context import Call, RecordTraffic
from rackspan.cluster.core.groups.requests import LeaveGroupResponse, LeavingMember, SyncGroupResponse, TxnOffsetCommit
from rackspan.cluster.handlers import find_coordinator, leave_group, sync_group, txn_offset_commit
from rackspan.cluster.handlers.common import partition_count, transaction_error_code
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader
from rackspan.wire.messages.configs import DescribeConfigsRequestData, DescribeConfigsResource
from rackspan.wire.messages.group_members import (
    JoinGroupRequestData,
    JoinGroupRequestProtocol,
    LeaveGroupRequestData,
    SyncGroupRequestData,
)
from rackspan.wire.messages.group_offsets import (
    OffsetDeleteRequestData,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from rackspan.wire.messages.groups import FindCoordinatorRequestData
from rackspan.wire.messages.transactions import (
    TxnOffsetCommitRequestData,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.cluster.raw import response_to

LEAVING = LeavingMember("m")


@pytest.mark.parametrize(("version", "fenced"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
def test_old_producers_get_their_own_error_of_being_fenced(version: int, fenced: ErrorCode) -> None:
    broker: Any = SimpleNamespace(code=int)
    call = cast("Call[object]", Call(RequestHeader(ApiKey.END_TXN, version, 1, None, 0), None, broker, ""))
    assert transaction_error_code(call, ErrorCode.PRODUCER_FENCED) == fenced
    assert transaction_error_code(call, ErrorCode.CONCURRENT_TRANSACTIONS) == ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(("version", "protocol"), [(6, ""), (7, None), (8, None)])
def test_a_join_that_fails_has_no_protocol(cluster: EmbeddedCluster, version: int, protocol: str | None) -> None:
    request = JoinGroupRequestData(
        group_id="nobodys",
        session_timeout=10_000,
        rebalance_timeout=10_000,
        member_id="unknown",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    for broker in cluster.brokers:
        response = response_to(cluster.address(broker), ApiKey.JOIN_GROUP, version, request)
        assert response.error_code != ErrorCode.NONE
        assert response.protocol_name == protocol


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (LeaveGroupResponse(ErrorCode.NONE, ((LEAVING, ErrorCode.UNKNOWN_MEMBER_ID),)), ErrorCode.UNKNOWN_MEMBER_ID),
        (LeaveGroupResponse(ErrorCode.NONE, ((LEAVING, ErrorCode.NONE),)), ErrorCode.NONE),
        (LeaveGroupResponse(ErrorCode.NOT_COORDINATOR), ErrorCode.NOT_COORDINATOR),
    ],
)
def test_before_version_3_the_error_of_the_only_member_that_leaves_is_that_of_the_response(
    monkeypatch: pytest.MonkeyPatch, response: LeaveGroupResponse, error: ErrorCode
) -> None:
    async def left(*_: object) -> LeaveGroupResponse:
        return response

    monkeypatch.setattr(leave_group, "group_response", left)
    broker: Any = SimpleNamespace(code=int)
    request = LeaveGroupRequestData(group_id="g", member_id="m")
    call = Call(RequestHeader(ApiKey.LEAVE_GROUP, 2, 1, None, 0), request, broker, "")
    assert asyncio.run(leave_group.handle(call)).error_code == error


def test_internal_topics_have_the_partitions_of_their_own_config_or_ten() -> None:
    for topic, key in (
        ("__consumer_offsets", "offsets.topic.num.partitions"),
        ("__transaction_state", "transaction.state.log.num.partitions"),
    ):
        assert (partition_count(topic, {key: "7"}), partition_count(topic, {})) == (7, 10)


def test_offsets_of_a_group_that_there_is_not_cannot_be_deleted(cluster: EmbeddedCluster) -> None:
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name="orders", partitions=partitions)]
    request = OffsetDeleteRequestData(group_id="nobodys", topics=topics)
    for broker in cluster.brokers:
        response = response_to(cluster.address(broker), ApiKey.OFFSET_DELETE, 0, request)
        assert response.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NOT_COORDINATOR)
        assert list(response.topics) == []


def test_offsets_are_committed_with_a_transaction_by_the_member_that_the_request_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a member that another one with its instance id has replaced is not fenced."""
    handed_on: list[TxnOffsetCommit] = []

    async def committed(_: object, commit: TxnOffsetCommit) -> SimpleNamespace:
        handed_on.append(commit)
        return SimpleNamespace(errors=dict.fromkeys(commit.offsets, ErrorCode.NONE))

    monkeypatch.setattr(txn_offset_commit, "group_response", committed)
    there: list[object] = [object()]
    broker: Any = SimpleNamespace(code=int, image=SimpleNamespace(partition=lambda _: there[0]))
    request = TxnOffsetCommitRequestData(
        transactional_id="t",
        group_id="g",
        producer_id=1,
        producer_epoch=2,
        generation_id=3,
        member_id="m",
        group_instance_id="i",
        topics=[
            TxnOffsetCommitRequestTopic(
                name="orders", partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
            )
        ],
    )
    call = Call(RequestHeader(ApiKey.TXN_OFFSET_COMMIT, 3, 1, None, 0), request, broker, "")
    response = asyncio.run(txn_offset_commit.handle(call))
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
    [commit] = handed_on
    assert (commit.group_id, commit.producer_id, commit.producer_epoch, commit.transactional_id) == ("g", 1, 2, "t")
    assert (commit.generation, commit.member_id, commit.group_instance_id) == (3, "m", "i")
    there[0] = None
    response = asyncio.run(txn_offset_commit.handle(call))
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert handed_on == [commit], "the group joins no transaction for offsets of a topic that there is not"


def test_the_response_to_a_sync_has_the_protocol_of_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    async def synced(*_: object) -> SyncGroupResponse:
        return SyncGroupResponse(ErrorCode.NONE, "consumer", "range", b"partitions")

    monkeypatch.setattr(sync_group, "group_response", synced)
    broker: Any = SimpleNamespace(code=int)
    request = SyncGroupRequestData(group_id="g", protocol_type="consumer", protocol_name="range")
    call = Call(RequestHeader(ApiKey.SYNC_GROUP, 5, 1, None, 0), request, broker, "")
    response = asyncio.run(sync_group.handle(call))
    assert (response.protocol_type, response.protocol_name) == ("consumer", "range")
    assert (response.error_code, response.assignment) == (0, b"partitions")


def test_a_coordinator_without_a_leader_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    async def leaderless(*_: object) -> None:
        return None

    monkeypatch.setattr(find_coordinator, "internal_partition", leaderless)
    settings = SimpleNamespace(extra_configs={})
    broker: Any = SimpleNamespace(code=int, settings=settings, traffic=RecordTraffic())
    request = FindCoordinatorRequestData(key_type=0, coordinator_keys=["g"])
    call = Call(RequestHeader(ApiKey.FIND_COORDINATOR, 4, 1, None, 0), request, broker, "")
    [found] = asyncio.run(find_coordinator.handle(call)).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


def test_loggers_of_a_broker_have_no_configs_here(cluster: EmbeddedCluster) -> None:
    resource = DescribeConfigsResource(resource_type=ConfigResourceType.BROKER_LOGGER, resource_name="1")
    request = DescribeConfigsRequestData(resources=[resource])
    [found] = response_to(cluster.address(1), ApiKey.DESCRIBE_CONFIGS, 4, request).results
    assert (found.error_code, list(found.configs)) == (ErrorCode.NONE, [])
