"""Throttles that a run did not set: a user's, another tool's, or those that a run before it has left."""

from collections.abc import Iterable

from rackspan.model.ids import TopicPartition
from rackspan.model.topic import FOLLOWER_REPLICAS, LEADER_REPLICAS, parse_config_list
from rackspan.plan.execution.events import RunState
from rackspan.plan.execution.observed import ObservedCluster
from rackspan.plan.execution.throttle import (
    EVERY_REPLICA,
    FOLLOWER_RATE,
    LEADER_RATE,
    ConfigKey,
    Holder,
    merged_list,
    throttled_brokers,
)
from rackspan.reassign import PartitionReassignment, ReassignmentPlan, Step


def plan_in_flight(cluster: ObservedCluster, partitions: Iterable[TopicPartition]) -> ReassignmentPlan:
    """The reassignments under way of these partitions, by any tool, as a plan of one step."""
    moving = [
        PartitionReassignment(topic, partition, move.target, move.cancelled)
        for topic, partition in sorted(partitions)
        for move in [cluster.in_flight[TopicPartition(topic, partition)]]
    ]
    return ReassignmentPlan(cluster.cluster_id, {}, (Step.of(1, "under way", moving),))


def throttle_configs(plan: ReassignmentPlan) -> frozenset[ConfigKey]:
    """Every config that can throttle a move of the plan."""
    partitions = list(plan.partitions())
    rates = (LEADER_RATE, FOLLOWER_RATE)
    lists = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
    return frozenset(
        {ConfigKey(Holder.BROKER, str(broker), key) for broker in throttled_brokers(partitions) for key in rates}
        | {
            ConfigKey(Holder.TOPIC, topic, key)
            for topic in {partition.topic for partition in partitions}
            for key in lists
        }
    )


def foreign_throttles(state: RunState, cluster: ObservedCluster) -> dict[ConfigKey, str]:
    """What others have set, sorted. Where the run has put its own value in the place of theirs, theirs counts."""
    values = {**cluster.configs, **state.own, **foreign_changes(state, cluster)}
    return {config: value for config, value in sorted(values.items()) if value is not None}


def foreign_changes(state: RunState, cluster: ObservedCluster) -> dict[ConfigKey, str | None]:
    """Throttles that somebody else changed while the run had them set: what is theirs now.

    A rate is theirs if the run never had it. Of a list only what was added counts: an entry that the plan sets too is the
    run's. Where the rate of a throttle is not in the journal, nothing counts.
    """
    if state.unknown_rate or not state.rates:
        return {}
    found = {}
    for config, own in state.own.items():
        if config in cluster.configs:
            shown = cluster.configs[config]
            theirs = shown if config.holder is Holder.BROKER else _theirs_of_list(config, own, shown, state.plan)
            if theirs != own and not (config.holder is Holder.BROKER and _is_rate_of(state, shown)):
                found[config] = theirs
    return found


def _is_rate_of(state: RunState, shown: str | None) -> bool:
    return shown is not None and shown in {str(rate) for rate in state.rates}


def _theirs_of_list(config: ConfigKey, own: str | None, shown: str | None, plan: ReassignmentPlan) -> str | None:
    """The user's list together with the entries that no move of the plan sets."""
    if shown is None or (own is not None and own.strip() == EVERY_REPLICA):
        return own
    if shown.strip() == EVERY_REPLICA:
        return EVERY_REPLICA
    kept = set(parse_config_list(own or ""))
    added = [entry for entry in parse_config_list(shown) if entry not in kept and not _is_of_plan(config, entry, plan)]
    return merged_list(own, ",".join(sorted(added))) if added else own


def _is_of_plan(config: ConfigKey, entry: str, plan: ReassignmentPlan) -> bool:
    partition, _, broker = entry.partition(":")
    if not (partition.isdecimal() and broker.isdecimal()):
        return False
    listed = plan.by_partition.get(TopicPartition(config.name, int(partition)))
    return listed is not None and int(broker) in (*listed.undo, *listed.replicas)
