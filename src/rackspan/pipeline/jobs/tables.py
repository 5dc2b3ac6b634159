"""Which frames make which table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rackspan.audit import RackPolicy
from rackspan.pipeline.frames import asked, drift, durability, findings, loads, outage
from rackspan.pipeline.frames.inputs import Inputs
from rackspan.pipeline.frames.registrations import Registrations
from rackspan.pipeline.schemas import Table


@dataclass(frozen=True, slots=True)
class Judged:
    """What every job is given: the snapshots, who was registered in each, and how they are judged."""

    inputs: Inputs
    registrations: Broadcast[Registrations]
    policy: RackPolicy

    @property
    def partitions(self) -> DataFrame:
        """Each partition beside what is asked of it. Grain: snapshot, topic, partition."""
        return asked.asked_partitions(self.inputs.partitions, self.asked)

    @property
    def asked(self) -> DataFrame:
        """What each topic asks. Grain: snapshot, topic."""
        return asked.asked(self.inputs.topics, self.policy)


Job: TypeAlias = Callable[[Judged], DataFrame]


def partition_durability(judged: Judged) -> DataFrame:
    """Grain: snapshot, topic, partition."""
    return durability.durability(judged.partitions, judged.registrations)


def all_findings(judged: Judged) -> DataFrame:
    """Grain: snapshot, constraint, topic, partition, reason."""
    partial = loads.partial_figures(judged.partitions, judged.registrations)
    figures = loads.summed_figures(partial.unionByName(loads.no_figures(judged.inputs.snapshots)))
    in_clusters = findings.whole_cluster_findings(figures, judged.registrations)
    return findings.partition_findings(judged.partitions, judged.registrations).unionByName(in_clusters)


def outage_impact(judged: Judged) -> DataFrame:
    """Grain: snapshot, lost_racks, topic."""
    spark, known = judged.inputs.spark, judged.registrations
    losses = outage.losses_of_snapshots(spark, outage.losses(spark, known.value), known.value)
    harm = outage.summed_harm(outage.partial_harm(judged.partitions, known))
    in_topics = outage.topic_impact(harm, losses)
    return in_topics.unionByName(outage.cluster_impact(harm, losses), allowMissingColumns=True)


def all_drift(judged: Judged) -> DataFrame:
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
    return drift.compared_with(found, pairs, inputs.snapshots)


JOBS: Final[Mapping[str, Job]] = {
    "partition_durability": partition_durability,
    "findings": all_findings,
    "outage_impact": outage_impact,
    "drift": all_drift,
}


def keyed(rows: DataFrame, snapshots: DataFrame, table: Table) -> DataFrame:
    """The rows as the table has them, beside the `unit` they belong to. Grain: the table's."""
    moments = F.broadcast(snapshots.select("snapshot", "unit", "cluster_id", "taken_at"))
    versioned = rows.join(moments, "snapshot").withColumn("schema_version", F.lit(table.version))
    return versioned.select("unit", *table.schema.names)
