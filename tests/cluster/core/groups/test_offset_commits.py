"""What Kafka documents of committed offsets, case by case."""

import pytest

from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.coordination import CoordinatorRecord, decode_batch
from rackspan.cluster.core.groups.records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_offset,
)
from rackspan.cluster.core.groups.requests import (
    CommittedOffset,
    DeleteGroup,
    DeleteGroupResponse,
    FetchedOffset,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetDeleteResponse,
    OffsetFetch,
    Protocol,
    TxnOffsetCommit,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.primitives import array, int16, string
from rackspan.model.ids import TopicPartition
from tests.cluster.core.groups.world import World

P0 = TopicPartition("orders", 0)
P1 = TopicPartition("orders", 1)
NOTHING = FetchedOffset()


def commit(world: World, offset: int, member: JoinGroupResponse | None = None, metadata: str = "") -> ErrorCode:
    request = OffsetCommit("g", {P0: CommittedOffset(offset, 3, metadata)}, *_who(member))
    return world.call(request, OffsetCommitResponse).errors[P0]


def _who(member: JoinGroupResponse | None) -> tuple[int, str]:
    return (member.generation, member.member_id) if member else (-1, "")


def commit_in_transaction(world: World, offset: int, producer: int = 7) -> None:
    request = TxnOffsetCommit("g", producer, 0, {P0: CommittedOffset(offset)})
    assert world.call(request, OffsetCommitResponse).errors[P0] is ErrorCode.NONE


def fetched(world: World, require_stable: bool = False) -> FetchedOffset:
    return world.coordinator.fetch_offsets(OffsetFetch("g", (P0,), require_stable)).offsets[P0]


def test_what_was_committed_is_fetched_by_every_later_coordinator() -> None:
    world = World()
    assert commit(world, 5, metadata="note") is ErrorCode.NONE
    world.fail_over()
    assert fetched(world) == FetchedOffset(5, 3, "note")
    assert world.coordinator.fetch_offsets(OffsetFetch("g")).offsets == {P0: FetchedOffset(5, 3, "note")}


def test_nothing_committed_is_no_error() -> None:
    assert fetched(World()) == NOTHING


def test_an_offset_is_neither_acknowledged_nor_fetched_before_it_is_committed() -> None:
    world = World()
    correlation_id = world.send(OffsetCommit("g", {P0: CommittedOffset(5)}))
    assert world.waits(correlation_id)
    assert fetched(world) == NOTHING
    assert fetched(world, require_stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    world.settle()
    assert fetched(world, require_stable=True).offset == 5


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ErrorCode.NOT_ENOUGH_RACKS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_the_logs_errors_become_the_coordinators(error: ErrorCode, expected: ErrorCode) -> None:
    world = World()
    correlation_id = world.send(OffsetCommit("g", {P0: CommittedOffset(5)}))
    world.acknowledge(error, kept=False)
    assert world.response(correlation_id, OffsetCommitResponse).errors[P0] is expected


def test_members_commit_in_their_generation_and_strangers_while_it_is_empty() -> None:
    world = World()
    (member,) = world.stable(1)
    assert commit(world, 1, member) is ErrorCode.NONE
    assert commit(world, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    stale = JoinGroupResponse(ErrorCode.NONE, member.member_id, 0)
    assert commit(world, 3, stale) is ErrorCode.ILLEGAL_GENERATION
    stranger = JoinGroupResponse(ErrorCode.NONE, "stranger", 1)
    assert commit(world, 4, stranger) is ErrorCode.UNKNOWN_MEMBER_ID
    assert fetched(world).offset == 1


def test_a_commit_is_welcome_while_members_gather_and_not_before_they_are_synced() -> None:
    world = World()
    (member,) = world.stable(1)
    world.new_member()
    assert commit(world, 1, member) is ErrorCode.NONE
    again = world.joined(world.join(member.member_id))
    assert commit(world, 2, again) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_generation_of_an_unknown_group_is_illegal() -> None:
    world = World()
    member = JoinGroupResponse(ErrorCode.NONE, "m", 1)
    assert commit(world, 1, member) is ErrorCode.ILLEGAL_GENERATION


def test_a_note_too_long_spoils_its_own_partition_alone() -> None:
    world = World()
    request = OffsetCommit("g", {P0: CommittedOffset(1, metadata="x" * 4097), P1: CommittedOffset(2)})
    response = world.call(request, OffsetCommitResponse)
    assert response.errors == {P0: ErrorCode.OFFSET_METADATA_TOO_LARGE, P1: ErrorCode.NONE}
    alone = OffsetCommit("g", {P1: CommittedOffset(3, metadata="x" * 4097)})
    assert world.call(alone, OffsetCommitResponse).errors == {P1: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert fetched(world) == NOTHING


# Transactions.


@pytest.mark.parametrize("reload", [False, True])
@pytest.mark.parametrize(("marker", "found"), [(Marker.COMMIT, 5), (Marker.ABORT, -1)])
def test_an_offset_in_a_transaction_counts_once_it_commits(marker: Marker, found: int, reload: bool) -> None:
    world = World()
    commit_in_transaction(world, 5)
    assert fetched(world) == NOTHING
    assert fetched(world, require_stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    if reload:
        world.fail_over()
        assert fetched(world, require_stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    world.end_transaction(7, marker)
    assert fetched(world, require_stable=True).offset == found
    world.fail_over()
    assert fetched(world, require_stable=True).offset == found


def test_a_plain_commit_made_after_a_transactions_own_wins() -> None:
    world = World()
    commit_in_transaction(world, 5)
    commit(world, 6)
    world.end_transaction(7, Marker.COMMIT)
    assert fetched(world).offset == 6
    world.fail_over()
    assert fetched(world).offset == 6


def test_another_producers_marker_ends_nothing() -> None:
    world = World()
    commit_in_transaction(world, 5)
    world.end_transaction(8, Marker.COMMIT)
    assert fetched(world) == NOTHING


def test_a_marker_in_a_partition_that_another_broker_coordinates_ends_nothing() -> None:
    world = World()
    commit_in_transaction(world, 5)
    world.coordinator.on_marker(1, 7, Marker.COMMIT)
    assert fetched(world) == NOTHING


# Forgetting.


def test_a_deleted_group_is_gone_for_every_later_coordinator() -> None:
    world = World()
    commit(world, 5)
    assert world.call(DeleteGroup("g"), DeleteGroupResponse).error is ErrorCode.NONE
    assert world.coordinator.list_groups() == []
    world.fail_over()
    assert fetched(world) == NOTHING
    assert world.call(DeleteGroup("g"), DeleteGroupResponse).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_with_members_is_not_deleted() -> None:
    world = World()
    world.stable(1)
    assert world.call(DeleteGroup("g"), DeleteGroupResponse).error is ErrorCode.NON_EMPTY_GROUP


def test_a_group_that_is_being_deleted_takes_no_members_and_is_restored_if_that_fails() -> None:
    world = World()
    commit(world, 5)
    deleting = world.send(DeleteGroup("g"))
    assert world.joined(world.join()).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.acknowledge(ErrorCode.NOT_ENOUGH_REPLICAS, kept=False)
    assert world.response(deleting, DeleteGroupResponse).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert fetched(world).offset == 5


def test_offsets_of_topics_that_members_read_stay() -> None:
    world = World()
    commit(world, 5)
    subscription = int16(1) + array([string("orders")]) + b"\xff\xff\xff\xff"
    world.stable(1)
    member = world.coordinator.describe("g").members[0].member_id
    world.join(member, protocols=(Protocol("range", subscription),))
    request = OffsetDelete("g", (P0, TopicPartition("other", 0)))
    errors = world.call(request, OffsetDeleteResponse).errors
    assert errors == {P0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, TopicPartition("other", 0): ErrorCode.NONE}


def test_offsets_of_an_empty_group_are_deleted_for_good() -> None:
    world = World()
    commit(world, 5)
    assert world.call(OffsetDelete("g", (P0,)), OffsetDeleteResponse).errors == {P0: ErrorCode.NONE}
    world.fail_over()
    assert fetched(world) == NOTHING
    assert world.call(OffsetDelete("unknown", (P0,)), OffsetDeleteResponse).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_committed_offsets_are_deleted_with_their_topic() -> None:
    world = World()
    commit(world, 5)
    world.took(world.coordinator.on_topics_deleted(world.now, ["orders"]))
    world.settle()
    assert fetched(world) == NOTHING
    world.fail_over()
    assert fetched(world) == NOTHING


def test_only_offsets_that_are_committed_are_written_as_deleted() -> None:
    """Nothing to delete is no error, and nothing is written."""
    world = World()
    commit(world, 5)
    written = len(world.log)
    assert world.call(OffsetDelete("g", (P1,)), OffsetDeleteResponse) == OffsetDeleteResponse(
        ErrorCode.NONE, {P1: ErrorCode.NONE}
    )
    assert len(world.log) == written
    world.call(OffsetDelete("g", (P0, P1)), OffsetDeleteResponse)
    assert [batch.record_count for batch in world.log[written:]] == [1]


def test_offsets_whose_deletion_could_not_be_written_stay() -> None:
    world = World()
    commit(world, 5)
    deleting = world.send(OffsetDelete("g", (P0,)))
    world.acknowledge(ErrorCode.REQUEST_TIMED_OUT, kept=False)
    assert world.response(deleting, OffsetDeleteResponse).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert fetched(world).offset == 5


@pytest.mark.parametrize("metadata", [b"\0", b"\0\1\0\0\0\1\0\7or"], ids=["no version", "cut"])
def test_offsets_of_members_whose_subscription_cannot_be_read_stay(metadata: bytes) -> None:
    world = World()
    commit(world, 5)
    world.new_member(protocols=(Protocol("range", metadata),))
    refused = OffsetDeleteResponse(ErrorCode.NON_EMPTY_GROUP, {})
    assert world.call(OffsetDelete("g", (P0,)), OffsetDeleteResponse) == refused
    other = World()
    commit(other, 5)
    other.new_member(protocol_type="connect")
    assert other.call(OffsetDelete("g", (P0,)), OffsetDeleteResponse) == refused


def test_a_commits_record_has_its_time_and_its_producer() -> None:
    world = World(now=77_000)
    commit(world, 5, metadata="note")
    (_, record) = next(decode_batch(world.log[-1]))
    assert record == CoordinatorRecord(
        encode_key(OffsetCommitKey("g", "orders", 0)), encode_offset(OffsetCommitValue(5, 3, "note", 77_000))
    )
    plain = world.log[-1]
    assert (plain.producer_id, plain.producer_epoch, plain.transactional, plain.max_timestamp) == (
        -1,
        -1,
        False,
        77_000,
    )
    commit_in_transaction(world, 6)
    pending = world.log[-1]
    assert (pending.producer_id, pending.producer_epoch, pending.transactional) == (7, 0, True)


def test_a_commit_extends_its_members_session() -> None:
    world = World()
    (member,) = world.stable(1)
    world.passes(9_000)
    commit(world, 1, member)
    world.passes(9_999)
    assert world.coordinator.describe("g").state == "Stable"
    world.passes(1)
    assert world.coordinator.describe("g").state == "Empty"


@pytest.mark.parametrize(("characters", "fits"), [("x" * 4096, True), ("x" * 4097, False), ("\u00e9" * 2049, False)])
def test_a_note_is_measured_in_bytes(characters: str, fits: bool) -> None:
    expected = ErrorCode.NONE if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert commit(World(), 1, metadata=characters) is expected


def test_several_offsets_of_one_commit_have_the_positions_of_their_records() -> None:
    """So that a transaction's offset between them is replaced by the later one alone."""
    world = World()
    both = {P0: CommittedOffset(1), P1: CommittedOffset(2)}
    world.call(TxnOffsetCommit("g", 7, 0, both), OffsetCommitResponse)
    world.call(OffsetCommit("g", {P1: CommittedOffset(3)}), OffsetCommitResponse)
    world.end_transaction(7, Marker.COMMIT)
    found = world.coordinator.fetch_offsets(OffsetFetch("g", (P0, P1))).offsets
    assert [found[p].offset for p in (P0, P1)] == [1, 3]


def test_a_deleted_groups_records_are_its_tombstones() -> None:
    world = World()
    commit(world, 5)
    written = len(world.log)
    world.call(DeleteGroup("g"), DeleteGroupResponse)
    keys = [record.key for batch in world.log[written:] for _, record in decode_batch(batch) if record.value is None]
    assert keys == [encode_key(OffsetCommitKey("g", "orders", 0))], "no record of the group itself was written"
    (member,) = world.stable(1)
    commit(world, 6, member)
    world.call(LeaveGroup("g", (LeavingMember(member.member_id),)), LeaveGroupResponse)
    written = len(world.log)
    world.call(DeleteGroup("g"), DeleteGroupResponse)
    keys = [record.key for batch in world.log[written:] for _, record in decode_batch(batch) if record.value is None]
    assert keys == [encode_key(OffsetCommitKey("g", "orders", 0)), encode_key(GroupMetadataKey("g"))]


def test_deleted_topics_take_their_offsets_out_of_open_transactions_and_leave_others() -> None:
    world = World()
    kept = TopicPartition("kept", 0)
    world.call(OffsetCommit("g", {kept: CommittedOffset(4)}), OffsetCommitResponse)
    world.call(TxnOffsetCommit("g", 7, 0, {P0: CommittedOffset(1), kept: CommittedOffset(5)}), OffsetCommitResponse)
    assert world.coordinator.on_topics_deleted(world.now, ["orders"]) == [], "nothing of it was committed"
    world.end_transaction(7, Marker.COMMIT)
    found = world.coordinator.fetch_offsets(OffsetFetch("g")).offsets
    assert {p: each.offset for p, each in found.items()} == {kept: 5}
