"""The manifest of a warehouse: a JSON file that names the data files in force. It is replaced atomically.

A reader that follows it sees one finished run, never a part of one. Files that it names as `retired` were in force one run
earlier and are kept for readers that still use them; other data files of ours below `tables` are garbage.
"""

import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from rackspan import json_text
from rackspan.audit.policy import RackPolicy, Survive
from rackspan.disk import replace_file
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import paths
from rackspan.pipeline.warehouse import Day, Warehouse

VERSION: Final = 2
READABLE: Final = (1, 2)
"""Version 1 had no `previous`. It can be read, and the next run that makes anything writes version 2."""
FILE_NAME: Final = "manifest.json"

_DATA_FILE: Final = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]{8}-[0-9]{5}\.parquet")
_STAGED_MANIFEST: Final = re.compile(r"\.manifest\.json\.[0-9]+\.partial")


@dataclass(frozen=True, slots=True)
class TableDay:
    """One day of one table: the fingerprint of its inputs, and its files.

    `inputs` is the fingerprint of snapshots, policy and rules; `files` are relative to `DIR/tables`, and empty where
    the day has no rows. `previous` is the snapshot before the day that its first one was compared with, if any
    (incremental.previous_snapshot).
    """

    inputs: str
    schema_version: int
    rows: int
    files: tuple[str, ...]
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The tables in force. `run` names the run that wrote it; a warehouse without a run has none.

    `policy` is how that run judged, as a document; none where an earlier rackspan wrote the manifest.
    """

    run: str | None = None
    tables: Mapping[str, Mapping[Day, TableDay]] = field(default_factory=dict)
    retired: tuple[str, ...] = ()
    policy: Mapping[str, Any] | None = None

    def day(self, table: str, day: Day) -> TableDay | None:
        return self.tables.get(table, {}).get(day)

    def files(self) -> set[str]:
        """Every file in force, relative to `DIR/tables`."""
        return {file for days in self.tables.values() for one in days.values() for file in one.files}

    def replaced(self, run: str, made: Mapping[str, Mapping[Day, TableDay]], policy: RackPolicy) -> "Manifest":
        """The days in force after a run. Those it did not make stay as they are."""
        tables = {name: {**self.tables.get(name, {}), **made.get(name, {})} for name in sorted({*self.tables, *made})}
        return Manifest(run, tables, policy=policy_document(policy))

    def after(self, before: "Manifest") -> "Manifest":
        """The same manifest; files that only `before` has in force are retired."""
        return replace(self, retired=tuple(sorted(before.files() - self.files())))


def read_manifest(warehouse: Warehouse) -> Manifest:
    """The manifest in force, an empty one before the first run. Errors: InvalidWarehouse."""
    file = warehouse.tables / FILE_NAME
    try:
        document = json_text.parse(file.read_bytes())
    except FileNotFoundError:
        return Manifest()
    except (OSError, ValueError):
        raise InvalidWarehouse(f"{file}: cannot be read as JSON; remove {file.parent} and run again") from None
    version = document.get("version") if isinstance(document, dict) else None
    if version not in READABLE or isinstance(version, bool):
        raise InvalidWarehouse(
            f"{file}: version is {version}, but this rackspan reads up to version {VERSION}; "
            f"use the rackspan that wrote it, or remove {file.parent} and run again"
        )
    try:
        return _from_document(document)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        raise InvalidWarehouse(f"{file}: not as rackspan writes it; remove {file.parent} and run again") from None


def write_manifest(warehouse: Warehouse, manifest: Manifest) -> None:
    """Put a manifest into force. It survives a power cut once this returns; until then the old one is in force."""
    file = warehouse.tables / FILE_NAME
    replace_file(file, json.dumps(_document(manifest), indent=1, ensure_ascii=False) + "\n")


def policy_document(policy: RackPolicy) -> dict[str, Any]:
    """A policy as JSON; two of them are equal exactly if the policies are."""
    return {
        "unracked": policy.unracked.value,
        "min_insync_racks": policy.min_insync_racks,
        "topic_min_insync_racks": dict(policy.topic_min_insync_racks),
        "controller_racks": {str(controller): rack for controller, rack in policy.controller_racks.items()},
        # Absent where there are none, as in documents of an earlier rackspan.
        **({"excluded_brokers": sorted(policy.excluded_brokers)} if policy.excluded_brokers else {}),
        # As above: absent where nothing but the default is required.
        **({} if policy.survive is Survive.RACK else {"survive": policy.survive.value}),
        **(
            {"topic_survive": {topic: str(one) for topic, one in policy.topic_survive.items()}}
            if policy.topic_survive
            else {}
        ),
    }


def policy_warnings(manifest: Manifest, policy: RackPolicy) -> list[str]:
    """A warning where the tables were made with another policy than this one, with the differences."""
    given = policy_document(policy)
    made = given if manifest.policy is None else manifest.policy
    differing = [name for name in {**given, **made} if made.get(name) != given.get(name)]
    if not differing:
        return []
    theirs, ours = (", ".join(f"{name} {one.get(name)}" for name in differing) for one in (made, given))
    return [f"the tables were made with {theirs}, the verdicts on the page with {ours}; say the same to run and report"]


def new_run(now: datetime) -> str:
    """A name for a run: unique, and sorted by time."""
    return f"{paths.timestamp_text(now)}-{secrets.token_hex(4)}"


def data_file(table: str, day: Day, run: str, number: int) -> str:
    """The path of a data file, relative to `DIR/tables`."""
    return (Path(table) / day.folder / f"{run}-{number:05}.parquet").as_posix()


def month_file(table: str, cluster_id: str, month: str, run: str) -> str:
    """The path of the file of a whole month (compaction.py), relative to `DIR/tables`."""
    folder = Path(table, paths.pair("cluster_id", cluster_id), paths.pair("month", month))
    return (folder / f"{run}-00000.parquet").as_posix()


def remove_garbage(warehouse: Warehouse, manifest: Manifest) -> int:
    """Remove data files that are neither in force nor retired, and return how many. Other files stay."""
    kept = manifest.files() | set(manifest.retired)
    garbage = [file for file in _files_of_ours(warehouse) if file.relative_to(warehouse.tables).as_posix() not in kept]
    for file in garbage:
        file.unlink(missing_ok=True)
    return len(garbage)


def _files_of_ours(warehouse: Warehouse) -> Iterable[Path]:
    return [
        Path(place, name)
        for place, _folders, names in os.walk(warehouse.tables)
        for name in names
        if _DATA_FILE.fullmatch(name) or _STAGED_MANIFEST.fullmatch(name)
    ]


def _document(manifest: Manifest) -> dict[str, Any]:
    return {
        "version": VERSION,
        "run": manifest.run,
        "policy": manifest.policy,
        "tables": {
            name: [_day_document(day, one) for day, one in sorted(days.items())]
            for name, days in manifest.tables.items()
        },
        "retired": list(manifest.retired),
    }


def _day_document(day: Day, one: TableDay) -> dict[str, Any]:
    return {
        "cluster_id": day.cluster_id,
        "day": day.day,
        "schema_version": one.schema_version,
        "inputs": one.inputs,
        "rows": one.rows,
        "files": list(one.files),
        "previous": one.previous,
    }


def _from_document(document: Mapping[str, Any]) -> Manifest:
    return Manifest(
        run=document["run"],
        tables={
            name: {Day(one["cluster_id"], one["day"]): _table_day(one) for one in days}
            for name, days in document["tables"].items()
        },
        retired=tuple(document["retired"]),
        policy=None if (policy := document.get("policy")) is None else dict(policy),
    )


def _table_day(one: Mapping[str, Any]) -> TableDay:
    files = tuple(map(str, one["files"]))
    return TableDay(one["inputs"], int(one["schema_version"]), int(one["rows"]), files, one.get("previous"))
