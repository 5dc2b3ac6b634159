"""DescribeGroups and ListGroups: descriptions of the coordinator's groups."""

from collections.abc import Iterable
from typing import Final

from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import Member
from rackspan.cluster.core.groups.requests import DescribedMember, DescribeGroupResponse, ListedGroup
from rackspan.kafka_bytes.error_codes import ErrorCode

GROUP_TYPE: Final = "classic"


def describe(group_id: str, group: Group | None) -> DescribeGroupResponse:
    """A group's description. Subscriptions and assignments are included only while it is Stable."""
    if group is None or group.is_in(GroupState.DEAD):
        return DescribeGroupResponse(ErrorCode.NONE, group_id)
    stable = group.is_in(GroupState.STABLE)
    return DescribeGroupResponse(
        *(ErrorCode.NONE, group_id, group.state.value, group.protocol_type or ""),
        protocol=(group.protocol or "") if stable else "",
        members=tuple(_member(member, group.protocol if stable else None) for member in group.members.values()),
    )


def _member(member: Member, protocol: str | None) -> DescribedMember:
    return DescribedMember(
        *(member.member_id, member.group_instance_id, member.client_id, member.client_host),
        member.metadata(protocol),
        b"" if protocol is None else member.assignment,
    )


def list_groups(groups: Iterable[Group], states: Iterable[str], types: Iterable[str]) -> list[ListedGroup]:
    """Groups that pass the filters, which ignore case (KIP-518, KIP-848). An empty filter passes all."""
    states_lower = {state.lower() for state in states}
    types_lower = {kind.lower() for kind in types}
    if types_lower and GROUP_TYPE not in types_lower:
        return []
    passing = [group for group in groups if not states_lower or group.state.value.lower() in states_lower]
    listed = [ListedGroup(group.group_id, group.protocol_type or "", group.state.value) for group in passing]
    return sorted(listed, key=lambda group: group.group_id)
