"""One consumer's membership in its group: its last assignment, its decisions as group leader, and its log lines."""

import logging
from collections.abc import Iterable, Mapping
from importlib import import_module
from time import time_ns

from rackspan.consumers import ConsumerGroup, GroupMember, RebalanceDecision, decide_rebalance
from rackspan.consumers.member_data import LastAssignment, member_data, read_assignment
from rackspan.consumers.rebalance import members_without_local_replicas, unknown_topics
from rackspan.model.ids import RackId, TopicPartition
from rackspan.text import count_noun

log = logging.getLogger("rackspan.assignor")


class Membership:
    """State of one consumer between rebalances. Never share it: one consumer would claim the partitions of the other."""

    def __init__(self, client_rack: str, *, cooperative: bool) -> None:
        self.client_rack = client_rack
        self._cooperative = cooperative
        self._last = LastAssignment()
        self._warned: frozenset[str] = frozenset()
        self._was_off = False
        # The solver takes a tenth of a second to load: here, so that the first rebalance does not wait for it.
        import_module("ortools.graph.python.min_cost_flow")

    def user_data(self) -> bytes:
        """The user data that this consumer sends when it joins."""
        return member_data(self.client_rack, self._last, cooperative=self._cooperative)

    def on_assignment(self, partitions: Iterable[TopicPartition], user_data: bytes | None) -> None:
        """Record the assignment that this consumer received."""
        self._last = read_assignment(partitions, user_data)

    def decide_rebalance(
        self, members: Iterable[GroupMember], racks: Mapping[TopicPartition, frozenset[RackId]]
    ) -> RebalanceDecision:
        """Decide a rebalance of the whole group. The client calls this on the consumer that is the group leader."""
        group = ConsumerGroup(tuple(members), racks)
        decision = decide_rebalance(group, now_ms=time_ns() // 1_000_000)
        self._report(group, decision)
        return decision

    def _report(self, group: ConsumerGroup, decision: RebalanceDecision) -> None:
        """Log the decision. A warning is logged once, not at every rebalance, until its cause is gone."""
        warnings = _warnings(group, decision.off_reason)
        for warning in sorted(warnings - self._warned):
            log.warning("%s", warning)
        if decision.off_reason is None and self._was_off:
            log.warning("rack awareness is on again: every member of the group has a rack")
        self._warned, self._was_off = warnings, decision.off_reason is not None
        # Info only: clients warn of unknown topics themselves, and kafka-python assigns once before it has any metadata.
        for topic in unknown_topics(group):
            log.info("topic %s has no partitions that are known here; it is left out", topic)
        log.info("%s", _summary(group, decision))


def _warnings(group: ConsumerGroup, off_reason: str | None) -> frozenset[str]:
    if off_reason is not None:
        return frozenset(
            {f"rack awareness is off for the group: {off_reason}; partitions are balanced and stay where they are"}
        )
    return frozenset(
        f"consumer {member.id} is in rack {member.rack}, where no replica of the group's topics is; is client.rack right?"
        for member in (members_without_local_replicas(group) if group.racks else ())
    )


def _summary(group: ConsumerGroup, decision: RebalanceDecision) -> str:
    target = decision.target
    crossing = "not counted" if decision.off_reason is not None else str(target.cross_rack)
    partitions = sum(map(len, target.partitions.values()))
    return (
        f"{count_noun(partitions, 'partition')} to {count_noun(len(group.members), 'member')}: {crossing} across racks, {target.moved} moved, "
        f"{len(decision.withheld)} waiting for the member that reads them"
    )
