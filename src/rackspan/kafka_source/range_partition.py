"""What Spark hands to a task: one range of offsets, pickled, and how the task reads it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading.task import TaskOptions, read_range

if TYPE_CHECKING:
    import pyarrow as pa


class RangePartition(InputPartition):
    """The range that one task reads."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(wanted)
        self.wanted = wanted


def read_partition(partition: InputPartition, options: TaskOptions) -> Iterator["pa.RecordBatch"]:
    """Spark passes a partition without a value where a query has none."""
    return read_range(partition.wanted, options) if isinstance(partition, RangePartition) else iter(())
