"""Constraints on whole topics: one replication factor for all partitions, and preferred leaders in the racks that `leader.racks` requires."""

from collections.abc import Iterator

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.constraints.remedies import move_topic
from rackspan.audit.constraints.wording import partitions_named
from rackspan.audit.findings import Finding, PlanCommand, Severity, plan_of
from rackspan.audit.leader_racks import leader_choices
from rackspan.model import shown
from rackspan.text import count_noun


def mixed_replication_factors(batch: PartitionBatch) -> Iterator[Finding]:
    """Topics whose partitions have several replication factors, by the targets of those being reassigned."""
    factors, topic = batch.replication_factor, batch.rows.topic
    least = np.full(len(batch.topics), np.iinfo(np.int64).max)
    np.minimum.at(least, topic, factors)
    mixed = np.isin(topic, np.flatnonzero(least < batch.topic_replication_factor)) & ~batch.required.left_alone
    rows_of: dict[int, list[int]] = {}
    for row in np.flatnonzero(mixed).tolist():
        rows_of.setdefault(int(topic[row]), []).append(row)
    for code, rows in rows_of.items():
        by_factor: dict[int, list[int]] = {}
        for row in rows:
            by_factor.setdefault(int(factors[row]), []).append(int(batch.rows.partition[row]))
        usual = max(by_factor, key=lambda factor: (len(by_factor[factor]), factor))
        planned = max(
            (factor for factor in by_factor if _as_safe(batch, rows, factor)),
            key=lambda factor: (len(by_factor[factor]), factor),
            default=max(by_factor),
        )
        remedy = move_topic(batch, rows, planned)
        yield Finding(
            constraint="mixed-replication-factors",
            severity=Severity.WARNING,
            topic=batch.topics[code],
            reason="; ".join(
                f"replication factor {factor}: "
                + (count_noun(len(held), "partition", ",") if factor == usual else partitions_named(held))
                for factor, held in sorted(by_factor.items(), key=lambda item: (item[0] != usual, item[0]))
            ),
            remedy=str(remedy),
            plan=plan_of(remedy),
        )


def _as_safe(batch: PartitionBatch, rows: list[int], factor: int) -> bool:
    """Whether no partition ends in fewer racks with so many replicas, or refuses acks=all after the loss of a rack: a plan leaves such as they are."""
    even, held = batch.members.even_counts(factor), batch.replication_factor[rows]
    left, left_after = held - batch.replica_rack_counts[rows].max(axis=1, initial=0), factor - max(even, default=0)
    required = batch.required.min_insync_replicas[rows]
    fewer = batch.replica_rack_count[rows] > sum(count > 0 for count in even)
    refuses = (left >= np.minimum(required, held)) & (left_after < np.minimum(required, factor))
    return not bool((fewer | refuses).any())


def leader_rack_findings(batch: PartitionBatch) -> Iterator[Finding]:
    """Topics with preferred leaders in other racks than required ones. The batch holds each of its topics completely."""
    rows, choices = leader_choices(batch)
    elsewhere = np.zeros(len(batch.rows), dtype=np.bool_)
    elsewhere[rows[~choices[:, :1].any(axis=1)]] = True
    for code in np.unique(batch.rows.topic[elsewhere]).tolist():
        topic, held = batch.topics[code], batch.rows_of(code)
        partitions = batch.rows.partition[held[elsewhere[held]]].tolist()
        racks = [shown(rack) for rack in batch.members.policy.topic_leader_racks[topic]]
        required = (
            f"rack {racks[0]}" if len(racks) == 1 else f"the first of racks {', '.join(racks)} that has a replica"
        )
        plan = PlanCommand(topic, leaders=True)
        yield Finding(
            constraint="leader-racks",
            severity=Severity.WARNING,
            topic=topic,
            reason=f"{count_noun(len(partitions), 'preferred leader')} not in {required}: {partitions_named(partitions)}",
            remedy=str(plan),
            plan=plan,
        )
