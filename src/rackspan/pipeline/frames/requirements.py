"""The minimums required of each partition: from its topic's configs first, then from its cluster's policy, as in rackspan.audit."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rackspan.audit.batch import Requirements, requirements
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, Topic, TopicName
from rackspan.pipeline.frames.registrations import Policies, Registrations

BatchFunction: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

REQUIREMENTS: Final = (
    "snapshot INT, topic STRING, internal BOOLEAN, min_insync_replicas BIGINT, min_insync_racks BIGINT, "
    "enforced BOOLEAN, survive BIGINT"
)

BROADCAST_TOPICS_MAX: Final = 500_000
"""Of all snapshots together: some 75 MB in every executor."""


def topic_requirements(topics: DataFrame, known: Registrations) -> DataFrame:
    """The minimums that each topic requires. Grain: snapshot, topic."""
    configured = topics.select(
        "snapshot",
        F.col("name").alias("topic"),
        F.coalesce("internal", F.lit(False)).alias("internal"),
        F.try_element_at("config", F.lit(MIN_INSYNC_REPLICAS)).alias("replicas"),
        F.try_element_at("config", F.lit(MIN_INSYNC_RACKS)).alias("racks"),
    )
    return configured.mapInArrow(_requirements_by_batch(known.policies), REQUIREMENTS)


def partitions_with_requirements(partitions: DataFrame, requirements: DataFrame, topic_count: int) -> DataFrame:
    """Each partition with its topic's requirements. Grain: snapshot, topic, partition."""
    # Spark does not know how few rows come from Python, and would move every partition instead.
    return partitions.join(
        F.broadcast(requirements) if topic_count <= BROADCAST_TOPICS_MAX else requirements, ["snapshot", "topic"]
    )


def _requirements_by_batch(policies: Policies) -> BatchFunction:
    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            required = _required(batch, policies)
            yield pa.record_batch(
                {
                    "snapshot": batch.column("snapshot"),
                    "topic": batch.column("topic"),
                    "internal": batch.column("internal"),
                    "min_insync_replicas": pa.array(required.min_insync_replicas),
                    "min_insync_racks": pa.array(required.min_insync_racks),
                    "enforced": pa.array(required.enforced),
                    "survive": pa.array(required.survive),
                }
            )

    return over


def _required(batch: pa.RecordBatch, policies: Policies) -> Requirements:
    """What is required of each row's topic, by the policy of its snapshot."""
    topics = [_topic(row) for row in batch.to_pylist()]
    if len(policies.distinct) == 1 or not topics:
        return requirements(topics, policies.distinct[0])
    place = policies.of_snapshot[batch.column("snapshot").to_numpy()]
    rows_of = {one: np.flatnonzero(place == one) for one in np.unique(place).tolist()}
    parts = [requirements([topics[row] for row in rows], policies.distinct[one]) for one, rows in rows_of.items()]
    in_order = np.argsort(np.concatenate(list(rows_of.values())))
    columns = {one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Requirements)}
    return Requirements(**{name: column[in_order] for name, column in columns.items()})


def _topic(row: dict[str, Any]) -> Topic:
    configs = {MIN_INSYNC_REPLICAS: row["replicas"], MIN_INSYNC_RACKS: row["racks"]}
    return Topic(TopicName(row["topic"]), config={key: value for key, value in configs.items() if value is not None})
