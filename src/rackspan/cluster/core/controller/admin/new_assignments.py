"""Replicas of new partitions, from the cluster's placer (KIP-660): for created topics, added partitions, auto-creation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.controller.refusals import Refused
from rackspan.cluster.core.metadata import PartitionState
from rackspan.errors import InvalidReplicationFactor
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId
from rackspan.placement.cluster_placer import NEW_PARTITIONS_MAX
from rackspan.placement.usable_brokers import usable

if TYPE_CHECKING:
    from rackspan.placement.replica_counts import ReplicaCounts


def placed(
    context: ControllerContext, start_partition: int, partitions: int, replication_factor: int, automatic: bool
) -> tuple[tuple[BrokerId, ...], ...]:
    """The replicas of each new partition.

    Errors: Refused for more partitions than one request may create; ReplicaPlacementException; UsageError for a placer that
    does not exist; RackLocatorFailed.
    """
    if partitions > NEW_PARTITIONS_MAX:
        raise Refused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    registered = context.image.brokers.values()
    if any(not broker.fenced for broker in registered) and not any(broker.active for broker in registered):
        raise InvalidReplicationFactor("All brokers are currently fenced or in controlled shutdown.")
    brokers = usable(context.brokers_for_placement())
    placements = context.placer.place(
        start_partition, partitions, replication_factor, brokers, lambda: _load(context).configs, automatic=automatic
    )
    return tuple(row.replicas for row in placements)


def _load(context: ControllerContext) -> "ReplicaCounts":
    """Preferred leaders and replicas of each registered broker."""
    # Imported here, because it imports NumPy and few clusters have a placer that needs it.
    from rackspan.placement.replica_counts import counts_of

    context.broker_load.update(context.image.topics)
    return counts_of(sorted(context.image.brokers), context.broker_load.leaders, context.broker_load.replicas)


def first_state(context: ControllerContext, replicas: tuple[BrokerId, ...]) -> PartitionState | None:
    """The first state of a new partition: the replicas that may lead are in sync, the first of them leads. None if none may."""
    isr = tuple(broker for broker in replicas if context.rules.may_lead(context.image, broker))
    return PartitionState(replicas, isr, isr[0]) if isr else None


def assignment_complaint(context: ControllerContext, assignments: Sequence[tuple[BrokerId, ...]]) -> str | None:
    """Why a manual assignment is invalid; None if it is valid."""
    for replicas in assignments:
        if not replicas:
            return "The manual partition assignment includes an empty replica list."
        if len(set(replicas)) < len(replicas):
            twice = next(broker for broker in replicas if replicas.count(broker) > 1)
            return f"The manual partition assignment includes the broker {twice} more than once."
        unknown = [broker for broker in replicas if broker not in context.image.brokers]
        if unknown:
            return f"The manual partition assignment includes broker {unknown[0]}, but no such broker is registered."
        if len(replicas) != len(assignments[0]):
            return (
                f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is "
                f"not consistent with previous partitions, which have {len(assignments[0])} replica(s)."
            )
    return None
