"""The jobs: from the snapshots of a run to the rows of each table. A table is a line in JOBS."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rackspan.pipeline.frames import drift, durability, findings, loads, outage
from rackspan.pipeline.frames.bits import durability as durability_bits
from rackspan.pipeline.frames.bits import outage as outage_bits
from rackspan.pipeline.frames.bits.broker_bits import BrokerBits, broker_bits
from rackspan.pipeline.frames.inputs import Inputs
from rackspan.pipeline.frames.registrations import Registrations
from rackspan.pipeline.frames.requirements import partitions_with_requirements, topic_requirements
from rackspan.pipeline.landing.markers import StoredSnapshot

ROWS_PER_TASK: Final = 500_000
"""Some 5 MB in a file of partition_durability, and a second of work."""

UNMOVED_DAYS_MAX: Final = 2


@dataclass(frozen=True)
class JobInputs:
    """The input of a job: the snapshots it judges, and the members and the policy of each cluster.

    `compared` reads the snapshots that the judged ones are compared with as well. `shared` has the partitions of all snapshots of
    the run with their requirements, where all tables use one frame of them.
    """

    inputs: Inputs
    compared: Inputs
    registrations: Registrations
    shared: DataFrame | None = None

    @cached_property
    def bits(self) -> BrokerBits | None:
        """Brokers and racks as bits, or None where the run has to use Arrow batches."""
        return broker_bits(self.registrations, self.inputs.longest_list)

    @cached_property
    def partitions(self) -> DataFrame:
        """Each partition with its topic's requirements. Grain: snapshot, topic, partition."""
        return self._partitions_of(self.inputs)

    @cached_property
    def compared_partitions(self) -> DataFrame:
        """The same of every snapshot that is compared. Grain: snapshot, topic, partition."""
        return self._partitions_of(self.compared)

    def _partitions_of(self, inputs: Inputs) -> DataFrame:
        if self.shared is None:
            return with_requirements(inputs, self.registrations)
        if len(inputs.read) == len(inputs.stored):
            return self.shared
        return self.shared.join(F.broadcast(inputs.snapshots.select("snapshot")), "snapshot", "left_semi")


def with_requirements(inputs: Inputs, known: Registrations) -> DataFrame:
    """Each partition with its topic's requirements. Grain: snapshot, topic, partition."""
    return partitions_with_requirements(inputs.partitions, topic_requirements(inputs.topics, known), inputs.topic_count)


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table's rows. Those of `frame` have its grain, with `snapshot` for cluster and time.

    `finished` computes the table's other columns from them, row by row, after sorting: rows that are moved and sorted
    should be small. `tasks` is the number of tasks that write the rows where they were read, so that none is moved; None
    where rows go to the task of their day first.
    """

    frame: DataFrame
    finished: Callable[[DataFrame], DataFrame] = lambda rows: rows
    tasks: int | None = None


Job: TypeAlias = Callable[[JobInputs], TableRows]


def partition_durability(job: JobInputs) -> TableRows:
    """Grain: snapshot, topic, partition."""
    bits, tasks = job.bits, writing_tasks([job.inputs.stored[number] for number in job.inputs.read])
    if bits is None:
        return TableRows(durability.durability(job.partitions, job.registrations), tasks=tasks)
    return TableRows(
        durability_bits.durability_bits(job.partitions, bits),
        lambda rows: durability_bits.with_names(rows, bits),
        tasks,
    )


def writing_tasks(judged: Sequence[StoredSnapshot]) -> int | None:
    """How many tasks write a row for each partition of some snapshots without moving any; None where days are too many.

    Each task has a file for each day, so of many days there would be many small ones.
    """
    if len({one.day for one in judged}) > UNMOVED_DAYS_MAX:
        return None
    return max(1, -(-sum(one.partitions for one in judged) // ROWS_PER_TASK))


def all_findings(job: JobInputs) -> TableRows:
    """Grain: snapshot, constraint, topic, partition, reason."""
    partial = loads.partial_figures(job.partitions, job.registrations)
    figures = loads.summed_figures(partial.unionByName(loads.no_figures(job.inputs.snapshots)))
    in_clusters = findings.whole_cluster_findings(figures, job.registrations)
    return TableRows(findings.partition_findings(job.partitions, job.registrations).unionByName(in_clusters))


def outage_impact(job: JobInputs) -> TableRows:
    """Grain: snapshot, lost_racks, topic."""
    spark, known, bits = job.inputs.spark, job.registrations, job.bits
    losses = outage.losses_of_snapshots(spark, outage.losses(spark, known), known, job.inputs.read)
    if bits is None:
        partial = outage.partial_harm(job.partitions, known)
    else:
        partial = outage_bits.partial_harm_bits(job.partitions, losses, bits)
    return TableRows(outage.impact(partial, losses))


def all_drift(job: JobInputs) -> TableRows:
    """Grain: snapshot, change, topic, partition, broker."""
    inputs, known = job.compared, job.registrations
    pairs = drift.pairs(inputs, known)
    partitions = drift.partitions_twice(job.compared_partitions, pairs)
    topics = drift.topics_twice(inputs.topics, topic_requirements(inputs.topics, known), pairs)
    gaps = drift.gaps(inputs)
    changes = (
        drift.registration_drift(inputs, known)
        .unionByName(drift.topic_drift(topics, partitions, gaps))
        .unionByName(drift.partition_drift(partitions, topics, pairs, known, gaps))
    )
    return TableRows(drift.compared_with(changes, pairs, inputs.snapshots))


JOBS: Final[Mapping[str, Job]] = {
    "partition_durability": partition_durability,
    "findings": all_findings,
    "outage_impact": outage_impact,
    "drift": all_drift,
}


def keyed(rows: DataFrame, snapshots: DataFrame) -> DataFrame:
    """The rows with the keys of their snapshots. Grain: as `rows`."""
    return rows.join(F.broadcast(snapshots), "snapshot")
