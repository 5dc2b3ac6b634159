"""A run from its first observation to its last effect: start, resume, change direction or cancel, in one journal; and
reassignments that no journal of ours has started: what throttles them, and how they are cancelled.
"""

from collections.abc import Iterator
from contextlib import suppress

from rackspan.apply.executor import Pace, ReassigningCluster, RunUpdate, execute
from rackspan.apply.journal import Journal
from rackspan.errors import ClusterUnreachable, ReassignmentStopped
from rackspan.model.ids import TopicPartition
from rackspan.plan import (
    ConfigKey,
    DirectionSet,
    ObservationRequest,
    ObservedCluster,
    RateSet,
    RunCancelled,
    RunLimits,
    RunStarted,
    RunState,
    foreign_throttles,
    plan_to_start,
    refuse_a_limit_below,
    refuse_to_repeat,
    refuse_to_resume,
    refuse_unnamed_cluster,
    throttle_configs,
)
from rackspan.reassign import Direction, ReassignmentPlan


def run(
    cluster: ReassigningCluster,
    plan: ReassignmentPlan,
    direction: Direction,
    journal: Journal,
    limits: RunLimits,
    pace: Pace = Pace(),
) -> Iterator[RunUpdate]:
    """Execute a plan, or resume it where its journal ends. A plan without reassignments has no effect and no journal.

    A throttle stays in force until a later run is given another one, or 0 for none.

    Errors: ReassignmentStopped where the cluster is another or is not as the plan assumes, or as a run that ended left it;
    InvalidJournal for another plan's journal, UsageError, SourceError.
    """
    if journal.begun is None:
        if not len(plan):
            return
        refuse_unnamed_cluster(plan)
        complete = plan_to_start(plan, direction, _observation(cluster, plan))
        refuse_a_limit_below(complete, direction, limits)
        journal.append(RunStarted(complete, limits.bytes_per_second or None))
    else:
        refuse_to_resume(journal.begun, plan, _first_observation(cluster), str(journal.path))
        refuse_a_limit_below(journal.begun.plan, direction, limits)
        rate = limits.bytes_per_second
        if rate is not None and rate != (journal.begun.bytes_per_second or 0):
            journal.append(RateSet(rate))
    if journal.state.direction is not direction or journal.state.cancelled:
        journal.append(DirectionSet(direction))
    if not journal.state.remaining:
        refuse_to_repeat(journal.state, _observation(cluster, plan))
    yield from execute(cluster, journal, limits, pace)


def cancel(
    cluster: ReassigningCluster, plan: ReassignmentPlan, journal: Journal, pace: Pace = Pace()
) -> Iterator[RunUpdate]:
    """Cancel what is in flight and restore the user's throttles; what is done stays done. Errors: as `run`."""
    refuse_to_resume(journal.state, plan, _first_observation(cluster), str(journal.path))
    if not journal.state.cancelled:
        journal.append(RunCancelled())
    yield from execute(cluster, journal, RunLimits(), pace)


def _first_observation(cluster: ReassigningCluster) -> ObservedCluster:
    """Raises at once where the cluster cannot be reached at all; the loop would wait for it."""
    return cluster.observe(ObservationRequest())


def _observation(cluster: ReassigningCluster, plan: ReassignmentPlan) -> ObservedCluster:
    """Every topic of the plan."""
    return cluster.observe(ObservationRequest(frozenset(partition.topic for partition in plan.partitions())))


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
