"""The state of each partition in Spark's own columns: the result of frames/durability.py without Python workers.

In two steps, so that the rows that are moved and sorted are small: numbers first, names after sorting.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rackspan.audit.durability import ONE_RACK, STATES
from rackspan.model import NO_BROKER, UNKNOWN_SIZE
from rackspan.pipeline.frames.bits.broker_bits import BrokerBits, any_of, how_many, number


def durability_bits(partitions_with_requirements: DataFrame, bits: BrokerBits) -> DataFrame:
    """The state of each partition as its index in STATES, racks as bits. Grain: snapshot, topic, partition."""
    counted = partitions_with_requirements.select(
        "snapshot",
        "topic",
        "partition",
        "internal",
        "leader",
        *_replicas(bits),
        F.size("isr").alias("isr_size"),
        any_of(bits.racks("isr")).alias("isr_bits"),
        F.least("min_insync_replicas", F.size("replicas")).alias("held_to"),
        F.col("min_insync_replicas").cast("int"),
        F.col("min_insync_racks").cast("int"),
        F.nullif(F.col("size_bytes"), F.lit(UNKNOWN_SIZE)).alias("size_bytes"),
    )
    return counted.withColumn("state", _state(bits)).drop("held_to")


def with_names(rows: DataFrame, bits: BrokerBits) -> DataFrame:
    """The same rows with racks and states by name. Grain and order: unchanged."""
    return rows.withColumns(
        {
            "replica_racks": bits.names(F.col("replica_bits")),
            "isr_racks": bits.names(F.col("isr_bits")),
            "replica_rack_count": F.bit_count("replica_bits"),
            "isr_rack_count": F.bit_count("isr_bits"),
            "state": F.get(F.array(*map(F.lit, STATES)), F.col("state")),
        }
    )


def _replicas(bits: BrokerBits) -> list[Column]:
    """The number and the racks of the replicas that are not being removed."""
    staying = [
        one.isNotNull() & ~F.coalesce(F.array_contains("removing_replicas", one), F.lit(False))
        for one in bits.entries("replicas")
    ]
    racks = [
        F.when(stays, rack).otherwise(number(0)) for stays, rack in zip(staying, bits.racks("replicas"), strict=True)
    ]
    return [how_many(staying).alias("replication_factor"), any_of(racks).alias("replica_bits")]


def _state(bits: BrokerBits) -> Column:
    """As rackspan.audit.durability.states, worst first."""
    racks = F.bit_count("isr_bits")
    holds = {
        "offline": F.col("leader") == NO_BROKER,
        "under-min-isr": F.col("isr_size") < F.col("held_to"),
        "under-min-racks": (F.col("min_insync_racks") > 1) & (racks < F.col("min_insync_racks")),
        ONE_RACK: (racks <= 1) & bits.several,
    }
    places = [F.when(holds[word], F.lit(place).cast("int")) for place, word in enumerate(STATES) if word in holds]
    return F.coalesce(*places, F.lit(len(STATES) - 1).cast("int"))
