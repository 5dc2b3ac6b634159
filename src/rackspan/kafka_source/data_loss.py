"""Data loss: records that a query is to read and that no broker has. `failOnDataLoss` says whether that is an error or a line.

A broker that has not yet applied the cluster's metadata, or that has just ceased to lead a partition, reports what was true
before. So a loss is believed only when it is reported `ATTEMPTS` times, `PAUSE_SECONDS` apart, as in Spark's connector.
"""

import sys
import time
from collections.abc import Callable
from typing import Final

from rackspan.errors import ClusterRequestFailed
from rackspan.kafka_source.cluster import SourceCluster
from rackspan.kafka_source.options import LATEST_OFFSET
from rackspan.kafka_source.ranges import Offsets

ATTEMPTS: Final = 3
PAUSE_SECONDS: Final = 1.0


def report_loss(what: str, remedy: str, *, fail: bool) -> None:
    """Errors: ClusterRequestFailed, with `fail`."""
    if fail:
        raise ClusterRequestFailed(f"{what}; {remedy}")
    print(f"rackspan-kafka: {what}", file=sys.stderr, flush=True)


def ends_below(cluster: SourceCluster, offsets: Offsets, sleep: Callable[[float], None] = time.sleep) -> Offsets:
    """Where the log ends, of the partitions whose offset is beyond that. Records of open transactions are in the log."""
    below: Offsets = offsets
    for attempt in range(ATTEMPTS):
        if not below:
            break
        if attempt:
            sleep(PAUSE_SECONDS)
        ends = cluster.offsets(dict.fromkeys(below, LATEST_OFFSET), committed=False)
        below = {partition: end for partition, end in ends.items() if end < offsets[partition]}
    return below
