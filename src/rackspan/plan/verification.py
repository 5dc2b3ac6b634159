"""Whether a reassignment was carried out, partition by partition: anyone's, by anything.

Agrees with kafka-reassign-partitions --verify: done is its "completed", in progress its "still in progress", all else its
"no active reassignment". Source: ReassignPartitionsCommand.findPartitionReassignmentStates of Apache Kafka 4.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rackspan.plan.execution.observed import ObservedCluster
from rackspan.plan.written import PartitionMove, WrittenPlan


class Verdict(StrEnum):
    DONE = "done"
    IN_PROGRESS = "in progress"
    NOT_STARTED = "not started"
    """On the replicas that the plan found; only a plan with its originals can tell."""
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """`reason` says what is so instead; None where all is as it shall be."""

    move: PartitionMove
    verdict: Verdict
    reason: str | None = None


def verdicts(plan: WrittenPlan, seen: ObservedCluster) -> list[PartitionVerdict]:
    """In the order of topic and partition."""
    moves = sorted(plan.moves(), key=lambda move: move.place)
    return [PartitionVerdict(move, *_verdict(plan, move, seen)) for move in moves]


def _verdict(plan: WrittenPlan, move: PartitionMove, seen: ObservedCluster) -> tuple[Verdict, str | None]:
    if move.place in seen.in_flight:
        return Verdict.IN_PROGRESS, _on_the_way(move, seen.in_flight[move.place].target)
    replicas = seen.replicas.get(move.place)
    if replicas is None:
        return Verdict.DIFFERS, "it is not in the cluster"
    if _is_another_topic(plan, move.topic, seen):
        return Verdict.DIFFERS, "its topic was deleted and created anew"
    if replicas == move.replicas:
        return Verdict.DONE, None
    at = ",".join(map(str, replicas))
    return (Verdict.NOT_STARTED if replicas == move.undo else Verdict.DIFFERS), f"its replicas are {at}"


def _on_the_way(move: PartitionMove, target: Sequence[int]) -> str | None:
    return None if set(target) == set(move.replicas) else f"it moves to {','.join(map(str, target))}"


def _is_another_topic(plan: WrittenPlan, topic: str, seen: ObservedCluster) -> bool:
    planned, found = plan.topic_ids.get(topic), seen.topic_ids.get(topic)
    return planned is not None and found is not None and planned != found


def all_done(found: Sequence[PartitionVerdict]) -> bool:
    return all(one.verdict is Verdict.DONE for one in found)


def counted(found: Sequence[PartitionVerdict]) -> Iterator[tuple[Verdict, int]]:
    for verdict in Verdict:
        yield verdict, sum(one.verdict is verdict for one in found)
