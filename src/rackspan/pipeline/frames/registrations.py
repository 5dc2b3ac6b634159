"""The brokers and controllers of each snapshot, broadcast to every executor once; equal ones are stored once."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from rackspan.audit import RackPolicy
from rackspan.audit.batch import ClusterMembers
from rackspan.model.partitions import Int32s
from rackspan.pipeline.frames.inputs import Inputs
from rackspan.sources.snapshot_folder import read_registration


@dataclass(frozen=True, slots=True)
class Registrations:
    """The distinct members of a run's clusters. `of_snapshot` (S,): the index in `distinct` for each snapshot."""

    distinct: Sequence[ClusterMembers]
    of_snapshot: Int32s

    def of(self, snapshot: int) -> ClusterMembers:
        return self.distinct[int(self.of_snapshot[snapshot])]


def registrations(inputs: Inputs, policy: RackPolicy) -> Registrations:
    """Read the registrations on the driver: files of a few rows each, which take Spark ten times as long.

    Errors: InvalidSnapshot; UsageError where the policy refuses a cluster.
    """
    with ThreadPoolExecutor() as readers:
        by_snapshot = list(readers.map(lambda one: read_registration(one.folder), inputs.stored))
    indexes = {registration: index for index, registration in enumerate(dict.fromkeys(by_snapshot))}
    distinct = tuple(ClusterMembers(brokers, controllers, policy) for brokers, controllers in indexes)
    return Registrations(distinct, np.array([indexes[one] for one in by_snapshot], dtype=np.int32))
