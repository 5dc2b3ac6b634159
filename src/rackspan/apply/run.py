"""A run from its first observation to its last effect: start, resume, change direction or cancel, in one journal."""

from collections.abc import Iterator

from rackspan.apply.executor import Pace, ReassigningCluster, RunUpdate, execute
from rackspan.apply.journal import Journal
from rackspan.plan import (
    DirectionSet,
    ObservationRequest,
    ObservedCluster,
    RateSet,
    RunCancelled,
    RunLimits,
    RunStarted,
    plan_to_start,
    refuse_a_limit_below,
    refuse_to_resume,
    refuse_unnamed_cluster,
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

    Errors: ReassignmentStopped where the cluster is another or is not as the plan assumes, InvalidJournal for another
    plan's journal, UsageError, SourceError.
    """
    if journal.begun is None:
        if not len(plan):
            return
        refuse_unnamed_cluster(plan)
        topics = frozenset(partition.topic for partition in plan.partitions())
        complete = plan_to_start(plan, direction, cluster.observe(ObservationRequest(topics)))
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
