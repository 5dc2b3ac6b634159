"""Constraints on whole topics: one replication factor for all partitions."""

from collections.abc import Iterator

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.findings import Finding, Severity
from rackspan.text import count_noun

PARTITIONS_NAMED = 10


def mixed_replication_factors(batch: PartitionBatch) -> Iterator[Finding]:
    """Topics whose partitions have several replication factors, by the targets of those being reassigned."""
    factors, topic = batch.replication_factor, batch.rows.topic
    least = np.full(len(batch.topics), np.iinfo(np.int64).max)
    np.minimum.at(least, topic, factors)
    mixed = np.isin(topic, np.flatnonzero(least < batch.topic_replication_factor))
    rows_of: dict[int, list[int]] = {}
    for row in np.flatnonzero(mixed).tolist():
        rows_of.setdefault(int(topic[row]), []).append(row)
    for code, rows in rows_of.items():
        by_factor: dict[int, list[int]] = {}
        for row in rows:
            by_factor.setdefault(int(factors[row]), []).append(int(batch.rows.partition[row]))
        usual = max(by_factor, key=lambda factor: (len(by_factor[factor]), factor))
        wait = "wait for the reassignment to end; then " if bool(batch.reassigning[rows].any()) else ""
        yield Finding(
            constraint="mixed-replication-factors",
            severity=Severity.WARNING,
            topic=batch.topics[code],
            partition=None,
            reason="; ".join(
                f"replication factor {factor}: "
                + (count_noun(len(held), "partition", ",") if factor == usual else _named(held))
                for factor, held in sorted(by_factor.items(), key=lambda item: (item[0] != usual, item[0]))
            ),
            remedy=f"{wait}rackspan reassign plan --topic {batch.topics[code]} --replication-factor {usual}",
        )


def _named(partitions: list[int]) -> str:
    more = len(partitions) - PARTITIONS_NAMED
    shown = ",".join(map(str, sorted(partitions)[:PARTITIONS_NAMED]))
    return (
        f"partition {shown}"
        if len(partitions) == 1
        else f"partitions {shown}" + (f" and {more:,} more" if more > 0 else "")
    )
