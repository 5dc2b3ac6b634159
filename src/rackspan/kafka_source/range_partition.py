"""What Spark hands to a task: one range of offsets, pickled, and how the task reads it."""

import time
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading.report import Batch
from rackspan.kafka_source.reading.task import TaskOptions, read_range

if TYPE_CHECKING:
    import pyarrow as pa


class RangePartition(InputPartition):
    """The range that one task reads, and the batch that it belongs to."""

    def __init__(self, wanted: OffsetRange, batch: Batch) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.batch = batch


def planned(parts: Sequence[OffsetRange], *, driver_reports: bool = False) -> list[RangePartition]:
    """A task for each range, all of one batch, whose name begins with the time in UTC."""
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:8]}"
    return [RangePartition(part, Batch(name, len(parts), driver_reports)) for part in parts]


def read_partition(partition: InputPartition, options: TaskOptions) -> Iterator["pa.RecordBatch"]:
    """Spark passes a partition without a value if a query has none."""
    return read_range(partition.wanted, options, partition.batch) if isinstance(partition, RangePartition) else iter(())
