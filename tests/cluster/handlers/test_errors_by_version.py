"""Errors and empty fields as the clients of each version read them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.context import Call
from rackspan.cluster.handlers.common import partition_count, transaction_error_code
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader
from rackspan.wire.messages.group_members import JoinGroupRequestData, JoinGroupRequestProtocol
from rackspan.wire.messages.group_offsets import (
    OffsetDeleteRequestData,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.cluster.raw import response_to


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
