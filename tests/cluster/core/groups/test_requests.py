"""What a request or response means whose optional fields are left out: the defaults of Kafka's message schemas."""

from rackspan.cluster.core.groups import GroupSettings
from rackspan.cluster.core.groups.records import OffsetCommitValue
from rackspan.cluster.core.groups.requests import (
    CommittedOffset,
    FetchedOffset,
    JoinGroup,
    JoinGroupResponse,
    OffsetCommit,
    OffsetFetch,
    SyncGroup,
    SyncGroupResponse,
    TxnOffsetCommit,
)
from rackspan.cluster.core.messages import TransactionSupport
from rackspan.kafka_bytes.error_codes import ErrorCode


def test_a_client_that_names_no_member_is_outside_the_group() -> None:
    assert OffsetCommit("g", {}) == OffsetCommit("g", {}, -1, "", None)
    outside = TxnOffsetCommit("g", 7, 0, {})
    assert outside == TxnOffsetCommit("g", 7, 0, {}, -1, "", None, "", TransactionSupport.VERIFIES)
    assert JoinGroup("g", "c", (), 1, 2) == JoinGroup("g", "c", (), 1, 2, "", None, "", "", True, False)
    assert SyncGroup("g", 1, "m") == SyncGroup("g", 1, "m", None, None, None, {})
    assert OffsetFetch("g") == OffsetFetch("g", None, False)


def test_a_response_without_a_result_has_minus_one_and_nothing() -> None:
    error = ErrorCode.NOT_COORDINATOR
    assert JoinGroupResponse(error) == JoinGroupResponse(error, "", -1, None, None, "", (), False)
    assert SyncGroupResponse(error) == SyncGroupResponse(error, None, None, b"")
    assert FetchedOffset() == FetchedOffset(-1, -1, "", ErrorCode.NONE)
    assert CommittedOffset(5) == CommittedOffset(5, -1, "")
    assert OffsetCommitValue(5) == OffsetCommitValue(5, -1, "", 0)


def test_a_brokers_configs_for_groups_are_kafkas_but_for_the_delay_and_the_partitions() -> None:
    assert GroupSettings() == GroupSettings(0, 6_000, 30 * 60_000, 2**31 - 1, 4_096, 10, 5 * 60_000)
