"""Who was registered in each snapshot: small, so it goes to every executor once, and equal clusters go as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from rackspan.audit import RackPolicy
from rackspan.audit.evidence import Registered
from rackspan.model import Broker, BrokerId, Controller
from rackspan.model.partitions import Int32s
from rackspan.pipeline.frames.inputs import Inputs


@dataclass(frozen=True, slots=True)
class Registrations:
    """The distinct registrations of a run. `of_snapshot` (S,) is the place of each snapshot's own in `distinct`."""

    distinct: Sequence[Registered]
    of_snapshot: Int32s

    def of(self, snapshot: int) -> Registered:
        return self.distinct[int(self.of_snapshot[snapshot])]


def registered(brokers: DataFrame, clusters: DataFrame) -> DataFrame:
    """Each distinct set of brokers and controllers, with the snapshots it was seen in. Grain: brokers, controllers."""
    listed = F.sort_array(F.collect_list(F.struct("id", "rack", "fenced")))
    by_snapshot = brokers.groupBy("snapshot").agg(listed.alias("brokers")).join(clusters, "snapshot")
    return by_snapshot.groupBy("brokers", "controllers").agg(F.collect_list("snapshot").alias("snapshots"))


def registrations(inputs: Inputs, policy: RackPolicy) -> Registrations:
    """Bring them to the driver. Errors: UsageError where the policy refuses a cluster."""
    rows = registered(inputs.brokers, inputs.clusters).collect()
    of_snapshot = np.full(len(inputs.stored), -1, dtype=np.int32)
    for place, row in enumerate(rows):
        of_snapshot[row["snapshots"]] = place
    distinct = tuple(_registered(row, policy) for row in rows)
    for one in distinct:
        # Counted here, once, so that a refusal is one line to the user and no task's failure.
        one.rack_map.sizes  # noqa: B018
    return Registrations(distinct, of_snapshot)


def _registered(row: Row, policy: RackPolicy) -> Registered:
    return Registered(
        brokers=tuple(Broker(BrokerId(one["id"]), one["rack"], bool(one["fenced"])) for one in row["brokers"]),
        controllers=tuple(_controller(one) for one in row["controllers"] or ()),
        policy=policy,
    )


def _controller(one: Any) -> Controller:
    return Controller(BrokerId(one["id"]), one["rack"], one["voter"] is not False)
