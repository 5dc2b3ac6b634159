"""Differences between a cluster and what a plan assumed, in words: the first one, and what to do about it."""

from collections.abc import Iterable, Iterator

from rackspan.plan.execution.observed import ObservedCluster, ReassignmentStatus, reassignment_status
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan

ANEW = "make a new plan with rackspan reassign plan"
WAIT = "wait for the end, or cancel it with rackspan reassign cancel --in-flight, then run again"


def mismatch(
    plan: ReassignmentPlan, partitions: Iterable[PartitionReassignment], cluster: ObservedCluster
) -> str | None:
    """Why these reassignments may not be started or waited for, in either direction; None where they are as the plan
    assumed. Whether it is the plan's cluster at all is for other_cluster to say."""
    return next(_mismatches(plan, partitions, cluster), None)


def changed_since(plan: ReassignmentPlan, direction: Direction, cluster: ObservedCluster) -> str | None:
    """Why the partitions are not as a run in this direction left them; None where they are."""
    if why := mismatch(plan, plan.partitions(), cluster):
        return why
    for partition in plan.partitions():
        if reassignment_status(partition, direction, cluster) is not ReassignmentStatus.DONE:
            if partition.topic_partition in cluster.in_flight:
                return _moves_beside(partition, cluster)
            at, end = _ids(cluster.replicas[partition.topic_partition]), _ids(partition.end(direction))
            return f"{partition.name} is on {at}: the run ended on {end}, and it was changed since; {ANEW}"
    return None


def other_cluster(plan: ReassignmentPlan, cluster: ObservedCluster) -> str | None:
    if plan.cluster_id is None or plan.cluster_id == cluster.cluster_id:
        return None
    return f"this is cluster {cluster.cluster_id}, the plan is for {plan.cluster_id}; name that one, or {ANEW}"


def running_beside(plan: ReassignmentPlan, cluster: ObservedCluster) -> str | None:
    """Kafka's tool starts nothing while anything is being reassigned, and neither does a run."""
    others = sorted(str(partition) for partition in cluster.in_flight if partition not in plan.by_partition)
    if not others:
        return None
    return f"{_listed(others)}: being reassigned, not by this plan; {WAIT}"


def missing_brokers(
    partitions: Iterable[PartitionReassignment], direction: Direction, cluster: ObservedCluster
) -> str | None:
    """Brokers that are gone or fenced and should receive a copy, or else should keep one: Kafka ends no reassignment
    before every replica of its target is in sync."""
    listed = list(partitions)
    for brokers_of, role in (
        (PartitionReassignment.additions, "must receive"),
        (PartitionReassignment.end, "must keep a replica in sync of"),
    ):
        waiting = [partition for partition in listed if set(brokers_of(partition, direction)) - cluster.brokers]
        if waiting:
            away = sorted(
                {broker for partition in waiting for broker in brokers_of(partition, direction)} - cluster.brokers
            )
            brokers = f"broker {away[0]} is" if len(away) == 1 else f"brokers {', '.join(map(str, away))} are"
            back = "it" if len(away) == 1 else "them"
            return f"{brokers} down and {role} {_listed([partition.name for partition in waiting])}; bring {back} back, or {ANEW}"
    return None


def missing_receivers(
    partitions: Iterable[PartitionReassignment], direction: Direction, cluster: ObservedCluster
) -> str | None:
    """The missing brokers among those that should receive a copy."""
    return missing_brokers(
        [partition for partition in partitions if set(partition.additions(direction)) - cluster.brokers],
        direction,
        cluster,
    )


def cannot_finish(one: PartitionReassignment, direction: Direction, cluster: ObservedCluster) -> bool:
    """Whether its reassignment cannot end now: the partition has no leader, or a broker of its target is away.

    Source: PartitionReassignmentReplicas.maybeCompleteReassignment of Apache Kafka up to 4.2: every target replica is in sync. Kafka
    4.3 ends one that adds as many as it removes when those are: no fewer replicas are in sync then, but perhaps fewer racks.
    """
    end = set(one.end(direction))
    if end == set(one.start(direction)):
        return False
    return one.topic_partition in cluster.leaderless or not end <= cluster.brokers


def leaderless(partitions: Iterable[PartitionReassignment], cluster: ObservedCluster) -> str | None:
    """Partitions that a new replica cannot copy from."""
    waiting = [partition for partition in partitions if partition.topic_partition in cluster.leaderless]
    if not waiting:
        return None
    has = "has" if len(waiting) == 1 else "have"
    return f"{_listed([partition.name for partition in waiting])} {has} no leader to copy from; bring back a replica that was in sync, or {ANEW}"


def _mismatches(
    plan: ReassignmentPlan, partitions: Iterable[PartitionReassignment], cluster: ObservedCluster
) -> Iterator[str]:
    for partition in partitions:
        why = _of_topic(plan, partition.topic, cluster) or _of_partition(partition, cluster)
        if why is not None:
            yield why


def _of_topic(plan: ReassignmentPlan, topic: str, cluster: ObservedCluster) -> str | None:
    if topic not in cluster.topic_ids:
        return f"topic {topic} is not in the cluster; {ANEW}"
    planned, current = plan.topic_ids.get(topic), cluster.topic_ids[topic]
    if planned is None or current is None or planned == current:
        return None
    return f"topic {topic} was deleted and created again since: its id is {current}, the plan's {planned}; {ANEW}"


def _of_partition(one: PartitionReassignment, cluster: ObservedCluster) -> str | None:
    # What is missing, or on replicas of neither end, is so in both directions.
    match reassignment_status(one, Direction.TARGETS, cluster):
        case ReassignmentStatus.MISSING:
            return f"partition {one.name} is not in the cluster; {ANEW}"
        case ReassignmentStatus.UNEXPECTED if one.topic_partition in cluster.in_flight:
            return _moves_beside(one, cluster)
        case ReassignmentStatus.UNEXPECTED:
            at, undo, replicas = _ids(cluster.replicas[one.topic_partition]), _ids(one.undo), _ids(one.replicas)
            return f"{one.name} is on {at}: the plan found it on {undo} and leads to {replicas}; {ANEW}"
        case _:
            return None


def _moves_beside(one: PartitionReassignment, cluster: ObservedCluster) -> str:
    target = _ids(cluster.in_flight[one.topic_partition].target)
    return f"{one.name} is being reassigned to {target}, not by this plan; {WAIT}"


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _listed(names: list[str]) -> str:
    """The first few of many."""
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"
