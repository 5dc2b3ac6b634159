"""The metrics of min.insync.racks, computed when they are asked for (names and meaning: acks/metrics.py)."""

from collections.abc import Iterable

from rackspan.cluster.core.broker.counters import Counters
from rackspan.cluster.core.broker.leader import Leader


def partition_metrics(leader: Leader) -> dict[str, int]:
    racks = leader.terms.racks.count(leader.isr.committed)
    asked = leader.terms.asked.min_insync_racks
    return {
        "rackspan_partition_under_min_rack_isr": int(racks < asked),
        "rackspan_partition_at_min_rack_isr": int(racks == asked),
        "rackspan_partition_isr_racks": racks,
    }


def broker_metrics(leaders: Iterable[Leader], counters: Counters) -> dict[str, int]:
    each = [partition_metrics(leader) for leader in leaders]
    return {
        "rackspan_under_min_rack_isr_partitions": sum(one["rackspan_partition_under_min_rack_isr"] for one in each),
        "rackspan_at_min_rack_isr_partitions": sum(one["rackspan_partition_at_min_rack_isr"] for one in each),
        "rackspan_rack_check_failures_total": counters.rack_check_failures,
    }
