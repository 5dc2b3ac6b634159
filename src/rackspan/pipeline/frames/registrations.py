"""Who was registered in each snapshot: small, so it goes to every executor once, and equal clusters go as one."""

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
    """The distinct registrations of a run. `of_snapshot` (S,) is the place of each snapshot's own in `distinct`."""

    distinct: Sequence[ClusterMembers]
    of_snapshot: Int32s

    def of(self, snapshot: int) -> ClusterMembers:
        return self.distinct[int(self.of_snapshot[snapshot])]


def registrations(inputs: Inputs, policy: RackPolicy) -> Registrations:
    """Read them here, on the driver: files of a few rows each, which cost Spark ten times as long.

    Errors: InvalidSnapshot; UsageError where the policy refuses a cluster.
    """
    with ThreadPoolExecutor() as readers:
        seen = list(readers.map(lambda one: read_registration(one.folder), inputs.stored))
    places = {registration: place for place, registration in enumerate(dict.fromkeys(seen))}
    distinct = tuple(ClusterMembers(brokers, controllers, policy) for brokers, controllers in places)
    return Registrations(distinct, np.array([places[one] for one in seen], dtype=np.int32))
