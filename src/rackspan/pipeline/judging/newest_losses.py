"""What the loss of each rack would do to each cluster of a warehouse at present, for the metrics of a `follow`.

Begin with NewestLosses. The newest snapshot of a cluster is read again and judged by `audit.rack_losses`, since the tables do not
have all of a verdict. A snapshot that is stored as equal to the one before it is not read: its losses are the same. Constraint: a
snapshot that is too old to say anything of the present gives no value.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rackspan.audit import ClusterPolicies, RackLosses, rack_losses, snapshot_batch
from rackspan.ends import joined_within
from rackspan.errors import RackspanError
from rackspan.pipeline.delta.table import data_files, read_files
from rackspan.pipeline.landing.markers import StoredSnapshot, read_markers
from rackspan.pipeline.landing.read import read_snapshots
from rackspan.pipeline.schemas import SNAPSHOTS
from rackspan.pipeline.warehouse import Warehouse, existing_table

if TYPE_CHECKING:
    from rackspan.prometheus_metrics.rack_losses import ClusterLosses

DAYS_READ: Final = 2
"""The days with snapshots, the newest ones, that are looked through when a follow begins."""

AT_ONCE: Final = 50
"""Snapshots that are read together, so that a slow disk shows the first ones soon."""


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest snapshot of a cluster.

    `losses` are those at `judged`, the newest snapshot that was judged: None if it could not be.
    """

    stored: StoredSnapshot
    judged: StoredSnapshot | None = None
    losses: RackLosses | None = None

    @property
    def waits(self) -> bool:
        """Whether it is still to be judged."""
        return self.judged is None or self.judged.snapshot_id != self.stored.snapshot_id

    def known_at(self, now: datetime) -> RackLosses | None:
        """The losses, unless their snapshot says nothing of that time any more."""
        return None if self.judged is None or now > self.judged.known_until else self.losses


class NewestLosses:
    """The losses of each cluster of a warehouse by its newest snapshot. `add` and `at` may be called from any thread.

    `names`: what to call clusters, by id. `warn` gets a line for each snapshot that cannot be judged.
    """

    def __init__(self, policies: ClusterPolicies, names: Mapping[str, str], warn: Callable[[str], None]) -> None:
        self._policies, self._names, self._warn = policies, names, warn
        self._newest: dict[str, _Newest] = {}
        self._lock = threading.Lock()
        self._work = threading.Event()

    @contextmanager
    def judged(self, warehouse: Warehouse) -> Iterator[None]:
        """Judge in a thread of its own during the block, so that no batch waits for it: first what is stored, then what is added."""
        ended = threading.Event()
        # Without what a follow keeps in memory, which belongs to its own thread.
        warehouse = replace(warehouse, read=None)

        def work() -> None:
            self.add_stored(warehouse)
            while not ended.is_set():
                self._work.clear()
                while not ended.is_set() and self.judge(warehouse):
                    pass
                self._work.wait()  # unlimited: a daemon thread

        thread = threading.Thread(target=work, name="rackspan-losses", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            self._work.set()
            joined_within("the judgement of losses", thread)

    def add_stored(self, warehouse: Warehouse) -> None:
        """Take in the clusters that have snapshots in the newest days of a warehouse."""
        try:
            stored = read_markers(warehouse, skip_damaged=True).named(_newest_ids(warehouse))
        except RackspanError as error:
            self._warn(f"metrics of losses: {error}")
            return
        self.add(stored)

    def add(self, snapshots: Iterable[StoredSnapshot]) -> None:
        """Take in snapshots, in any order. They are judged by `judge`."""
        with self._lock:
            for snapshot in sorted(snapshots, key=lambda one: one.taken_at):
                self._newest[snapshot.cluster_id] = _followed(self._newest.get(snapshot.cluster_id), snapshot)
        self._work.set()

    def judge(self, warehouse: Warehouse) -> int:
        """Read and judge newest snapshots that are not judged yet, some at once. Returns how many."""
        with self._lock:
            waiting = [newest.stored for newest in self._newest.values() if newest.waits][:AT_ONCE]
        for snapshot, losses in self._judged(warehouse, waiting) if waiting else ():
            with self._lock:
                newest = self._newest[snapshot.cluster_id]
                self._newest[snapshot.cluster_id] = replace(newest, judged=snapshot, losses=losses)
        return len(waiting)

    def at(self, now: datetime) -> "list[ClusterLosses]":
        """Returns what is known of each cluster at a time, in order of id."""
        from rackspan.prometheus_metrics.rack_losses import ClusterLosses

        with self._lock:
            newest = sorted(self._newest.items())
        return [
            ClusterLosses(
                cluster_id,
                self._names.get(cluster_id),
                of_cluster.known_at(now),
                None if of_cluster.judged is None else of_cluster.judged.taken_at,
            )
            for cluster_id, of_cluster in newest
        ]

    def _judged(
        self, warehouse: Warehouse, stored: Sequence[StoredSnapshot]
    ) -> Iterator[tuple[StoredSnapshot, RackLosses | None]]:
        try:
            snapshots = read_snapshots(warehouse, stored)
        except RackspanError as error:
            if len(stored) > 1:
                for marker in stored:
                    yield from self._judged(warehouse, [marker])
                return
            self._warn(f"metrics of losses: {error}")
            yield stored[0], None
            return
        for of, snapshot in zip(stored, snapshots, strict=True):
            policy = self._policies.of_cluster(of.cluster_id)
            try:
                yield of, rack_losses(snapshot, snapshot_batch(snapshot, policy))
            except RackspanError as error:
                self._warn(f"metrics of losses: cluster {of.cluster_id}: {error}")
                yield of, None


def _followed(newest: _Newest | None, snapshot: StoredSnapshot) -> _Newest:
    """The newest snapshot of a cluster after one more has come, which may be a late one."""
    if newest is None:
        return _Newest(snapshot)
    if snapshot.taken_at <= newest.stored.taken_at:
        return newest
    same = snapshot.unchanged and newest.judged is not None and snapshot.base_id == newest.judged.snapshot_id
    return replace(newest, stored=snapshot, judged=snapshot if same else newest.judged)


def _newest_ids(warehouse: Warehouse) -> list[str]:
    """The newest snapshot of each cluster of the newest days, by id: ids sort by time."""
    table = existing_table(warehouse, SNAPSHOTS.name)
    files = [file for file in data_files(table) if file.day is not None]
    days = sorted({file.day for file in files if file.day is not None})[-DAYS_READ:]
    schema = pa.schema([SNAPSHOTS.schema.field(name) for name in ("cluster_id", "snapshot_id")])
    batches = read_files(table, [file for file in files if file.day in days], schema)
    newest = pa.Table.from_batches(batches, schema).group_by("cluster_id").aggregate([("snapshot_id", "max")])
    ids: list[str] = newest.column("snapshot_id_max").to_pylist()
    return ids
