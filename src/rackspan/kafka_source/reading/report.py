"""What a task read, from where, and why from there: one line to the task's log, and a row for the metrics table.

Rows are written as JSON lines, one file a task attempt, so that `spark.read.json(metricsPath)` is the table; a local folder or
any URL that Arrow opens.
"""

import json
import sys
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from pyarrow import fs

from rackspan.kafka_source.executor_rack import ExecutorRack
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading.progress import ReplicaChoice

_MB: Final = 1_000_000


@dataclass(slots=True)
class TaskReport:
    """Bytes are those of record batches as brokers store them: compressed where they are."""

    wanted: OffsetRange
    rack: ExecutorRack
    bytes_by_broker: Counter[tuple[int, str | None]] = field(default_factory=Counter)
    """By broker and its rack."""
    rows: int = 0
    choices: list[ReplicaChoice] = field(default_factory=list)
    """Why a replica was chosen, in the order in which that changed."""
    skipped_offsets: int = 0

    def chose(self, choice: ReplicaChoice) -> None:
        if not self.choices or self.choices[-1] != choice:
            self.choices.append(choice)

    @property
    def cross_rack_bytes(self) -> int:
        """Bytes from brokers of another rack, or from all where a rack is unknown."""
        return sum(
            size
            for (_, rack), size in self.bytes_by_broker.items()
            if self.rack.rack is None or rack is None or rack != self.rack.rack
        )

    def rows_for_table(self) -> list[dict[str, object]]:
        """A row a broker that sent bytes, or one without a broker where none did."""
        common: dict[str, object] = {
            "topic": self.wanted.partition.topic,
            "partition": self.wanted.partition.partition,
            "start_offset": self.wanted.start,
            "end_offset": self.wanted.end,
            "executor_rack": self.rack.rack,
            "rack_origin": self.rack.origin,
            "choice": ",".join(self.choices),
            "records": self.rows,
            "skipped_offsets": self.skipped_offsets,
        }
        sent = sorted(self.bytes_by_broker.items(), key=str) or [((-1, None), 0)]
        return [{**common, "broker": broker, "broker_rack": rack, "bytes": size} for (broker, rack), size in sent]

    def line(self) -> str:
        sources = ", ".join(
            f"{size / _MB:.1f} MB from broker {broker} (rack {rack or 'unknown'})"
            for (broker, rack), size in sorted(self.bytes_by_broker.items(), key=str)
        )
        here = (
            f"this executor's rack is {self.rack.rack}"
            if self.rack.rack
            else f"this executor has no rack: {self.rack.origin}"
        )
        return (
            f"rackspan-kafka: {self.wanted.partition} offsets {self.wanted.start} to {self.wanted.end}: "
            f"{sources or 'no bytes'}; {here}; {', '.join(self.choices) or 'nothing fetched'}"
        )


def publish(report: TaskReport, metrics_path: str | None) -> None:
    """Log what crossed racks, and write the rows. A metrics path that cannot be written fails the task."""
    if report.cross_rack_bytes:
        print(report.line(), file=sys.stderr, flush=True)
    if metrics_path is None:
        return
    files, folder = fs.FileSystem.from_uri(metrics_path if "://" in metrics_path else f"file://{metrics_path}")
    files.create_dir(folder, recursive=True)
    lines = "".join(json.dumps(row) + "\n" for row in report.rows_for_table())
    with files.open_output_stream(str(PurePosixPath(folder) / f"{uuid.uuid4()}.json")) as stream:
        stream.write(lines.encode())
