"""A constraint on partitions: a name, a test of a whole batch, and the words for one partition that breaks it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.findings import Finding, Remedy, Severity, plan_of
from rackspan.model import Bools, Int64s

SEVERITIES: Final = (Severity.VIOLATION, Severity.WARNING)
"""The severity by what `warns` returns."""


@dataclass(frozen=True, slots=True)
class PartitionConstraint:
    """A rule that each partition meets or breaks.

    `broken` returns a mask of shape (P,); `warns` returns for some rows whether breaking it is a warning only. `reason` and
    `remedy` return the words for one broken row. They follow from the row, what is required of it, its topic's largest
    replication factor and the members, and from what `of_topic` returns for its topic's code.
    """

    name: str
    broken: Callable[[PartitionBatch], Bools]
    reason: Callable[[PartitionBatch, int], str]
    remedy: Callable[[PartitionBatch, int], Remedy]
    warns: Callable[[PartitionBatch, Int64s], Bools] = lambda _batch, rows: np.zeros(len(rows), dtype=np.bool_)
    of_topic: Callable[[PartitionBatch, int], Remedy] = lambda _batch, _topic: ""

    def findings(self, batch: PartitionBatch) -> Iterator[Finding]:
        """A finding for each partition that breaks the constraint, whatever else it breaks."""
        return (self.finding(batch, row) for row in np.flatnonzero(self.broken(batch)).tolist())

    def finding(self, batch: PartitionBatch, row: int) -> Finding:
        remedy = self.remedy(batch, row)
        return Finding(
            constraint=self.name,
            severity=SEVERITIES[int(self.warns(batch, np.array([row]))[0])],
            topic=batch.topic(row),
            partition=int(batch.rows.partition[row]),
            reason=self.reason(batch, row),
            remedy=str(remedy),
            plan=plan_of(remedy),
        )
