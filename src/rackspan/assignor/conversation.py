"""What one consumer remembers between rebalances, and what it says of them in its log."""

import importlib
import logging
from collections.abc import Iterable, Mapping
from time import time_ns
from typing import Final

from rackspan.consumers import Group, Member
from rackspan.consumers.awareness import stranded, unknown_topics
from rackspan.consumers.leader import Decision, lead
from rackspan.consumers.member_data import Assigned, member_data, read_assignment
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition

log = logging.getLogger("rackspan.assignor")

PROTOCOL: Final = "rackspan-rack-aware"
"""The name brokers compare: all members of a group must offer it before it is used."""


class Conversation:
    """One consumer's part in its group. Not to be shared: what one owns would be claimed for the other too."""

    def __init__(self, client_rack: str, *, cooperative: bool) -> None:
        self.client_rack = client_rack
        self._cooperative = cooperative
        self._assigned = Assigned()
        self._said: frozenset[str] = frozenset()
        self._was_off = False
        # The solver takes a tenth of a second to load, which a consumer should spend here and not in its first rebalance.
        importlib.import_module("ortools.graph.python.min_cost_flow")

    def user_data(self) -> bytes:
        """What this consumer sends when it joins."""
        return member_data(self.client_rack, self._assigned, cooperative=self._cooperative)

    def on_assignment(self, partitions: Iterable[TopicPartition], user_data: bytes | None) -> None:
        """This consumer was told what to read."""
        self._assigned = read_assignment(partitions, user_data)

    def lead(self, members: Iterable[Member], racks: Mapping[TopicPartition, frozenset[RackId]]) -> Decision:
        """Decide for the whole group; the client calls this on the one consumer that leads it."""
        group = Group(tuple(members), racks)
        decision = lead(group, now_ms=time_ns() // 1_000_000)
        self._report(group, decision)
        return decision

    def _report(self, group: Group, decision: Decision) -> None:
        """Each warning once, not at every rebalance, until its cause is gone."""
        warnings = _warnings(group, decision.off)
        for warning in sorted(warnings - self._said):
            log.warning("%s", warning)
        if decision.off is None and self._was_off:
            log.warning("rack awareness is on again: every member of the group has a rack")
        self._said, self._was_off = warnings, decision.off is not None
        # Clients complain of unknown topics themselves; and kafka-python asks before it has read any metadata.
        for topic in unknown_topics(group):
            log.info("topic %s has no partitions that are known here; it is left out", topic)
        log.info("%s", _summary(group, decision))


def _warnings(group: Group, off: str | None) -> frozenset[str]:
    if off is not None:
        return frozenset(
            {f"rack awareness is off for the group: {off}; partitions are balanced and stay where they are"}
        )
    return frozenset(
        f"consumer {member.id} is in rack {member.rack}, where no replica of the group's topics is; is client.rack right?"
        for member in (stranded(group) if group.racks else ())
    )


def _summary(group: Group, decision: Decision) -> str:
    aim = decision.aim
    crossing = "not counted" if decision.off is not None else str(aim.cross_rack)
    given = sum(map(len, aim.partitions.values()))
    return (
        f"{given} partitions to {len(group.members)} members: {crossing} across racks, {aim.moved} moved, "
        f"{len(decision.waiting)} waiting for the member that reads them"
    )
