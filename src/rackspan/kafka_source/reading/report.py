"""What a task read, from where, and why from there: one line to the task's log, and a row for the metrics table.

Rows are written as JSON lines, one file a task attempt and a folder a batch, so that `spark.read.json(metricsPath)` is the table,
with a column `batch`; a local folder or any URL that Arrow opens. Spark gives a Python source no other way to report: its progress
has no metrics of a source's own, and the driver receives nothing from a task that reads.
"""

import json
import os
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from pyarrow import fs

from rackspan.kafka_source.executor_rack import ExecutorRack
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading.progress import ReplicaChoice

_MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Batch:
    """The tasks that Spark plans together: of a batch query, or of one micro-batch."""

    name: str
    tasks: int
    driver_reports: bool = False
    """Whether the driver logs the line about the batch: of a micro-batch it is called at the end, of a batch query never again."""


@dataclass(slots=True)
class TaskReport:
    """Bytes are those of record batches as brokers store them: compressed if they are."""

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
        """Bytes from brokers of another rack, or from all if a rack is unknown."""
        return sum(
            size
            for (_, rack), size in self.bytes_by_broker.items()
            if self.rack.rack is None or rack is None or rack != self.rack.rack
        )

    def rows_for_table(self) -> list[dict[str, object]]:
        """A row a broker that sent bytes, or one without a broker if none did."""
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


def publish(report: TaskReport, metrics_path: str | None, batch: Batch) -> None:
    """Log what crossed racks, and write the rows. A metrics path that cannot be written fails the task.

    The last task of a batch query logs a line about all of it; two that end together may both do so.
    """
    if report.cross_rack_bytes:
        print(report.line(), file=sys.stderr, flush=True)
    if metrics_path is None:
        return
    files, folder = _folder(metrics_path, batch)
    files.create_dir(folder, recursive=True)
    lines = "".join(json.dumps(row) + "\n" for row in report.rows_for_table())
    wanted = report.wanted
    # Spark reads no file whose name begins as those of topics such as _schemas.
    name = f"range-{wanted.partition}-{wanted.start}.{uuid.uuid4()}.json"
    with files.open_output_stream(f"{folder}/{name}") as stream:
        stream.write(lines.encode())
    if not batch.driver_reports and (line := finished_line(metrics_path, batch)):
        print(line, file=sys.stderr, flush=True)


def finished_line(metrics_path: str, batch: Batch) -> str | None:
    """The line about a batch from the rows of its tasks; None if a range has none yet."""
    files, folder = _folder(metrics_path, batch)
    found = files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    written = [entry.path for entry in found if entry.path.endswith(".json")]
    # A range that was read twice, by a task that Spark ran again, is one range.
    if len({path.rsplit(".", 2)[0] for path in written}) != batch.tasks:
        return None
    return batch_line(
        batch, [json.loads(line) for path in written for line in files.open_input_stream(path).read().splitlines()]
    )


def _folder(metrics_path: str, batch: Batch) -> tuple[fs.FileSystem, str]:
    files, root = (
        fs.FileSystem.from_uri(metrics_path)
        if "://" in metrics_path
        else (fs.LocalFileSystem(), os.path.abspath(metrics_path))
    )
    return files, str(PurePosixPath(root) / f"batch={batch.name}")


def batch_line(batch: Batch, rows: Iterable[Mapping[str, Any]]) -> str:
    """What all tasks of a batch read, by the rack it came from and the rack it went to."""
    size: Counter[tuple[str, str]] = Counter()
    reasons: dict[tuple[str, str], set[str]] = {}
    records: dict[str, int] = {}
    for row in rows:
        way = (row["broker_rack"] or "unknown", row["executor_rack"] or "unknown")
        size[way] += row["bytes"]
        reasons.setdefault(way, set()).add(row["choice"])
        records[f"{row['topic']}-{row['partition']}-{row['start_offset']}"] = row["records"]
    crossing = {way: count for way, count in sorted(size.items()) if count and (way[0] != way[1] or "unknown" in way)}
    ways = ", ".join(
        f"{origin} to {target} {count / _MB:.1f} MB: {', '.join(sorted(reasons[origin, target]))}"
        for (origin, target), count in crossing.items()
    )
    return (
        f"rackspan-kafka: batch {batch.name}: {sum(records.values()):,} records in {batch.tasks} ranges, "
        f"{size.total() / _MB:.1f} MB, {sum(crossing.values()) / _MB:.1f} MB of it across racks{f' ({ways})' if ways else ''}"
    )
