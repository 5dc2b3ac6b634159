"""A run from its first look to its last effect: begin, go on, turn round, or cancel, each with the same journal."""

from collections.abc import Iterator

from rackspan.apply.executor import ClusterHands, Happened, Pace, carry_out
from rackspan.apply.journal import Journal
from rackspan.errors import UsageError
from rackspan.plan.execution.decision import Limits, Question
from rackspan.plan.execution.events import Began, Cancelled, Turned
from rackspan.plan.execution.observed import ObservedCluster
from rackspan.plan.execution.start import beginning, going_on
from rackspan.plan.written import Toward, WrittenPlan


def run(
    cluster: ClusterHands, plan: WrittenPlan, toward: Toward, journal: Journal, limits: Limits, pace: Pace = Pace()
) -> Iterator[Happened]:
    """Carry a plan out, or go on with it where its journal stands.

    Errors: ReassignmentStopped, InvalidJournal for another plan's journal, UsageError, SourceError.
    """
    if journal.begun is None:
        topics = frozenset(move.topic for move in plan.moves())
        begun = beginning(plan, toward, cluster.observe(Question(topics, frozenset())))
        _refuse_a_cap_below(begun, toward, limits)
        journal.append(Began(begun))
    else:
        going_on(journal.begun, plan, _first_look(cluster), str(journal.path))
        _refuse_a_cap_below(journal.begun.plan, toward, limits)
    if journal.account.toward is not toward or journal.account.cancelled:
        journal.append(Turned(toward))
    yield from carry_out(cluster, journal, limits, pace)


def cancel(cluster: ClusterHands, plan: WrittenPlan, journal: Journal, pace: Pace = Pace()) -> Iterator[Happened]:
    """Take back what is in flight and give throttles back; what is done stays done. Errors: as `run`."""
    going_on(journal.account, plan, _first_look(cluster), str(journal.path))
    if not journal.account.cancelled:
        journal.append(Cancelled())
    yield from carry_out(cluster, journal, Limits(), pace)


def _first_look(cluster: ClusterHands) -> ObservedCluster:
    """A cluster that cannot be reached at all is told at once; the loop would wait for it."""
    return cluster.observe(Question(frozenset(), frozenset()))


def _refuse_a_cap_below(plan: WrittenPlan, toward: Toward, limits: Limits) -> None:
    most = max(plan.moves(), key=lambda move: len(move.arrivals(toward)))
    copies = len(most.arrivals(toward))
    if limits.moves is not None and copies > limits.moves:
        raise UsageError(f"--max-moves {limits.moves}: {most.name} alone copies {copies}; allow {copies} or more")
