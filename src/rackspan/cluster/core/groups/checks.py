"""Is this who it says it is? Checks that several requests share, in Kafka's order, for the first error is the one told."""

from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.requests import OffsetCommit, SyncGroup, TxnOffsetCommit


def member_error(group: Group, member_id: str, group_instance_id: str | None) -> KafkaError:
    """FENCED_INSTANCE_ID where the instance lives on under another member id (KIP-345)."""
    if group_instance_id is not None:
        current = group.static_members.get(group_instance_id)
        if current is not None and current != member_id:
            return KafkaError.FENCED_INSTANCE_ID
        if current is None:
            return KafkaError.UNKNOWN_MEMBER_ID
    return KafkaError.NONE if member_id in group.members else KafkaError.UNKNOWN_MEMBER_ID


def generation_error(group: Group, member_id: str, group_instance_id: str | None, generation: int) -> KafkaError:
    """For heartbeats and syncs."""
    if group.is_in(GroupState.DEAD):
        return KafkaError.COORDINATOR_NOT_AVAILABLE
    error = member_error(group, member_id, group_instance_id)
    if error is KafkaError.NONE and generation != group.generation:
        return KafkaError.ILLEGAL_GENERATION
    return error


def sync_error(group: Group, request: SyncGroup) -> KafkaError:
    error = generation_error(group, request.member_id, request.group_instance_id, request.generation)
    if error is not KafkaError.NONE:
        return error
    if request.protocol_type not in (None, group.protocol_type) or request.protocol not in (None, group.protocol):
        return KafkaError.INCONSISTENT_GROUP_PROTOCOL
    return KafkaError.NONE


def commit_error(group: Group, request: OffsetCommit | TxnOffsetCommit) -> KafkaError:
    """Who may commit now (ClassicGroup.validateOffsetCommit). A transaction may also while the group is being synced."""
    if group.is_in(GroupState.DEAD):
        return KafkaError.COORDINATOR_NOT_AVAILABLE
    if request.generation < 0 and group.is_in(GroupState.EMPTY):
        return KafkaError.NONE
    transactional = isinstance(request, TxnOffsetCommit)
    error = _committer_error(group, request, transactional)
    if error is KafkaError.NONE and not transactional and group.is_in(GroupState.COMPLETING_REBALANCE):
        return KafkaError.REBALANCE_IN_PROGRESS
    return error


def _committer_error(group: Group, request: OffsetCommit | TxnOffsetCommit, transactional: bool) -> KafkaError:
    if request.generation >= 0 or request.member_id or request.group_instance_id is not None:
        return generation_error(group, request.member_id, request.group_instance_id, request.generation)
    return KafkaError.NONE if transactional or group.is_in(GroupState.EMPTY) else KafkaError.UNKNOWN_MEMBER_ID
