"""Whether racks count in a rebalance, and what an operator should be warned of. Off is a value, never an error."""

from collections.abc import Iterator
from dataclasses import replace

from rackspan.consumers.group import ConsumerGroup, GroupMember
from rackspan.model import UNNAMED_RACK


def reason_off(group: ConsumerGroup) -> str | None:
    """Why racks do not count, None where they do.

    One member without a rack switches rack awareness off for all, as one client does in KIP-925: it could be assigned any
    partition, wherever that is, and the other members' partitions would move for nothing. Members are checked in the order
    of their ids, so that repeated rebalances report the same reason.
    """
    return next(_reasons(group), None)


def without_racks(group: ConsumerGroup) -> ConsumerGroup:
    """The group with all members and replicas in one rack: the goals that remain are balance and stickiness."""
    members = tuple(replace(member, rack=UNNAMED_RACK) for member in group.members)
    return ConsumerGroup(members, dict.fromkeys(group.racks, frozenset({UNNAMED_RACK})))


def members_without_local_replicas(group: ConsumerGroup) -> tuple[GroupMember, ...]:
    """Members in a rack where no partition of the group has a replica: perhaps a mistyped client.rack."""
    populated = frozenset[object]().union(*group.racks.values())
    return tuple(member for member in group.members if member.rack not in populated)


def unknown_topics(group: ConsumerGroup) -> tuple[str, ...]:
    """Subscribed topics that are not in the cluster's metadata, or that have no partitions."""
    known = {topic for topic, _ in group.racks}
    return tuple(sorted(frozenset[str]().union(*(member.topics for member in group.members)) - known))


def _reasons(group: ConsumerGroup) -> Iterator[str]:
    for member in sorted(group.members, key=lambda member: member.id):
        if member.fault is not None:
            yield f"consumer {member.id} {member.fault}"
        elif member.rack is None:
            yield f"consumer {member.id} has no client.rack"
    if group.racks and not any(group.racks.values()):
        yield "no partition has a replica on a broker with broker.rack"
