"""The minimums required of each partition: from its topic's configs first, then from the policy, as in rackspan.audit."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rackspan.audit import RackPolicy
from rackspan.audit.batch import requirements
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, Topic, TopicName

BatchFunction: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

REQUIREMENTS: Final = (
    "snapshot INT, topic STRING, internal BOOLEAN, min_insync_replicas BIGINT, min_insync_racks BIGINT, "
    "enforced BOOLEAN, survive BIGINT"
)

BROADCAST_TOPICS_MAX: Final = 500_000
"""Of all snapshots together: some 75 MB in every executor."""


def topic_requirements(topics: DataFrame, policy: RackPolicy) -> DataFrame:
    """The minimums that each topic requires. Grain: snapshot, topic."""
    configured = topics.select(
        "snapshot",
        F.col("name").alias("topic"),
        F.coalesce("internal", F.lit(False)).alias("internal"),
        F.try_element_at("config", F.lit(MIN_INSYNC_REPLICAS)).alias("replicas"),
        F.try_element_at("config", F.lit(MIN_INSYNC_RACKS)).alias("racks"),
    )
    return configured.mapInArrow(_requirements_by_batch(policy), REQUIREMENTS)


def partitions_with_requirements(partitions: DataFrame, requirements: DataFrame, topic_count: int) -> DataFrame:
    """Each partition with its topic's requirements. Grain: snapshot, topic, partition."""
    # Spark does not know how few rows come from Python, and would move every partition instead.
    return partitions.join(
        F.broadcast(requirements) if topic_count <= BROADCAST_TOPICS_MAX else requirements, ["snapshot", "topic"]
    )


def _requirements_by_batch(policy: RackPolicy) -> BatchFunction:
    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            required = requirements([_topic(row) for row in batch.to_pylist()], policy)
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


def _topic(row: dict[str, Any]) -> Topic:
    configs = {MIN_INSYNC_REPLICAS: row["replicas"], MIN_INSYNC_RACKS: row["racks"]}
    return Topic(TopicName(row["topic"]), config={key: value for key, value in configs.items() if value is not None})
