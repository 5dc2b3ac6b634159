"""Which error a group request gets, state by state, and the response that carries it."""

from typing import Any, Final

import pytest

from rackspan.cluster.core.groups.errors import (
    commit_error,
    coordinator_error,
    error_response,
    generation_error,
    member_error,
    sync_error,
)
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import new_member
from rackspan.cluster.core.groups.requests import (
    CommittedOffset,
    DeleteGroup,
    DeleteGroupResponse,
    GroupRequest,
    GroupResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetDeleteResponse,
    Protocol,
    SyncGroup,
    SyncGroupResponse,
    TxnOffsetCommit,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition

E: Final = ErrorCode
DEAD, EMPTY, STABLE = GroupState.DEAD, GroupState.EMPTY, GroupState.STABLE
PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
P0: Final = TopicPartition("orders", 0)


def group_in(state: GroupState) -> Group:
    """Generation 4: the member m, and s, which is the static member i. An empty group has none."""
    group = Group("g", 0, state, generation=4, protocol_type="consumer", protocol="range")
    for member_id, instance_id in (("m", None), ("s", "i")) if state is not EMPTY else ():
        request = JoinGroup("g", "consumer", (Protocol("range", b""),), 10, 60, group_instance_id=instance_id)
        group.add(new_member(member_id, request), "consumer")
    return group


@pytest.mark.parametrize(
    ("appended", "client"),
    [
        (E.NONE, E.NONE),
        (E.UNKNOWN_TOPIC_OR_PARTITION, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_RACKS, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_RACKS_AFTER_APPEND, E.COORDINATOR_NOT_AVAILABLE),
        (E.REQUEST_TIMED_OUT, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR),
        (E.FENCED_LEADER_EPOCH, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.INVALID_COMMIT_OFFSET_SIZE),
        (E.RECORD_LIST_TOO_LARGE, E.INVALID_COMMIT_OFFSET_SIZE),
        (E.INVALID_FETCH_SIZE, E.INVALID_COMMIT_OFFSET_SIZE),
        (E.INVALID_TXN_STATE, E.INVALID_TXN_STATE),
    ],
)
def test_the_error_of_an_append_becomes_a_coordinators(appended: ErrorCode, client: ErrorCode) -> None:
    """CoordinatorOperationExceptionHelper.handleOperationException, and our own codes as those they stand for."""
    assert coordinator_error(appended) is client


@pytest.mark.parametrize(
    ("member_id", "instance_id", "error"),
    [
        ("m", None, E.NONE),
        ("stranger", None, E.UNKNOWN_MEMBER_ID),
        ("s", "i", E.NONE),
        ("s", None, E.NONE),
        ("m", "i", E.FENCED_INSTANCE_ID),
        ("m", "another", E.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_static_member_is_known_by_both_ids(member_id: str, instance_id: str | None, error: ErrorCode) -> None:
    """ClassicGroup.validateMember."""
    group = group_in(STABLE)
    assert member_error(group, member_id, instance_id) is error
    assert generation_error(group, member_id, instance_id, 4) is error
    assert generation_error(group, member_id, instance_id, 3) is (E.ILLEGAL_GENERATION if error is E.NONE else error)
    assert generation_error(group_in(DEAD), member_id, instance_id, 4) is E.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("protocol_type", "protocol", "error"),
    [
        (None, None, E.NONE),
        ("consumer", "range", E.NONE),
        ("connect", None, E.INCONSISTENT_GROUP_PROTOCOL),
        (None, "sticky", E.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_sync_names_the_groups_protocol_or_none(
    protocol_type: str | None, protocol: str | None, error: ErrorCode
) -> None:
    group = group_in(COMPLETING)
    assert sync_error(group, SyncGroup("g", 4, "m", None, protocol_type, protocol)) is error
    assert sync_error(group, SyncGroup("g", 5, "m", None, protocol_type, protocol)) is E.ILLEGAL_GENERATION


OUTSIDE: Final[dict[str, Any]] = {}
MEMBER: Final[dict[str, Any]] = {"generation": 4, "member_id": "m"}


@pytest.mark.parametrize(
    ("state", "who", "plain", "transactional"),
    [
        (DEAD, OUTSIDE, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_NOT_AVAILABLE),
        (DEAD, MEMBER, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_NOT_AVAILABLE),
        (EMPTY, OUTSIDE, E.NONE, E.NONE),
        (EMPTY, {"member_id": "gone"}, E.NONE, E.NONE),
        (EMPTY, {"generation": 0, "member_id": "m"}, E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID),
        (STABLE, OUTSIDE, E.UNKNOWN_MEMBER_ID, E.NONE),
        (STABLE, MEMBER, E.NONE, E.NONE),
        (STABLE, MEMBER | {"generation": 0}, E.ILLEGAL_GENERATION, E.ILLEGAL_GENERATION),
        (STABLE, MEMBER | {"generation": 3}, E.ILLEGAL_GENERATION, E.ILLEGAL_GENERATION),
        (STABLE, {"generation": 0}, E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID),
        (STABLE, {"member_id": "stranger"}, E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID),
        (STABLE, {"member_id": "m"}, E.ILLEGAL_GENERATION, E.ILLEGAL_GENERATION),
        (STABLE, {"group_instance_id": "i"}, E.FENCED_INSTANCE_ID, E.FENCED_INSTANCE_ID),
        (STABLE, MEMBER | {"group_instance_id": "i"}, E.FENCED_INSTANCE_ID, E.FENCED_INSTANCE_ID),
        (PREPARING, MEMBER, E.NONE, E.NONE),
        (COMPLETING, MEMBER, E.REBALANCE_IN_PROGRESS, E.NONE),
        (COMPLETING, MEMBER | {"generation": 3}, E.ILLEGAL_GENERATION, E.ILLEGAL_GENERATION),
    ],
)
def test_who_may_commit_in_which_state(
    state: GroupState, who: dict[str, Any], plain: ErrorCode, transactional: ErrorCode
) -> None:
    """ClassicGroup.validateOffsetCommit: a producer that names no member is outside the group, as before KIP-447."""
    group = group_in(state)
    assert commit_error(group, OffsetCommit("g", {}, **who)) is plain
    assert commit_error(group, TxnOffsetCommit("g", 7, 0, {}, **who)) is transactional


OFFSETS: Final = {P0: CommittedOffset(1)}
LEAVING: Final = LeavingMember("m")


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (JoinGroup("g", "consumer", (), 1, 2, "m"), JoinGroupResponse(E.NOT_COORDINATOR, "m", -1, None, None, "", ())),
        (SyncGroup("g", 1, "m"), SyncGroupResponse(E.NOT_COORDINATOR, None, None, b"")),
        (Heartbeat("g", 1, "m"), HeartbeatResponse(E.NOT_COORDINATOR)),
        (LeaveGroup("g", (LEAVING,)), LeaveGroupResponse(E.NOT_COORDINATOR, ())),
        (OffsetCommit("g", OFFSETS), OffsetCommitResponse({P0: E.NOT_COORDINATOR})),
        (TxnOffsetCommit("g", 7, 0, OFFSETS), OffsetCommitResponse({P0: E.NOT_COORDINATOR})),
        (OffsetDelete("g", (P0,)), OffsetDeleteResponse(E.NOT_COORDINATOR, {})),
        (DeleteGroup("g"), DeleteGroupResponse(E.NOT_COORDINATOR)),
    ],
)
def test_each_response_carries_an_error_and_no_result(request_: GroupRequest, response: GroupResponse) -> None:
    assert error_response(request_, E.NOT_COORDINATOR) == response


def test_members_that_leave_an_unknown_group_get_an_error_each() -> None:
    left = error_response(LeaveGroup("g", (LEAVING, LeavingMember("", "i"))), E.UNKNOWN_MEMBER_ID)
    both = ((LEAVING, E.UNKNOWN_MEMBER_ID), (LeavingMember("", "i"), E.UNKNOWN_MEMBER_ID))
    assert left == LeaveGroupResponse(E.NONE, both)
