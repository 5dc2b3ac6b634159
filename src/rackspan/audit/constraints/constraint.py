"""A constraint on partitions: a name, a test of a whole batch, and the words for one partition that breaks it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.findings import Finding, Remedy, Severity, plan_of
from rackspan.model import Bools


@dataclass(frozen=True, slots=True)
class PartitionConstraint:
    """A rule that each partition meets or breaks.

    `broken` returns a mask of shape (P,); `reason` and `remedy` return the words for one broken row. They follow from the row,
    what is required of it, its topic's largest replication factor and the members, and from what `of_topic` returns for its topic's code.
    """

    name: str
    broken: Callable[[PartitionBatch], Bools]
    reason: Callable[[PartitionBatch, int], str]
    remedy: Callable[[PartitionBatch, int], Remedy]
    severity: Callable[[PartitionBatch, int], Severity] = lambda _batch, _row: Severity.VIOLATION
    of_topic: Callable[[PartitionBatch, int], Remedy] = lambda _batch, _topic: ""

    def findings(self, batch: PartitionBatch) -> Iterator[Finding]:
        """A finding for each partition that breaks the constraint, whatever else it breaks."""
        return (self.finding(batch, row) for row in np.flatnonzero(self.broken(batch)).tolist())

    def finding(self, batch: PartitionBatch, row: int) -> Finding:
        remedy = self.remedy(batch, row)
        return Finding(
            constraint=self.name,
            severity=self.severity(batch, row),
            topic=batch.topic(row),
            partition=int(batch.rows.partition[row]),
            reason=self.reason(batch, row),
            remedy=str(remedy),
            plan=plan_of(remedy),
        )
