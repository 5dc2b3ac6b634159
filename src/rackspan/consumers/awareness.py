"""Whether racks count in this rebalance, and what an operator should know. Off is a value, never an error."""

from collections.abc import Iterator
from dataclasses import replace

from rackspan.consumers.group import Group, Member
from rackspan.model import UNNAMED_RACK


def reason_off(group: Group) -> str | None:
    """Why racks are left out, None where they count.

    One member that cannot be placed switches all off, as one client without rack does in KIP-925: it would take what it is
    given wherever that is, and the others would be moved about for nothing. Members are asked in the order of their ids, so
    that one reason stays one reason.
    """
    return next(_reasons(group), None)


def without_racks(group: Group) -> Group:
    """The group as if all were in one rack: what is left is balance and stickiness."""
    members = tuple(replace(member, rack=UNNAMED_RACK) for member in group.members)
    return Group(members, dict.fromkeys(group.racks, frozenset({UNNAMED_RACK})))


def stranded(group: Group) -> tuple[Member, ...]:
    """Members in a rack where no partition of the group has a replica: perhaps a mistyped client.rack."""
    populated = frozenset[object]().union(*group.racks.values())
    return tuple(member for member in group.members if member.rack not in populated)


def unknown_topics(group: Group) -> tuple[str, ...]:
    """Subscribed topics that the cluster does not know, or that have no partitions."""
    known = {topic for topic, _ in group.racks}
    return tuple(sorted(frozenset[str]().union(*(member.topics for member in group.members)) - known))


def _reasons(group: Group) -> Iterator[str]:
    for member in sorted(group.members, key=lambda one: one.id):
        if member.fault is not None:
            yield f"consumer {member.id} {member.fault}"
        elif member.rack is None:
            yield f"consumer {member.id} has no client.rack"
    if group.racks and not any(group.racks.values()):
        yield "no partition has a replica on a broker with broker.rack"
