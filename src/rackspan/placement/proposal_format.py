"""What `place create` and `extend` answer with: the document of `place plan`, and what becomes of the whole cluster."""

from typing import Any

from rackspan.model.partitions import Int64s
from rackspan.placement.new_partitions import Proposal
from rackspan.placement.replica_counts import least_fullest, nothing_carried


def proposal_document(proposal: Proposal, applied: bool) -> dict[str, Any]:
    """`leaders` and `replicas` of the new partitions alone, per broker; under `cluster`, of all that brokers then carry.

    `bound` is the least that the fullest broker can hold. A placer that knows the load aims at the cluster's.
    """
    rows = proposal.assignment.replicas
    alone = nothing_carried(proposal.brokers)
    after, fresh = proposal.before.plus(proposal.assignment), alone.plus(proposal.assignment)
    partitions, factor = rows.shape
    bounds = [
        least_fullest(held, proposal.brokers, proposal.by_rack, partitions, factor) for held in (alone, proposal.before)
    ]
    return {
        "topic": proposal.topic,
        "applied": applied,
        "assignments": {str(index): row for index, row in enumerate(rows.tolist(), proposal.start_partition)},
        "leaders": _range(fresh.leaders),
        "replicas": {**_range(fresh.replicas), "bound": bounds[0]},
        "cluster": {
            "leaders": _range(after.leaders),
            "replicas": {**_range(after.replicas), "bound": bounds[1]},
        },
    }


def _range(counts: Int64s) -> dict[str, int]:
    return {"min": int(counts.min()), "max": int(counts.max())}
