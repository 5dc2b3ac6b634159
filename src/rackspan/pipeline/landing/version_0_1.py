"""Reads the snapshots of a warehouse of version 0.1, the format before Delta Lake.

    DIR/snapshots/cluster_id=…/day=…/taken_at=…/   one snapshot: four Parquet files, as `rackspan snapshot --out FOLDER` writes them
    DIR/tables/, DIR/staging/                      not read: a run makes the tables again from the snapshots

Values in names of folders are escaped as in Hive: %XX for a character that a path cannot have.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rackspan.errors import InvalidSnapshot, InvalidWarehouse
from rackspan.model.json_format import ReadSnapshot
from rackspan.sources import snapshot_file
from rackspan.sources.source import Source

_TIMESTAMP: Final = "%Y%m%dT%H%M%S.%fZ"
_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})")


def stored_snapshots(folder: Path) -> list[Source]:
    """A source for each snapshot, in order of time, so that few files of the new warehouse have rows of the same days.

    Errors: InvalidWarehouse where the folder is no warehouse of version 0.1; a damaged snapshot raises InvalidSnapshot
    when it is read.
    """
    snapshots = folder / "snapshots"
    if not folder.is_dir() or not snapshots.is_dir() or (folder / "tables" / "snapshots" / "_delta_log").is_dir():
        raise InvalidWarehouse(f"{folder}: not a warehouse of rackspan 0.1 (it has no folder snapshots); name one")
    found = sorted((taken_at.name, cluster.name, taken_at) for cluster, taken_at in _folders(snapshots))
    return [Source(str(path), _reader(path, _value("cluster_id", name))) for _, name, path in found]


def _folders(snapshots: Path) -> Iterator[tuple[Path, Path]]:
    """The folder of each cluster with the folder of each of its snapshots."""
    for cluster in snapshots.glob("cluster_id=*"):
        for taken_at in cluster.glob("day=*/taken_at=*"):
            yield cluster, taken_at


def _reader(folder: Path, cluster_id: str) -> Callable[[], ReadSnapshot]:
    """A function that reads one snapshot, and compares it with the names of its folders."""

    def read() -> ReadSnapshot:
        found = snapshot_file.read(folder)
        snapshot = found.snapshot
        if (snapshot.cluster_id, snapshot.taken_at) != (cluster_id, _time(_value("taken_at", folder.name))):
            raise InvalidSnapshot(
                f"{folder}: holds the snapshot of {snapshot.cluster_id} at {snapshot.taken_at}, so the folder was moved; "
                "move it back"
            )
        return found

    return read


def _value(key: str, name: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name.removeprefix(f"{key}="))


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _TIMESTAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
