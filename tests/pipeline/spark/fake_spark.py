"""A Spark in this process, as far as the pipeline uses one: a session, and frames of Arrow tables that functions are mapped over.

tests/pipeline/spark/test_frames.py runs the same tests with it and with Spark.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle


class Frame:
    """A data frame: an Arrow table for each partition. `below` are those of before a coalesce."""

    def __init__(self, partitions: Sequence[pa.Table], below: Sequence[pa.Table] | None = None) -> None:
        self.partitions = partitions
        self._below = below

    def coalesce(self, count: int) -> "Frame":
        assert count == 1
        return Frame([pa.concat_tables(self.partitions)], self.partitions)

    def sortWithinPartitions(self, column: str) -> "Frame":  # noqa: N802 - Spark's name
        return Frame([rows.sort_by(column) for rows in self.partitions])

    def repartition(self, count: int) -> "Frame":
        """Rows of each partition are dealt out in turn, after a sort by their hash, from a random partition on.

        Spark's optimizer skips a coalesce directly below.
        """
        dealt: list[list[pa.Table]] = [[] for _ in range(count)]
        for rows in self.partitions if self._below is None else self._below:
            for number in reversed(range(len(rows))):
                dealt[(number + 1) % count].append(rows.slice(number, 1))
        return Frame([pa.concat_tables(part) if part else self.partitions[0].slice(0, 0) for part in dealt])

    def mapInArrow(  # noqa: N802 - Spark's name
        self, function: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]], schema: str
    ) -> "Frame":
        names = re.findall(r"(?:^|, )`?(\w+)`? [A-Z]", schema)
        sent = cloudpickle.loads(cloudpickle.dumps(function))  # type: ignore[no-untyped-call]
        mapped = []
        for rows in self.partitions:
            batches = list(sent(iter(rows.to_batches(max_chunksize=1))))
            assert all(batch.schema.names == names for batch in batches)
            if batches:
                mapped.append(pa.Table.from_batches(batches))
        return Frame(mapped)

    def collect(self) -> list[dict[str, Any]]:
        return [row for rows in self.partitions for row in rows.to_pylist()]


class FakeSession:
    """A local session whose frames are tables in memory."""

    master = "local[1]"
    applicationId = "in this process"  # noqa: N815 - Spark's name
    pythonExec = sys.executable  # noqa: N815 - Spark's name

    @property
    def sparkContext(self) -> "FakeSession":  # noqa: N802 - Spark's name
        return self

    def createDataFrame(self, rows: pa.Table) -> Frame:  # noqa: N802 - Spark's name
        half = len(rows) // 2
        return Frame([rows.slice(0, half), rows.slice(half)])
