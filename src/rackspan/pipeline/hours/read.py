"""Reads the readings of a task from its landing files, each with the whole snapshot that it was stored with. No log is read."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from rackspan.errors import InvalidSnapshot, InvalidWarehouse
from rackspan.pipeline.changes.difference import Contents, by_snapshot
from rackspan.pipeline.delta.table import read_files_at
from rackspan.pipeline.hours.work import HourTask
from rackspan.pipeline.landing.bases import GRAINS
from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.landing.readings import reading_of
from rackspan.pipeline.landing.rows import to_snapshot
from rackspan.pipeline.schemas import CONTENT, OF_READINGS, SNAPSHOTS, Table
from rackspan.pipeline.warehouse import named_warehouse
from rackspan.traffic import ClusterReading


class TaskReadings:
    """The readings of a task, made of rows one at a time."""

    def __init__(self, task: HourTask) -> None:
        self._task = task
        bases = {snapshot.snapshot_id: snapshot.base_id for snapshot in task.chain}
        ids = {snapshot.snapshot_id for each in task.of_readings for snapshot in each.snapshots}
        self._contents = {
            table.name: Contents(GRAINS[table.name], self._rows(table, bases), bases) for table in CONTENT
        }
        self._rows_of: Mapping[str, Mapping[str, pa.Table]] = {
            table.name: by_snapshot(self._rows(table, ids)) for table in (*OF_READINGS.values(), SNAPSHOTS)
        }

    def of(self, snapshots: Sequence[StoredSnapshot]) -> Iterator[ClusterReading]:
        """The readings of some snapshots, in order of time. Errors: InvalidWarehouse."""
        for stored in snapshots:
            identity = stored.snapshot_id
            tables = {name: contents.of(identity) for name, contents in self._contents.items()}
            marker = self._rows_of[SNAPSHOTS.name][identity].append_column("snapshot_id", pa.array([identity]))
            try:
                snapshot = to_snapshot({**tables, SNAPSHOTS.name: marker})
                yield reading_of(
                    snapshot,
                    stored.taken_at,
                    {
                        name: self._rows_of[name].get(identity, OF_READINGS[name].schema.empty_table())
                        for name in OF_READINGS
                    },
                )
            except (InvalidSnapshot, KeyError, ValueError) as error:
                raise InvalidWarehouse(
                    f"{self._task.root}: the reading of snapshot {identity} of {stored.cluster_id} is not whole: {error}"
                ) from None

    def _rows(self, table: Table, ids: Collection[str]) -> pa.Table:
        url = named_warehouse(self._task.root).table(table.name)
        schema = pa.schema([field for field in table.schema if field.name != "day"])
        return pa.Table.from_batches(read_files_at(url, self._task.files[table.name], schema, ids), schema)
