"""What is asked of each partition: its topic's own configs first, then the policy, as rackspan.audit has it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rackspan.audit import RackPolicy
from rackspan.audit.batch import requirements
from rackspan.model import Topic, TopicName
from rackspan.model.topic import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS

OverBatches: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

ASKED: Final = (
    "snapshot INT, topic STRING, internal BOOLEAN, min_insync_replicas BIGINT, min_insync_racks BIGINT, "
    "enforced BOOLEAN"
)

BROADCAST_TOPICS_MAX: Final = 500_000
"""Of all snapshots together: some 75 MB in every executor."""


def asked(topics: DataFrame, policy: RackPolicy) -> DataFrame:
    """What each topic asks. Grain: snapshot, topic."""
    configured = topics.select(
        "snapshot",
        F.col("name").alias("topic"),
        F.coalesce("internal", F.lit(False)).alias("internal"),
        F.try_element_at("config", F.lit(MIN_INSYNC_REPLICAS)).alias("replicas"),
        F.try_element_at("config", F.lit(MIN_INSYNC_RACKS)).alias("racks"),
    )
    return configured.mapInArrow(_demands_by_batch(policy), ASKED)


def asked_partitions(partitions: DataFrame, asked: DataFrame, topics: int) -> DataFrame:
    """Each partition beside what is asked of it, by so many topics. Grain: snapshot, topic, partition."""
    # Spark cannot guess how few rows come out of Python, and would move every partition instead.
    return partitions.join(F.broadcast(asked) if topics <= BROADCAST_TOPICS_MAX else asked, ["snapshot", "topic"])


def _demands_by_batch(policy: RackPolicy) -> OverBatches:
    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            asking = requirements([_topic(row) for row in batch.to_pylist()], policy)
            yield pa.record_batch(
                {
                    "snapshot": batch.column("snapshot"),
                    "topic": batch.column("topic"),
                    "internal": batch.column("internal"),
                    "min_insync_replicas": pa.array(asking.min_insync_replicas),
                    "min_insync_racks": pa.array(asking.min_insync_racks),
                    "enforced": pa.array(asking.enforced),
                }
            )

    return over


def _topic(row: dict[str, Any]) -> Topic:
    said = {MIN_INSYNC_REPLICAS: row["replicas"], MIN_INSYNC_RACKS: row["racks"]}
    return Topic(TopicName(row["topic"]), config={key: value for key, value in said.items() if value is not None})
