"""A warehouse: Delta tables below one URL, on a local disk or an object store. This file defines the layout.

    URL/tables/snapshots                           the marker: a row for each snapshot that is stored completely
    URL/tables/brokers, topics, partitions         the content of the snapshots; `collect` writes these with delta-rs
    URL/tables/readings, logs, group_members, …    the readings of what changes all the time, stored with some of the snapshots
    URL/tables/partition_durability, findings, …   the derived tables; Spark writes the files, delta-rs commits them
    URL/tables/judged                              which snapshots the derived tables have, written by delta-rs
    URL/tables/runs                                which version of each table belongs together, written last by delta-rs
    URL/checkpoints/follow                         which markers `follow` has read, written by Spark
    URL/.lock                                      held by the active `run` or batch of `follow`, on a local disk
    URL/.follow.lock                               held by `follow` until it ends, on a local disk

It does not use Spark. Credentials of object stores are those of the engines: delta-rs and Hadoop read them from the environment.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rackspan.disk import to_disk
from rackspan.errors import InvalidWarehouse, WarehouseBusy
from rackspan.pipeline.delta.credentials import has_credentials
from rackspan.pipeline.delta.local_disk import torn_entries
from rackspan.pipeline.delta.table import WITHOUT_TLS, DataFile, create_table, local_folder, open_table, renewed
from rackspan.pipeline.schemas import DERIVED, HISTORY, LANDING, SNAPSHOTS

if TYPE_CHECKING:
    from deltalake import DeltaTable

SCHEMES: Final = ("file", "s3", "s3a", "gs", "abfs", "abfss", "az", "adl")
MISREAD: Final = re.compile(r"%[0-9A-Fa-f]{2}|\\|[\x00-\x1f\x7f]")
"""In a local path: delta-rs writes a table there and looks for it elsewhere, or refuses it in words of its own."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What was found at the end of the logs of the landing tables and put right, in `lines`, and what is `lost` of it."""

    lines: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


NOT_REPAIRED: Final = Repair()


READ_ROWS_MAX: Final = 200_000
"""Of snapshots some 150 MB."""


@dataclass(frozen=True, slots=True)
class FilesRead:
    """Rows of data files of the tables `snapshots` and `judged` by path: files never change, so each is read once.

    And the tables that a run has opened, by name and version: of one at its newest version (None) that is needed again, only what its
    log has got since then is read.
    """

    snapshots: dict[str, Sequence[Any]] = field(default_factory=dict)
    judged: dict[str, Sequence[Any]] = field(default_factory=dict)
    opened: "dict[tuple[str, int | None], DeltaTable]" = field(default_factory=dict)


