"""The JSON document of `place create` and `place extend`: that of `place plan`, and the load of the whole cluster."""

from typing import Any

from rackspan.model.partitions import Int64s
from rackspan.placement.new_partitions import Proposal
from rackspan.placement.replica_counts import least_maximum, no_replicas


def proposal_document(proposal: Proposal, applied: bool) -> dict[str, Any]:
    """`leaders` and `replicas` count the new partitions alone; under `cluster` they count all partitions. Excluded brokers are
    not counted.

    `bound` is the least possible maximum of replicas on one broker. `balanced` aims at
    the topic's, and at the cluster's with `level=cluster`.
    """
    rows = proposal.assignment.replicas
    alone = no_replicas(proposal.brokers)
    after = proposal.before.plus(proposal.assignment).on(proposal.brokers)
    fresh = alone.plus(proposal.assignment)
    partitions, factor = rows.shape
    bounds = [
        least_maximum(held, proposal.brokers, proposal.by_rack, partitions, factor) for held in (alone, proposal.before)
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
