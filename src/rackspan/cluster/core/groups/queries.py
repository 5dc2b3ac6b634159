"""DescribeGroups and ListGroups: what a coordinator says of its groups."""

from collections.abc import Iterable
from typing import Final

from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import Member
from rackspan.cluster.core.groups.requests import DescribedGroup, DescribedMember, ListedGroup

GROUP_TYPE: Final = "classic"


def describe(group_id: str, group: Group | None) -> DescribedGroup:
    """What its members read and own is said only while it is Stable: else it is about to change."""
    if group is None or group.is_in(GroupState.DEAD):
        return DescribedGroup(KafkaError.NONE, group_id)
    stable = group.is_in(GroupState.STABLE)
    return DescribedGroup(
        *(KafkaError.NONE, group_id, group.state.value, group.protocol_type or ""),
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
    """Filters are read in any case (KIP-518, KIP-848); an empty one lets everything pass."""
    wanted_states = {state.lower() for state in states}
    wanted_types = {kind.lower() for kind in types}
    if wanted_types and GROUP_TYPE not in wanted_types:
        return []
    found = [group for group in groups if not wanted_states or group.state.value.lower() in wanted_states]
    listed = [ListedGroup(group.group_id, group.protocol_type or "", group.state.value) for group in found]
    return sorted(listed, key=lambda group: group.group_id)
