"""Records of `__consumer_offsets` as Hypothesis draws them, and the same in the names of Kafka's JSON."""

import base64
from typing import Any

from hypothesis import strategies as st

from rackspan.cluster.core.groups import records

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
# Kafka's strings are UTF-8: a lone surrogate has no bytes.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

KEYS = st.builds(records.OffsetCommitKey, TEXT, TEXT, INT32) | st.builds(records.GroupMetadataKey, TEXT)
OFFSETS = st.builds(records.OffsetCommitValue, INT64, INT32, TEXT, INT64)
MEMBERS = st.builds(records.MemberMetadata, TEXT, st.none() | TEXT, TEXT, TEXT, INT32, INT32, st.binary(), st.binary())
GROUPS = st.builds(
    records.GroupMetadataValue,
    *(TEXT, INT32, st.none() | TEXT, st.none() | TEXT, INT64, st.lists(MEMBERS, max_size=3).map(tuple)),
)


def key_json(key: records.Key) -> tuple[str, dict[str, Any]]:
    match key:
        case records.OffsetCommitKey():
            return "OffsetCommitKey", {"group": key.group_id, "topic": key.topic, "partition": key.partition}
        case records.GroupMetadataKey():
            return "GroupMetadataKey", {"group": key.group_id}


def offset_json(value: records.OffsetCommitValue, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "offset": value.offset,
        "metadata": value.metadata,
        "commitTimestamp": value.commit_timestamp_ms,
    }
    if version == 1:
        fields["expireTimestamp"] = 7
    if version >= 3:
        fields["leaderEpoch"] = value.leader_epoch
    return fields


def group_json(value: records.GroupMetadataValue, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "protocolType": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
        "members": [_member_json(member, version) for member in value.members],
    }
    return fields | ({"currentStateTimestamp": value.state_timestamp_ms} if version >= 2 else {})


def _member_json(member: records.MemberMetadata, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "memberId": member.member_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "sessionTimeout": member.session_timeout_ms,
        "subscription": base64.b64encode(member.subscription).decode(),
        "assignment": base64.b64encode(member.assignment).decode(),
    }
    if version >= 1:
        fields["rebalanceTimeout"] = member.rebalance_timeout_ms
    if version >= 3:
        fields["groupInstanceId"] = member.group_instance_id
    return fields