def rows_kept(read: dict[str, Sequence[Any]], files: Sequence[DataFile]) -> dict[str, Sequence[Any]]:
    """The same rows by path, of the newest of `files` alone where there are too many of them: the next ones that are needed are there."""
    if sum(map(len, read.values())) > READ_ROWS_MAX:
        newest = sorted(files, key=lambda file: file.most or "", reverse=True)
        totals = accumulate(file.rows for file in newest)
        kept = {file.path for file, total in zip(newest, totals, strict=True) if total <= READ_ROWS_MAX // 2}
        for path in read.keys() - kept:
            del read[path]
    return read


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A warehouse that `open_warehouse` or `create_warehouse` has checked. `root` is a URL or an absolute local path."""

    root: str
    repair: Repair = field(default=NOT_REPAIRED, compare=False)
    """What was repaired when it was opened for writing."""
    damaged: frozenset[str] = field(default=frozenset(), compare=False)
    """Data files of landing tables that are not read, as TABLE/PATH."""
    read: "FilesRead | None" = field(default=None, compare=False, repr=False)
    """What was read before, where it is kept: by a run while it lasts, by `follow` from batch to batch."""

    @property
    def folder(self) -> Path | None:
        """The local folder, None on an object store."""
        return local_folder(self.root)

    def table(self, name: str) -> str:
        """The URL of a table."""
        return f"{self.root}/tables/{name}"

    def table_folder(self, name: str) -> Path | None:
        """The local folder of a table, None on an object store."""
        return local_folder(self.table(name))

    @property
    def spark_root(self) -> str:
        """The URL of the warehouse as Hadoop names its scheme."""
        return self.root.replace("s3://", "s3a://", 1) if self.root.startswith("s3://") else self.root

    def spark_path(self, name: str) -> str:
        """The URL of a table, with the scheme as Hadoop names it: for Spark, which reads and writes files there."""
        return f"{self.spark_root}/tables/{name}"


def open_warehouse(root: str | Path, repair: Callable[[Warehouse], Repair] | None = None) -> Warehouse:
    """An existing warehouse, whose logs are repaired first with `repair`, if it is given. Errors: InvalidWarehouse."""
    warehouse = named_warehouse(root)
    folder = warehouse.folder
    if folder is not None and not folder.is_dir():
        raise InvalidWarehouse(
            f"{root}: no such folder; fill it first with rackspan pipeline collect --warehouse {root}"
        )
    if repair is not None:
        warehouse = replace(warehouse, repair=repair(warehouse))
    elif torn := torn_logs(warehouse):
        name, entry = next(iter(torn.items()))
        raise InvalidWarehouse(
            f"{root}: table {name}: {entry} in its log is torn, so its newest rows are missing; rackspan pipeline run --warehouse "
            f"{root} repairs it"
        )
    with naming_check(warehouse):
        found = open_table(warehouse.table(SNAPSHOTS.name))
    if found is None:
        raise InvalidWarehouse(
            f"{root}: not a warehouse (it has no table snapshots); fill one with rackspan pipeline collect --warehouse URL"
        )
    if repair is not None:
        _create_landing_tables(warehouse)
    return warehouse


def create_warehouse(root: str | Path, repair: Callable[[Warehouse], Repair]) -> Warehouse:
    """An existing warehouse, whose logs are repaired first with `repair`, or a new one. Errors: InvalidWarehouse."""
    warehouse = named_warehouse(root)
    folder = warehouse.folder
    if folder is not None:
        _prepare_folder(root, folder)
    warehouse = replace(warehouse, repair=repair(warehouse))
    _create_landing_tables(warehouse)
    return warehouse


def _create_landing_tables(warehouse: Warehouse) -> None:
    """Create those that are missing, in a warehouse of an earlier rackspan perhaps."""
    for table in LANDING.values():
        create_table(warehouse.table(table.name), table.declared, table.meaning, by_day=True)


def torn_logs(warehouse: Warehouse) -> dict[str, str]:
    """The tables whose newest log entries are torn, each with the first such entry. None on an object store."""
    folders = {name: folder for name in (*LANDING, *DERIVED, *HISTORY) if (folder := warehouse.table_folder(name))}
    return {name: torn[0].name for name, folder in folders.items() if (torn := torn_entries(folder))}


def existing_table(warehouse: Warehouse, name: str, version: int | None = None) -> "DeltaTable":
    """One table of a warehouse, at its newest version or another one. Errors: InvalidWarehouse where it is not there."""
    kept, key = {} if warehouse.read is None else warehouse.read.opened, (name, version)
    if key in kept and version is not None:
        return kept[key]
    table = renewed(kept.pop(key)) if key in kept else None
    if table is None:
        table = open_table(warehouse.table(name), version)
    if table is None:
        raise InvalidWarehouse(
            f"{warehouse.root}: its table {name} is gone; put it back, or remove the folders of all derived tables, of "
            "judged and of runs, and run again"
        )
    kept[key] = table
    return table


@contextmanager
def naming_check(warehouse: Warehouse) -> Iterator[None]:
    """Name the next command in errors of a block about damaged files."""
    try:
        yield
    except WarehouseBusy:
        raise
    except InvalidWarehouse as error:
        if "rackspan " in str(error) or WITHOUT_TLS in str(error):
            raise
        raise InvalidWarehouse(
            f"{error}; rackspan pipeline check --whole --warehouse {warehouse.root} shows what to do"
        ) from error


@contextmanager
def only_run(warehouse: Warehouse) -> Iterator[None]:
    """Hold the lock of a local warehouse for a block. Errors: WarehouseBusy at once where another run holds it.

    An object store has no lock. There two runs that wrote at the same time are detected when a table is committed
    (incremental.py): delta-rs commits with a conditional put, so the second one is refused and nothing of it counts.
    """
    with _lock(warehouse, ".lock", "another rackspan pipeline run is at work here; run again when it is done"):
        yield


@contextmanager
def only_follow(warehouse: Warehouse) -> Iterator[None]:
    """Hold a lock of a local warehouse while it is followed: two streams cannot share one checkpoint. Errors: WarehouseBusy."""
    with _lock(warehouse, ".follow.lock", "another rackspan pipeline follow is at work here; stop it first"):
        yield


@contextmanager
def _lock(warehouse: Warehouse, name: str, busy: str) -> Iterator[None]:
    folder = warehouse.folder
    if folder is None:
        yield
        return
    try:
        descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InvalidWarehouse(
            f"{warehouse.root}: cannot be written: {error.strerror}; change its permissions"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise WarehouseBusy(f"{warehouse.root}: {busy}") from None
    try:
        yield
    finally:
        os.close(descriptor)


def named_warehouse(root: str | Path) -> Warehouse:
    """A warehouse by its URL, not checked. Errors: InvalidWarehouse for a URL that cannot be one."""
    text = str(root).rstrip("/") or "/"
    scheme, separator, _ = text.partition("://")
    if not separator:
        return _named_folder(root, text)
    if scheme not in SCHEMES:
        raise InvalidWarehouse(
            f"{root}: the scheme {scheme} is none of {', '.join(SCHEMES)}; choose another --warehouse"
        )
    if scheme != "file" and has_credentials(text):
        raise InvalidWarehouse(
            f"a {scheme} URL with credentials in it would be in every message; name the place alone, and give the credentials "
            "by the environment, as delta-rs and Hadoop read them"
        )
    return _named_folder(root, str(local_folder(text))) if scheme == "file" else Warehouse(text)


def _named_folder(root: str | Path, path: str) -> Warehouse:
    """A local warehouse by its path. Errors: InvalidWarehouse for one that delta-rs reads as another, or that is a URL of Hadoop."""
    scheme, colon, rest = path.partition(":")
    if colon and scheme in SCHEMES and rest.startswith("/"):
        raise InvalidWarehouse(
            f"{root}: a URL has two slashes behind its scheme; write {scheme}://{'' if scheme != 'file' else '/'}{rest[1:]}"
        )
    folder = str(Path(path).absolute())
    if found := MISREAD.search(folder):
        raise InvalidWarehouse(
            f"{root}: delta-rs reads {found[0]!r} in a path as something else; choose another --warehouse"
        )
    return Warehouse(folder)


def _prepare_folder(root: str | Path, folder: Path) -> None:
    if (folder / "tables" / SNAPSHOTS.name).is_dir():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(entry.name not in (".lock", "tables") for entry in folder.iterdir()):
            raise InvalidWarehouse(f"{root}: holds other files and is not a warehouse; name a new or an empty folder")
        # deltalake makes the folders of tables, and says little where it cannot.
        (folder / "tables").mkdir(exist_ok=True)
        for created in (folder, folder.parent):
            to_disk(created)
    except OSError as error:
        raise InvalidWarehouse(f"{root}: cannot be written: {error.strerror}; choose another --warehouse") from None
