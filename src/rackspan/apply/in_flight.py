"""Reassignments that no journal of ours has started: what throttles them, and how they are cancelled."""

from contextlib import suppress

from rackspan.apply.executor import Pace, ReassigningCluster
from rackspan.errors import ClusterUnreachable, ReassignmentStopped
from rackspan.model.ids import TopicPartition
from rackspan.plan import ConfigKey, ObservationRequest, RunState, foreign_throttles, throttle_configs
from rackspan.reassign import ReassignmentPlan


def observe_foreign_throttles(cluster: ReassigningCluster, state: RunState) -> dict[ConfigKey, str]:
    """The throttles that others have set on the topics and the brokers of a plan. Errors: SourceError."""
    topics = frozenset(partition.topic for partition in state.plan.partitions())
    configs = throttle_configs(state.plan) | frozenset(state.own)
    return foreign_throttles(state, cluster.observe(ObservationRequest(topics, configs)))


def cancel_in_flight(
    cluster: ReassigningCluster, plan: ReassignmentPlan, pace: Pace = Pace()
) -> dict[TopicPartition, tuple[int, ...]]:
    """Cancel the reassignments of the plan that are under way; returns the replicas of every partition afterwards.

    One that ends meanwhile, or gets another target, is left alone. A broker may lag the controller: the end is observed
    twice. Errors: ReassignmentStopped, SourceError.
    """
    targets = {partition.topic_partition: partition.replicas for partition in plan.partitions()}
    request = ObservationRequest(frozenset(topic for topic, _ in targets))
    until, settled, sent = pace.now() + pace.patience_seconds, False, False
    while True:
        shown = cluster.observe(request)
        left = tuple(name for name, moving in shown.in_flight.items() if targets.get(name) == moving.target)
        if settled and not left:
            return {name: shown.replicas[name] for name in targets if name in shown.replicas}
        settled = not left
        if left:
            if sent and pace.now() >= until:
                raise ReassignmentStopped(
                    "the cluster took the cancel and does not show it; look at its controller's log"
                )
            # Without a response, the next observation shows whether it was carried out.
            with suppress(ClusterUnreachable):
                cluster.cancel_moves(left)
            sent = True
        pace.sleep(pace.settle_seconds)
