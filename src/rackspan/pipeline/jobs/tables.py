"""Which frames make which table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rackspan.audit import RackPolicy
from rackspan.pipeline.frames import asked, drift, durability, findings, loads, outage
from rackspan.pipeline.frames.bits import durability as durability_bits
from rackspan.pipeline.frames.bits import outage as outage_bits
from rackspan.pipeline.frames.bits.broker_bits import BrokerBits, broker_bits
from rackspan.pipeline.frames.inputs import Inputs, topic_count, widest_list
from rackspan.pipeline.frames.registrations import Registrations


@dataclass(frozen=True)
class Judged:
    """What every job is given: the snapshots, who was registered in each, and how they are judged."""

    inputs: Inputs
    registrations: Broadcast[Registrations]
    policy: RackPolicy

    @cached_property
    def bits(self) -> BrokerBits | None:
        """Racks as bits, or None where the run is left to Arrow batches."""
        return broker_bits(self.registrations.value, widest_list(self.inputs))

    @cached_property
    def partitions(self) -> DataFrame:
        """Each partition beside what is asked of it. Grain: snapshot, topic, partition."""
        return asked.asked_partitions(self.inputs.partitions, self.asked, topic_count(self.inputs))

    @cached_property
    def asked(self) -> DataFrame:
        """What each topic asks. Grain: snapshot, topic."""
        return asked.asked(self.inputs.topics, self.policy)


@dataclass(frozen=True, slots=True)
class Made:
    """A table's rows. Those of `frame` have its grain, `snapshot` for cluster and moment.

    `finished` makes the table's other columns from them, row by row, once they are in order: what is moved and sorted
    should be small.
    """

    frame: DataFrame
    finished: Callable[[DataFrame], DataFrame] = lambda rows: rows


Job: TypeAlias = Callable[[Judged], Made]


def partition_durability(judged: Judged) -> Made:
    """Grain: snapshot, topic, partition."""
    bits = judged.bits
    if bits is None:
        return Made(durability.durability(judged.partitions, judged.registrations))
    return Made(
        durability_bits.durability_bits(judged.partitions, bits), lambda rows: durability_bits.in_words(rows, bits)
    )


def all_findings(judged: Judged) -> Made:
    """Grain: snapshot, constraint, topic, partition, reason."""
    partial = loads.partial_figures(judged.partitions, judged.registrations)
    figures = loads.summed_figures(partial.unionByName(loads.no_figures(judged.inputs.snapshots)))
    in_clusters = findings.whole_cluster_findings(figures, judged.registrations)
    return Made(findings.partition_findings(judged.partitions, judged.registrations).unionByName(in_clusters))


def outage_impact(judged: Judged) -> Made:
    """Grain: snapshot, lost_racks, topic."""
    spark, known, bits = judged.inputs.spark, judged.registrations, judged.bits
    losses = outage.losses_of_snapshots(spark, outage.losses(spark, known.value), known.value)
    if bits is None:
        partial = outage.partial_harm(judged.partitions, known)
    else:
        partial = outage_bits.partial_harm_bits(judged.partitions, losses, bits)
    return Made(outage.impact(outage.summed_harm(partial), losses))


def all_drift(judged: Judged) -> Made:
    """Grain: snapshot, change, topic, partition, broker."""
    inputs, known = judged.inputs, judged.registrations
    pairs = drift.pairs(inputs, known.value)
    partitions = drift.partitions_twice(judged.partitions, pairs)
    topics = drift.topics_twice(inputs.topics, judged.asked, pairs)
    found = (
        drift.registration_drift(inputs, known.value)
        .unionByName(drift.topic_drift(topics, partitions))
        .unionByName(drift.partition_drift(partitions, topics, pairs, known))
    )
    return Made(drift.compared_with(found, pairs, inputs.snapshots))


JOBS: Final[Mapping[str, Job]] = {
    "partition_durability": partition_durability,
    "findings": all_findings,
    "outage_impact": outage_impact,
    "drift": all_drift,
}


def keyed(rows: DataFrame, snapshots: DataFrame) -> DataFrame:
    """The rows beside their cluster and moment, and the `unit` they belong to. Grain: as `rows`."""
    return rows.join(F.broadcast(snapshots.select("snapshot", "unit", "cluster_id", "taken_at")), "snapshot")
